"""A customer's bookings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, Self
from uuid import UUID

import asyncpg

from minitickets_api.database import connection
from minitickets_api.queries.keyset import Keyset
from minitickets_api.refusals import Code, Refusal
from minitickets_api.venue_time import local_start


@dataclass(frozen=True, kw_only=True)
class BookingView:
    """A booking as its owner sees it.

    ``starts_at`` is the venue's local time with its UTC offset; ``booked_at`` and ``cancelled_at`` are ISO 8601 in
    UTC; ``total_minor`` is in minor units of ``currency``. A cancelled booking keeps the names of its seats.
    """

    booking_id: str
    event_id: str
    event_title: str
    venue: str
    starts_at: str
    time_zone: str
    seats: tuple[str, ...]
    total_minor: int
    currency: str
    status: Literal["confirmed", "cancelled"]
    booked_at: str
    cancelled_at: str | None

    def to_json(self) -> str:
        """For the memory of an idempotency key."""
        return json.dumps(vars(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What ``to_json`` wrote, perhaps in a newer version of this program: fields that are not ours are left out."""
        stored = json.loads(text)
        known = {field.name: stored[field.name] for field in fields(cls)}
        return cls(**{**known, "seats": tuple(stored["seats"])})


@dataclass(frozen=True, kw_only=True)
class BookingsPage:
    """``next_cursor`` is None on the last page."""

    bookings: tuple[BookingView, ...]
    next_cursor: str | None


BOOKING_WITH_EVENT = """
select b.booking_id, b.event_id, b.seats, b.total_minor, b.currency, b.created_at, b.cancelled_at,
    e.title, e.venue, e.starts_at, e.time_zone
from bookings b join events e using (event_id)
"""


async def mine(pool: asyncpg.Pool, *, user_id: str, cursor: str | None = None, limit: int = 50) -> BookingsPage:
    """The bookings of ``user_id``, the newest first; at most ``limit`` (1 to 100) a page.

    Raises Refusal: BAD_REQUEST for a cursor of another list or person, SERVICE_UNAVAILABLE without a database.
    """
    keyset = Keyset(query="bookings.mine", owner=user_id, time="created_at", id="booking_id")
    before_time, before_id = keyset.position(cursor, limit=limit)
    async with connection(pool) as database:
        rows = await database.fetch(
            f"{BOOKING_WITH_EVENT} where b.user_id = $1"
            " and ($2::timestamptz is null or (b.created_at, b.booking_id) < ($2, $3::uuid))"
            " order by b.created_at desc, b.booking_id desc limit $4",
            UUID(user_id),
            before_time,
            before_id,
            limit + 1,
        )
    page, following = keyset.page(rows, limit=limit)
    return BookingsPage(bookings=tuple(booking_view(row) for row in page), next_cursor=following)


async def by_id(pool: asyncpg.Pool, *, user_id: str, booking_id: str) -> BookingView:
    """One booking of ``user_id``.

    Raises Refusal: NOT_FOUND if it is nobody's or somebody else's, SERVICE_UNAVAILABLE without a database.
    """
    async with connection(pool) as database:
        row = await database.fetchrow(
            f"{BOOKING_WITH_EVENT} where b.booking_id = $1 and b.user_id = $2", UUID(booking_id), UUID(user_id)
        )
    if row is None:
        raise Refusal(Code.NOT_FOUND, "There is no such booking.")
    return booking_view(row)


def booking_view(row: Mapping[str, Any]) -> BookingView:
    """The view of a row of ``BOOKING_WITH_EVENT``."""
    cancelled_at: datetime | None = row["cancelled_at"]
    return BookingView(
        booking_id=str(row["booking_id"]),
        event_id=str(row["event_id"]),
        event_title=row["title"],
        venue=row["venue"],
        starts_at=local_start(row["starts_at"], row["time_zone"]),
        time_zone=row["time_zone"],
        seats=tuple(row["seats"]),
        total_minor=row["total_minor"],
        currency=row["currency"],
        status="confirmed" if cancelled_at is None else "cancelled",
        booked_at=instant(row["created_at"]),
        cancelled_at=None if cancelled_at is None else instant(cancelled_at),
    )


def instant(moment: datetime) -> str:
    """``moment`` in UTC, as ISO 8601 to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
