"""Event messages as they travel through SNS and SQS: versioned JSON, at most 200 KiB, unknown fields ignored."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from minitickets_contracts import fields
from minitickets_contracts.fields import ContractError

MAX_MESSAGE_BYTES = 200 * 1024
MAX_TOTAL_MINOR = 10**12


@dataclass(frozen=True, kw_only=True)
class Customer:
    """Who booked. ``email`` is where the mail goes."""

    user_id: str
    email: str
    name: str

    def __post_init__(self) -> None:
        fields.uuid("customer.userId", self.user_id)
        fields.email("customer.email", self.email)
        fields.text("customer.name", self.name, longest=200)


@dataclass(frozen=True, kw_only=True)
class BookedEvent:
    """The event as it was when it was booked. ``starts_at`` is the venue's local time with its UTC offset."""

    event_id: str
    title: str
    venue: str
    starts_at: str
    time_zone: str

    def __post_init__(self) -> None:
        fields.uuid("event.eventId", self.event_id)
        fields.text("event.title", self.title, longest=200)
        fields.text("event.venue", self.venue, longest=200)
        fields.starts_at("event.startsAt", self.starts_at)
        fields.time_zone("event.timeZone", self.time_zone)


@dataclass(frozen=True, kw_only=True)
class BookingConfirmed:
    """A booking was committed. ``message_id`` is the id of its outbox row, so it names the publication, not the job.

    ``total_minor`` is in minor units of ``currency`` (cents). ``occurred_at`` is ISO 8601 with an offset.
    """

    TYPE: ClassVar[str] = "booking.confirmed"
    VERSION: ClassVar[int] = 1

    message_id: str
    booking_id: str
    correlation_id: str
    occurred_at: str
    customer: Customer
    event: BookedEvent
    seats: tuple[str, ...]
    total_minor: int
    currency: str

    def __post_init__(self) -> None:
        fields.uuid("messageId", self.message_id)
        fields.uuid("bookingId", self.booking_id)
        fields.correlation_id("correlationId", self.correlation_id)
        fields.instant("occurredAt", self.occurred_at)
        fields.seats("seats", self.seats)
        fields.integer("totalMinor", self.total_minor, least=0, most=MAX_TOTAL_MINOR)
        fields.currency("currency", self.currency)

    def to_json(self) -> str:
        """The message's body. Raises ContractError if it would be larger than a message may be."""
        body = json.dumps(
            {
                "type": self.TYPE,
                "version": self.VERSION,
                "messageId": self.message_id,
                "bookingId": self.booking_id,
                "correlationId": self.correlation_id,
                "occurredAt": self.occurred_at,
                "customer": {
                    "userId": self.customer.user_id,
                    "email": self.customer.email,
                    "name": self.customer.name,
                },
                "event": {
                    "eventId": self.event.event_id,
                    "title": self.event.title,
                    "venue": self.event.venue,
                    "startsAt": self.event.starts_at,
                    "timeZone": self.event.time_zone,
                },
                "seats": list(self.seats),
                "totalMinor": self.total_minor,
                "currency": self.currency,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        _check_size(body)
        return body

    @classmethod
    def from_json(cls, body: str) -> Self:
        """The message in ``body``. Raises ContractError, which names the field, for anything that is not one."""
        document = message_document(body)
        if fields.required("", document, "type") != cls.TYPE:
            raise ContractError("type", f"must be {cls.TYPE}")
        version = fields.required("", document, "version")
        if isinstance(version, bool) or version != cls.VERSION:
            raise ContractError("version", f"must be {cls.VERSION}; a newer producer needs a newer consumer")
        customer = fields.mapping("customer", fields.required("", document, "customer"))
        event = fields.mapping("event", fields.required("", document, "event"))
        return cls(
            message_id=_string("", document, "messageId"),
            booking_id=_string("", document, "bookingId"),
            correlation_id=_string("", document, "correlationId"),
            occurred_at=_string("", document, "occurredAt"),
            customer=Customer(
                user_id=_string("customer.", customer, "userId"),
                email=_string("customer.", customer, "email"),
                name=_string("customer.", customer, "name"),
            ),
            event=BookedEvent(
                event_id=_string("event.", event, "eventId"),
                title=_string("event.", event, "title"),
                venue=_string("event.", event, "venue"),
                starts_at=_string("event.", event, "startsAt"),
                time_zone=_string("event.", event, "timeZone"),
            ),
            seats=fields.seats("seats", fields.required("", document, "seats")),
            total_minor=fields.integer(
                "totalMinor", fields.required("", document, "totalMinor"), least=0, most=MAX_TOTAL_MINOR
            ),
            currency=_string("", document, "currency"),
        )


def message_document(body: str) -> Mapping[str, object]:
    """The JSON object in ``body``, whatever its type. Raises ContractError for anything else."""
    _check_size(body)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise ContractError("message", "must be JSON") from None
    return fields.mapping("message", document)


def message_type(body: str) -> str:
    """The ``type`` of the message in ``body``, by which a consumer tells its own from what it acknowledges unread."""
    return fields.text("type", fields.required("", message_document(body), "type"), longest=100)


def _string(path: str, document: Mapping[str, object], name: str) -> str:
    value = fields.required(path, document, name)
    if not isinstance(value, str):
        raise ContractError(f"{path}{name}", "must be a string")
    return value


def _check_size(body: str) -> None:
    try:
        size = len(body.encode())
    except UnicodeEncodeError:
        raise ContractError("message", "must be encodable as UTF-8") from None
    if size > MAX_MESSAGE_BYTES:
        raise ContractError("message", f"must have at most {MAX_MESSAGE_BYTES} bytes, has {size}")
