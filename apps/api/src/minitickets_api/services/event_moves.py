"""Telling the people who booked an event that it moved."""

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from minitickets_api.services import booking_messages
from minitickets_contracts.messages import PreviousSchedule

# The event's row, which its mover has locked, keeps new bookings out. These locks wait for bookings that are being
# cancelled, and leave them out: nobody is told of a new date after their cancellation, nor cancels with the old one.
_LIVE_BOOKINGS = (
    f"{booking_messages.BOOKING_WITH_CUSTOMER}"
    " where b.event_id = $1 and b.cancelled_at is null order by b.booking_id for share of b"
)
# A hundredth of a second of work: neither other requests nor the database, which ends idle transactions, wait long.
_AT_A_TIME = 200
_INSERT = """
insert into outbox (outbox_id, booking_id, body, correlation_id)
select outbox_id, booking_id, body, $4 from unnest($1::uuid[], $2::uuid[], $3::text[]) as m(outbox_id, booking_id, body)
"""


async def announce_move(
    database: Any, *, event_id: UUID, previous: PreviousSchedule, moved_at: datetime, correlation_id: str
) -> int:
    """Put a message for each booking that is not cancelled into the outbox; how many.

    Call it in the transaction that moves the event, after its update.
    """
    rows = await database.fetch(_LIVE_BOOKINGS, event_id)
    for start in range(0, len(rows), _AT_A_TIME):
        part = rows[start : start + _AT_A_TIME]
        message_ids = [uuid4() for _ in part]
        bodies = [
            booking_messages.moved(
                row, message_id=message_id, correlation_id=correlation_id, moved_at=moved_at, previous=previous
            ).to_json()
            for row, message_id in zip(part, message_ids, strict=True)
        ]
        await database.execute(_INSERT, message_ids, [row["booking_id"] for row in part], bodies, correlation_id)
    return len(rows)
