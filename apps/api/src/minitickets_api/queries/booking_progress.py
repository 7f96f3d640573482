"""How far a booking has come on its way to mail and tickets."""

from dataclasses import dataclass
from uuid import UUID

import asyncpg

from minitickets_api.database import connection
from minitickets_api.queries import bookings
from minitickets_api.queries.bookings import BookingView
from minitickets_api.queries.tickets import Tickets
from minitickets_api.refusals import Code, Refusal

# Sent ones are purged one day, so what counts is what is left.
_UNSENT = """
select count(*) as unsent, count(parked_at) as parked from outbox where booking_id = $1 and sent_at is null
"""


@dataclass(frozen=True, kw_only=True)
class BookingProgress:
    """``is_handed_over``: every message about it was taken by AWS; ``is_parked``: one never will be, without help.

    ``tickets_ready`` is None while the tickets cannot be asked for. What became of the mail nobody here can see.
    """

    booking: BookingView
    is_handed_over: bool
    is_parked: bool
    tickets_ready: int | None


async def booking_progress(pool: asyncpg.Pool, tickets: Tickets, *, user_id: str, booking_id: str) -> BookingProgress:
    """The booking of ``user_id``. Raises Refusal: NOT_FOUND (somebody else's too), SERVICE_UNAVAILABLE."""
    booking = await bookings.by_id(pool, user_id=user_id, booking_id=booking_id)
    async with connection(pool) as database:
        messages = await database.fetchrow(_UNSENT, UUID(booking_id))
    return BookingProgress(
        booking=booking,
        is_handed_over=messages["unsent"] == 0,
        is_parked=messages["parked"] > 0,
        tickets_ready=await _ready(tickets, user_id=user_id, booking_id=booking_id),
    )


async def _ready(tickets: Tickets, *, user_id: str, booking_id: str) -> int | None:
    try:
        issued = await tickets.of_booking(user_id=user_id, booking_id=booking_id)
    except Refusal as refusal:
        if refusal.code is not Code.SERVICE_UNAVAILABLE:
            raise
        return None
    return sum(ticket.is_ready for ticket in issued)
