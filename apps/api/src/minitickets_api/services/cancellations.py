"""Cancelling a booking: its seats are free again, its owner is told, and it stays in their list."""

from typing import Any
from uuid import UUID, uuid4

import asyncpg

from minitickets_api.database import transact
from minitickets_api.queries.bookings import BOOKING_WITH_EVENT, BookingView, booking_view
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import booking_messages, idempotency

PROCEDURE = "bookings.cancel"


async def cancel_booking(
    pool: asyncpg.Pool, *, user_id: UUID, booking_id: UUID, idempotency_key: str, correlation_id: str
) -> BookingView:
    """The booking, cancelled, with a message that says so. One that is cancelled already is left as it is.

    Raises Refusal: NOT_FOUND (somebody else's too), BAD_REQUEST once the event has begun, CONFLICT for a key that was
    used otherwise, SERVICE_UNAVAILABLE.
    """
    input_hash = idempotency.hash_input({"bookingId": str(booking_id)})

    async def work(connection: Any) -> BookingView:
        row = await connection.fetchrow(
            # The row's lock comes first: who waits here for a cancellation sees, after it, what it remembered.
            f"{BOOKING_WITH_EVENT} where b.booking_id = $1 and b.user_id = $2 for update of b",
            booking_id,
            user_id,
        )
        if row is None:
            raise Refusal(Code.NOT_FOUND, "There is no such booking.")
        known = await idempotency.find(connection, procedure=PROCEDURE, keys=[(user_id, idempotency_key)])
        if known:
            return BookingView.from_json(known[user_id, idempotency_key].answer(input_hash))
        if row["cancelled_at"] is not None:
            return booking_view(row)
        view = await _cancel(connection, booking_id, correlation_id)
        await idempotency.remember(
            connection,
            procedure=PROCEDURE,
            user_id=user_id,
            key=idempotency_key,
            input_hash=input_hash,
            result=view.to_json(),
        )
        return view

    try:
        return await transact(pool, work)
    except asyncpg.UniqueViolationError:  # the same key for another booking, at the same time: now it is decided
        return await transact(pool, work)


async def _cancel(connection: Any, booking_id: UUID, correlation_id: str) -> BookingView:
    cancelled = await connection.fetchval(
        "update bookings b set cancelled_at = clock_timestamp() from events e"
        " where b.booking_id = $1 and e.event_id = b.event_id and e.starts_at > clock_timestamp()"
        " returning b.booking_id",
        booking_id,
    )
    if cancelled is None:
        raise Refusal(Code.BAD_REQUEST, "This event has begun, so its bookings can no longer be cancelled.")
    await connection.execute("delete from booked_seats where booking_id = $1", booking_id)
    row = await connection.fetchrow(f"{booking_messages.BOOKING_WITH_CUSTOMER} where b.booking_id = $1", booking_id)
    message_id = uuid4()
    message = booking_messages.cancelled(row, message_id=message_id, correlation_id=correlation_id)
    await connection.execute(booking_messages.INSERT_MESSAGE, message_id, booking_id, message.to_json(), correlation_id)
    return booking_view(await connection.fetchrow(f"{BOOKING_WITH_EVENT} where b.booking_id = $1", booking_id))
