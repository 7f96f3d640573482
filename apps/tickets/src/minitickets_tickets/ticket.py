"""A ticket: what one seat of a booking becomes, and what of it is found stored."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from minitickets_contracts import keys
from minitickets_contracts.messages import BookingMessage
from minitickets_contracts.token import NONCE_HEX_DIGITS, SigningKeys, TicketToken

CREATING = "creating"
READY = "ready"


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """One seat's ticket with a token of its own. Times are ISO 8601, ``created_at`` in UTC, the start in local time.

    ``event_sequence`` counts how often the event had moved when it was to be then and there.
    """

    user_id: str
    booking_id: str
    event_id: str
    seat: str
    event_title: str
    venue: str
    event_starts_at: str
    time_zone: str
    event_sequence: int
    correlation_id: str
    created_at: str
    token: str = field(repr=False)

    @classmethod
    def of(cls, message: BookingMessage, seat: str, *, signed_with: SigningKeys, now: datetime) -> Self:
        """The ticket for one of the message's seats; its token has a random nonce, so no two are alike."""
        event = message.event
        token = TicketToken(
            ticket_id=keys.ticket_id(message.booking_id, seat),
            event_id=event.event_id,
            seat=seat,
            key_id=signed_with.current,
            issued_at=int(now.timestamp()),
            nonce=secrets.token_hex(NONCE_HEX_DIGITS // 2),
        )
        return cls(
            user_id=message.customer.user_id,
            booking_id=message.booking_id,
            event_id=event.event_id,
            seat=seat,
            event_title=event.title,
            venue=event.venue,
            event_starts_at=event.starts_at,
            time_zone=event.time_zone,
            event_sequence=event.sequence,
            correlation_id=message.correlation_id,
            created_at=utc_text(now),
            token=token.sign(signed_with),
        )

    @property
    def ticket_id(self) -> str:
        return keys.ticket_id(self.booking_id, self.seat)

    @property
    def event_date(self) -> str:
        return keys.event_date(self.event_starts_at)

    @property
    def event_date_key(self) -> str:
        return keys.event_date_key(self.event_starts_at, self.ticket_id)

    @property
    def image_key(self) -> str:
        return keys.ticket_image_key(self.event_id, self.booking_id, self.seat)


@dataclass(frozen=True, kw_only=True)
class StoredTicket:
    """What the table holds under a ticket's key. An attribute that it lacks is the empty string here, or 0."""

    user_id: str
    ticket_id: str
    booking_id: str
    event_id: str
    seat: str
    status: str
    event_sequence: int
    token: str = field(repr=False)

    @property
    def is_finished(self) -> bool:
        """Whether its image is there: ``ready``, or any state that only a ready ticket reaches."""
        return self.status != CREATING


def utc_text(moment: datetime) -> str:
    """``moment`` as ISO 8601 in UTC, to the millisecond: ``2026-12-31T20:00:00.000Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
