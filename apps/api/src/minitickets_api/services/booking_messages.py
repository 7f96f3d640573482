"""Messages about a booking, from what the database shows of it now."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from minitickets_api.queries.bookings import instant
from minitickets_api.venue_time import local_start
from minitickets_contracts.messages import (
    BookedEvent,
    BookingCancelled,
    BookingFields,
    BookingMailRequested,
    Customer,
    EventMoved,
    PreviousSchedule,
)

# Under the booking's lock and in a statement of its own: who moves the event locks its bookings too.
BOOKING_WITH_CUSTOMER = """
select b.booking_id, b.seats, b.total_minor, b.currency, b.cancelled_at, u.user_id, u.email, u.name,
    e.event_id, e.title, e.venue, e.starts_at, e.time_zone, e.sequence
from bookings b join users u using (user_id) join events e on e.event_id = b.event_id
"""
INSERT_MESSAGE = "insert into outbox (outbox_id, booking_id, body, correlation_id) values ($1, $2, $3, $4)"


def mail_requested(
    row: Mapping[str, Any], *, message_id: UUID, correlation_id: str, requested_at: datetime
) -> BookingMailRequested:
    """For a row of ``BOOKING_WITH_CUSTOMER``."""
    return BookingMailRequested(**_fields(row, message_id, correlation_id, requested_at))


def cancelled(row: Mapping[str, Any], *, message_id: UUID, correlation_id: str) -> BookingCancelled:
    """For a row of ``BOOKING_WITH_CUSTOMER`` that is cancelled."""
    cancelled_at: datetime = row["cancelled_at"]
    return BookingCancelled(
        **_fields(row, message_id, correlation_id, cancelled_at), cancelled_at=instant(cancelled_at)
    )


def moved(
    row: Mapping[str, Any], *, message_id: UUID, correlation_id: str, moved_at: datetime, previous: PreviousSchedule
) -> EventMoved:
    """For a row of ``BOOKING_WITH_CUSTOMER`` whose event is where it moved to."""
    return EventMoved(**_fields(row, message_id, correlation_id, moved_at), previous=previous)


def _fields(row: Mapping[str, Any], message_id: UUID, correlation_id: str, occurred_at: datetime) -> BookingFields:
    return {
        "message_id": str(message_id),
        "booking_id": str(row["booking_id"]),
        "correlation_id": correlation_id,
        "occurred_at": instant(occurred_at),
        "customer": Customer(user_id=str(row["user_id"]), email=row["email"], name=row["name"]),
        "event": BookedEvent(
            event_id=str(row["event_id"]),
            title=row["title"],
            venue=row["venue"],
            starts_at=local_start(row["starts_at"], row["time_zone"]),
            time_zone=row["time_zone"],
            sequence=row["sequence"],
        ),
        "seats": tuple(row["seats"]),
        "total_minor": row["total_minor"],
        "currency": row["currency"],
    }
