"""The mail of a booking, asked for again."""

from typing import Any
from uuid import UUID, uuid4

import asyncpg

from minitickets_api.database import transact
from minitickets_api.queries.bookings import instant
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import booking_messages, idempotency
from minitickets_api.services.accounts import User
from minitickets_api.services.idempotency import Memory

PROCEDURE = "bookings.resendMail"

# Whoever moves or cancels takes the same lock, so what is read after it is how things stand.
_LOCK = """
select b.cancelled_at, clock_timestamp() as locked_at from bookings b join events e using (event_id)
where b.booking_id = $1 and (b.user_id = $2 or (e.organiser_id = $2 and $3)) for no key update of b
"""


async def request_mail(
    pool: asyncpg.Pool, *, user: User, booking_id: UUID, idempotency_key: str, correlation_id: str
) -> str:
    """Put a message of its own into the outbox; when it was asked for (ISO 8601, UTC). Once a key.

    Raises Refusal: NOT_FOUND for a booking that is neither the user's nor of an event of theirs, BAD_REQUEST for a
    cancelled one, CONFLICT for a key that was used otherwise, SERVICE_UNAVAILABLE.
    """
    user_id = UUID(user.user_id)
    memory = Memory(
        procedure=PROCEDURE,
        user_id=user_id,
        key=idempotency.checked_key(idempotency_key),
        input_hash=idempotency.hash_input({"bookingId": str(booking_id)}),
    )

    async def work(database: Any) -> str:
        await memory.lock(database)
        locked = await database.fetchrow(_LOCK, booking_id, user_id, user.is_organiser)
        if locked is None:
            raise Refusal(Code.NOT_FOUND, "There is no such booking.")
        if (known := await memory.recall(database)) is not None:
            return str(known["requestedAt"])
        if locked["cancelled_at"] is not None:
            raise Refusal(Code.BAD_REQUEST, "This booking is cancelled, so there is no mail of it to send again.")
        message_id = uuid4()
        row = await database.fetchrow(f"{booking_messages.BOOKING_WITH_CUSTOMER} where b.booking_id = $1", booking_id)
        message = booking_messages.mail_requested(
            row, message_id=message_id, correlation_id=correlation_id, requested_at=locked["locked_at"]
        )
        await database.execute(
            booking_messages.INSERT_MESSAGE, message_id, booking_id, message.to_json(), correlation_id
        )
        await database.execute(
            "update bookings set mail_requested_at = $2 where booking_id = $1", booking_id, locked["locked_at"]
        )
        requested_at = instant(locked["locked_at"])
        await memory.keep(database, {"requestedAt": requested_at})
        return requested_at

    return await transact(pool, work)
