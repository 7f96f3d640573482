"""Who booked an event, for its organiser."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import asyncpg

from minitickets_api.database import connection
from minitickets_api.organisers import require_own_event
from minitickets_api.queries.bookings import instant
from minitickets_api.queries.keyset import MAX_PAGE, Keyset


@dataclass(frozen=True, kw_only=True)
class EventBooking:
    """A booking as the event's organiser sees it. Times are ISO 8601 in UTC; ``mail_requested_at`` is when its mail was
    last asked for again."""

    booking_id: str
    name: str
    email: str
    seats: tuple[str, ...]
    total_minor: int
    currency: str
    status: Literal["confirmed", "cancelled"]
    booked_at: str
    cancelled_at: str | None
    mail_requested_at: str | None


@dataclass(frozen=True, kw_only=True)
class EventBookingsPage:
    """``next_cursor`` is None on the last page."""

    bookings: tuple[EventBooking, ...]
    next_cursor: str | None


# What is looked for is text, never a pattern: a name may have a % in it.
_PAGE = """
select b.booking_id, u.name, u.email, b.seats, b.total_minor, b.currency, b.created_at, b.cancelled_at,
    b.mail_requested_at
from bookings b join users u using (user_id)
where b.event_id = $1
    and ($2::text is null or strpos(lower(u.name), lower($2)) > 0 or strpos(u.email, lower($2)) > 0
        or upper($2) = any(b.seats) or b.booking_id::text = lower($2))
    and ($3::timestamptz is null or (b.created_at, b.booking_id) < ($3, $4::uuid))
order by b.created_at desc, b.booking_id desc limit $5
"""


async def event_bookings(
    pool: asyncpg.Pool,
    *,
    organiser_id: UUID,
    event_id: str,
    search: str | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> EventBookingsPage:
    """The bookings of the organiser's event, cancelled ones too, the newest first; at most ``limit`` (1 to 100) a page.

    ``search`` is a part of a name or an address, a seat, or a booking's id. Raises Refusal: NOT_FOUND, BAD_REQUEST for
    a cursor of another list or search, SERVICE_UNAVAILABLE.
    """
    keyset = Keyset(
        query="events.bookings",
        owner=f"{organiser_id}\n{event_id}\n{search or ''}",
        time="created_at",
        id="booking_id",
    )
    before_time, before_id = keyset.position(cursor, limit=limit)
    async with connection(pool) as database:
        await require_own_event(database, organiser_id=organiser_id, event_id=event_id)
        rows = await database.fetch(_PAGE, event_id, search, before_time, before_id, limit + 1)
    page, following = keyset.page(rows, limit=limit)
    return EventBookingsPage(bookings=tuple(_booking(row) for row in page), next_cursor=following)


async def all_event_bookings(
    pool: asyncpg.Pool, *, organiser_id: UUID, event_id: str
) -> AsyncIterator[tuple[EventBooking, ...]]:
    """All of them in pieces, each read when it is asked for: however slowly somebody downloads them, no connection and
    no transaction is held meanwhile. What is booked after the first piece is not in it. Raises as ``event_bookings``;
    at least one piece comes, so that a refusal comes before anything is sent.
    """
    cursor: str | None = None
    while True:
        page = await event_bookings(pool, organiser_id=organiser_id, event_id=event_id, cursor=cursor, limit=MAX_PAGE)
        yield page.bookings
        cursor = page.next_cursor
        if cursor is None:
            return


def _booking(row: Mapping[str, Any]) -> EventBooking:
    cancelled_at, mail_requested_at = row["cancelled_at"], row["mail_requested_at"]
    return EventBooking(
        booking_id=str(row["booking_id"]),
        name=row["name"],
        email=row["email"],
        seats=tuple(row["seats"]),
        total_minor=row["total_minor"],
        currency=row["currency"],
        status="confirmed" if cancelled_at is None else "cancelled",
        booked_at=instant(row["created_at"]),
        cancelled_at=None if cancelled_at is None else instant(cancelled_at),
        mail_requested_at=None if mail_requested_at is None else instant(mail_requested_at),
    )
