"""What events there are, and which of their seats are free."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self
from uuid import UUID

import asyncpg

from minitickets_api.database import connection
from minitickets_api.queries.keyset import Keyset
from minitickets_api.refusals import Code, Refusal
from minitickets_api.venue_time import local_start


@dataclass(frozen=True, kw_only=True)
class EventSummary:
    """``starts_at`` is the venue's local time with its UTC offset; ``price_minor`` is of one seat, in minor units."""

    event_id: str
    organiser_id: str
    title: str
    venue: str
    starts_at: str
    time_zone: str
    price_minor: int
    currency: str
    poster_key: str | None
    is_published: bool
    has_begun: bool
    seats_total: int
    seats_free: int

    def to_document(self) -> dict[str, Any]:
        """For the memory of an idempotency key."""
        return dict(vars(self))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """What ``to_document`` made, perhaps in a newer version of this program: what is not ours is left out."""
        return cls(**{field.name: document[field.name] for field in fields(cls)})


@dataclass(frozen=True, kw_only=True)
class Seat:
    """``name`` is ``<row>-<number>``; ``aisle_after`` says that people walk between it and the next of its row."""

    name: str
    is_taken: bool
    aisle_after: bool

    @property
    def row(self) -> str:
        """What stands before the last hyphen; empty for a seat in no row."""
        return self.name.rpartition("-")[0]

    @property
    def number(self) -> str:
        """What stands after the last hyphen: what is written on the seat."""
        return self.name.rpartition("-")[2]


@dataclass(frozen=True, kw_only=True)
class EventWithSeats:
    """``seats`` are in the order in which people read them."""

    event: EventSummary
    seats: tuple[Seat, ...]


@dataclass(frozen=True, kw_only=True)
class EventsPage:
    """``next_cursor`` is None on the last page."""

    events: tuple[EventSummary, ...]
    next_cursor: str | None


EVENT_SUMMARY = """
select e.event_id, e.organiser_id, e.title, e.venue, e.starts_at, e.time_zone, e.price_minor, e.currency, e.poster_key,
    e.published_at is not null as is_published,
    e.starts_at <= now() as has_begun,
    (select count(*) from seats s where s.event_id = e.event_id) as seats_total,
    (select count(*) from booked_seats b where b.event_id = e.event_id) as seats_taken
from events e
"""


async def upcoming(pool: asyncpg.Pool, *, limit: int = 50, cursor: str | None = None) -> EventsPage:
    """Published events that have not begun, the soonest first; at most ``limit`` (1 to 100) a page.

    Raises Refusal: BAD_REQUEST for a cursor of another list, SERVICE_UNAVAILABLE without a database.
    """
    keyset = Keyset(query="events.upcoming", owner="", time="starts_at", id="event_id")
    after_time, after_id = keyset.position(cursor, limit=limit)
    async with connection(pool) as database:
        rows = await database.fetch(
            f"{EVENT_SUMMARY} where e.published_at is not null and e.starts_at > now()"
            " and ($1::timestamptz is null or (e.starts_at, e.event_id) > ($1, $2::uuid))"
            " order by e.starts_at, e.event_id limit $3",
            after_time,
            after_id,
            limit + 1,
        )
    page, following = keyset.page(rows, limit=limit)
    return EventsPage(events=tuple(event_summary(row) for row in page), next_cursor=following)


async def of_organiser(
    pool: asyncpg.Pool, *, organiser_id: UUID, limit: int = 50, cursor: str | None = None
) -> EventsPage:
    """All events of one organiser, drafts too, the one that begins last first; at most ``limit`` (1 to 100) a page.

    Raises Refusal: BAD_REQUEST for a cursor of another list or person, SERVICE_UNAVAILABLE without a database.
    """
    keyset = Keyset(query="events.mine", owner=str(organiser_id), time="starts_at", id="event_id")
    before_time, before_id = keyset.position(cursor, limit=limit)
    async with connection(pool) as database:
        rows = await database.fetch(
            f"{EVENT_SUMMARY} where e.organiser_id = $1"
            " and ($2::timestamptz is null or (e.starts_at, e.event_id) < ($2, $3::uuid))"
            " order by e.starts_at desc, e.event_id desc limit $4",
            organiser_id,
            before_time,
            before_id,
            limit + 1,
        )
    page, following = keyset.page(rows, limit=limit)
    return EventsPage(events=tuple(event_summary(row) for row in page), next_cursor=following)


async def by_id(pool: asyncpg.Pool, *, event_id: str, user_id: str | None = None) -> EventWithSeats:
    """One event and all its seats. A draft is there for its organiser (``user_id``) alone.

    Raises Refusal: NOT_FOUND, SERVICE_UNAVAILABLE.
    """
    event = _uuid(event_id)
    viewer = _uuid(user_id) if user_id is not None else None
    if event is None:
        raise Refusal(Code.NOT_FOUND, "There is no such event.")
    # One snapshot, so that the counts and the seats agree.
    async with connection(pool) as database, database.transaction(isolation="repeatable_read", readonly=True):
        row = await database.fetchrow(
            f"{EVENT_SUMMARY} where e.event_id = $1 and (e.published_at is not null or e.organiser_id = $2)",
            event,
            viewer,
        )
        if row is None:
            raise Refusal(Code.NOT_FOUND, "There is no such event.")
        seats = await database.fetch(
            "select s.seat, s.aisle_after, b.seat is not null as is_taken"
            " from seats s left join booked_seats b using (event_id, seat)"
            " where s.event_id = $1 order by s.position, s.seat",
            event,
        )
    return EventWithSeats(
        event=event_summary(row),
        seats=tuple(
            Seat(name=seat["seat"], is_taken=seat["is_taken"], aisle_after=seat["aisle_after"]) for seat in seats
        ),
    )


def event_summary(row: Mapping[str, Any]) -> EventSummary:
    """The summary of a row of ``EVENT_SUMMARY``."""
    return EventSummary(
        event_id=str(row["event_id"]),
        organiser_id=str(row["organiser_id"]),
        title=row["title"],
        venue=row["venue"],
        starts_at=local_start(row["starts_at"], row["time_zone"]),
        time_zone=row["time_zone"],
        price_minor=row["price_minor"],
        currency=row["currency"],
        poster_key=row["poster_key"],
        is_published=row["is_published"],
        has_begun=row["has_begun"],
        seats_total=row["seats_total"],
        seats_free=row["seats_total"] - row["seats_taken"],
    )


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
