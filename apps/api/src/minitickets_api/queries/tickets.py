"""A customer's tickets."""

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from minitickets_api.aws import Aws
from minitickets_api.database import connection
from minitickets_api.logs import failure
from minitickets_api.queries.assets import Assets
from minitickets_api.refusals import Code, Refusal
from minitickets_api.venue_time import local_start
from minitickets_contracts import keys
from minitickets_contracts.fields import ContractError

ALL_PAGES_SECONDS = 8.0
# States in which the image is there; before them there is nothing to show.
_DRAWN = frozenset({"ready", "checked-in"})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TicketView:
    """A ticket as its owner sees it. ``image_url`` lives 120 s and is None until the image is drawn.

    ``starts_at`` is the venue's local time with its UTC offset.
    """

    ticket_id: str
    booking_id: str
    event_id: str
    seat: str
    status: str
    event_title: str
    starts_at: str
    time_zone: str
    qr_token: str
    image_url: str | None


@dataclass(frozen=True, kw_only=True)
class IssuedTicket:
    """A ticket as the table holds it. ``token`` is what its QR code says."""

    ticket_id: str
    booking_id: str
    seat: str
    status: str
    token: str = field(repr=False)

    @property
    def is_ready(self) -> bool:
        """Whether its image is there, so that it can be shown at the door."""
        return self.status in _DRAWN


@dataclass(frozen=True, kw_only=True)
class _Booked:
    event_id: str
    event_title: str
    starts_at: str
    time_zone: str


class Tickets:
    """The tickets table, read with Query on the user's partition alone; Postgres decides which of them still count."""

    def __init__(self, *, aws: Aws, table: str, assets: Assets, pool: asyncpg.Pool) -> None:
        self._aws = aws
        self._table = table
        self._assets = assets
        self._pool = pool

    async def mine(self, *, user_id: str) -> list[TicketView]:
        """All tickets of bookings that were not cancelled, by start and seat.

        Strongly consistent, so that a ticket that was announced is there. Raises Refusal (SERVICE_UNAVAILABLE).
        """
        issued = await self._aws.run(lambda: list(self._issued(user_id)))
        if not issued:
            return []
        booked = await self._booked(user_id, {ticket.booking_id for ticket in issued})

        def show() -> list[TicketView]:
            return [self._view(ticket, booked[ticket.booking_id]) for ticket in issued if ticket.booking_id in booked]

        views = await self._aws.sign(show)  # signing is half a millisecond of work each
        return sorted(views, key=lambda view: (view.starts_at, view.event_id, view.seat))

    async def of_booking(self, *, user_id: str, booking_id: str) -> list[IssuedTicket]:
        """The tickets that this booking of ``user_id`` has by now, by seat; whether it still counts, Postgres says.

        Strongly consistent; fewer than its seats until all are made. Raises Refusal (SERVICE_UNAVAILABLE).
        """
        return await self._aws.run(lambda: list(self._issued(user_id, booking_id=booking_id)))

    def _issued(self, user_id: str, *, booking_id: str | None = None) -> Iterator[IssuedTicket]:
        from botocore.exceptions import BotoCoreError, ClientError

        end = time.monotonic() + ALL_PAGES_SECONDS
        condition, values = "userId = :user", {":user": {"S": user_id}}
        if booking_id is not None:
            condition += " AND begins_with(ticketId, :booking)"
            values[":booking"] = {"S": f"{booking_id}:"}
        start: dict[str, Any] = {}
        try:
            while True:
                # An empty page with a key is no end, and a page holds at most 1 MB.
                page = self._aws.dynamodb.query(
                    TableName=self._table,
                    KeyConditionExpression=condition,
                    ExpressionAttributeValues=values,
                    ConsistentRead=True,
                    **start,
                )
                yield from map(_read, page["Items"])
                if not page.get("LastEvaluatedKey"):
                    return
                if time.monotonic() > end:
                    raise _unavailable()
                start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        except (ClientError, BotoCoreError) as error:
            _log.warning("tickets cannot be read", extra={"failure": failure(error)})
            raise _unavailable() from error

    async def _booked(self, user_id: str, booking_ids: Collection[str]) -> Mapping[str, _Booked]:
        async with connection(self._pool) as database:
            rows = await database.fetch(
                "select b.booking_id, e.event_id, e.title, e.starts_at, e.time_zone"
                " from bookings b join events e using (event_id)"
                " where b.booking_id = any($1::uuid[]) and b.user_id = $2 and b.cancelled_at is null",
                list(booking_ids),
                user_id,
            )
        return {
            str(row["booking_id"]): _Booked(
                event_id=str(row["event_id"]),
                event_title=row["title"],
                starts_at=local_start(row["starts_at"], row["time_zone"]),
                time_zone=row["time_zone"],
            )
            for row in rows
        }

    def _view(self, ticket: IssuedTicket, booked: _Booked) -> TicketView:
        key = keys.ticket_image_key(booked.event_id, ticket.booking_id, ticket.seat)
        return TicketView(
            ticket_id=ticket.ticket_id,
            booking_id=ticket.booking_id,
            event_id=booked.event_id,
            seat=ticket.seat,
            status=ticket.status,
            event_title=booked.event_title,
            starts_at=booked.starts_at,
            time_zone=booked.time_zone,
            qr_token=ticket.token,
            image_url=self._assets.sign_get(key) if ticket.is_ready else None,
        )


def _read(item: Mapping[str, Any]) -> IssuedTicket:
    ticket_id = item["ticketId"]["S"]
    try:
        booking_id, seat = keys.split_ticket_id(ticket_id)
    except ContractError as error:
        raise RuntimeError("the tickets table holds a key that is no ticket id") from error
    return IssuedTicket(
        ticket_id=ticket_id, booking_id=booking_id, seat=seat, status=item["status"]["S"], token=item["qrToken"]["S"]
    )


def _unavailable() -> Refusal:
    return Refusal(
        Code.SERVICE_UNAVAILABLE,
        "Tickets cannot be reached just now; they are safe. Try again shortly.",
        retryAfterSeconds=5,
    )
