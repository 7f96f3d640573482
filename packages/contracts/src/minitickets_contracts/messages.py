"""Event messages as they travel through SNS and SQS: versioned JSON, at most 200 KiB, unknown fields ignored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self, TypedDict

from minitickets_contracts import fields, keys
from minitickets_contracts.bodies import document_of, message_body, message_document, string

MAX_TOTAL_MINOR = 10**12


@dataclass(frozen=True, kw_only=True)
class Customer:
    """Whom a message is about. ``email`` is where the mail goes."""

    user_id: str
    email: str
    name: str

    def __post_init__(self) -> None:
        fields.uuid("customer.userId", self.user_id)
        fields.email("customer.email", self.email)
        fields.text("customer.name", self.name, longest=200)


@dataclass(frozen=True, kw_only=True)
class BookedEvent:
    """The event as it was when the message was written. ``starts_at`` is the venue's local time with its UTC offset.

    ``sequence`` counts how often the event had moved by then: whoever keeps a date keeps that of the highest.
    """

    event_id: str
    title: str
    venue: str
    starts_at: str
    time_zone: str
    sequence: int = 0

    def __post_init__(self) -> None:
        fields.uuid("event.eventId", self.event_id)
        fields.text("event.title", self.title, longest=200)
        fields.text("event.venue", self.venue, longest=200)
        fields.starts_at("event.startsAt", self.starts_at)
        fields.time_zone("event.timeZone", self.time_zone)
        fields.integer("event.sequence", self.sequence, least=0, most=keys.MAX_SEQUENCE)


@dataclass(frozen=True, kw_only=True)
class PreviousSchedule:
    """When and where an event was to be before it moved. ``starts_at`` as in BookedEvent."""

    starts_at: str
    time_zone: str
    venue: str

    def __post_init__(self) -> None:
        fields.starts_at("previous.startsAt", self.starts_at)
        fields.time_zone("previous.timeZone", self.time_zone)
        fields.text("previous.venue", self.venue, longest=200)


@dataclass(frozen=True, kw_only=True)
class BookingMessage:
    """What every message about a booking carries. ``message_id`` is the id of its outbox row: it names the publication.

    ``total_minor`` is in minor units of ``currency`` (cents). ``occurred_at`` is ISO 8601 with an offset.
    """

    TYPE: ClassVar[str]
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
        return message_body(self._document())

    @classmethod
    def from_json(cls, body: str) -> Self:
        """The message in ``body``. Raises ContractError, which names the field, for anything that is not one."""
        return cls(**_booking_fields(document_of(cls.TYPE, cls.VERSION, body)))

    def _document(self) -> dict[str, object]:
        return {
            "type": self.TYPE,
            "version": self.VERSION,
            "messageId": self.message_id,
            "bookingId": self.booking_id,
            "correlationId": self.correlation_id,
            "occurredAt": self.occurred_at,
            "customer": _customer_document(self.customer),
            "event": {
                "eventId": self.event.event_id,
                "title": self.event.title,
                "venue": self.event.venue,
                "startsAt": self.event.starts_at,
                "timeZone": self.event.time_zone,
                "sequence": self.event.sequence,
            },
            "seats": list(self.seats),
            "totalMinor": self.total_minor,
            "currency": self.currency,
        }


@dataclass(frozen=True, kw_only=True)
class BookingConfirmed(BookingMessage):
    """A booking was committed."""

    TYPE: ClassVar[str] = "booking.confirmed"

    @property
    def job_key(self) -> str:
        """Names the business action, so that two publications are one job."""
        return keys.booking_confirmed_job_key(self.booking_id)


@dataclass(frozen=True, kw_only=True)
class BookingMailRequested(BookingMessage):
    """Somebody asked for the mail of a booking again; everything else is as it stands now."""

    TYPE: ClassVar[str] = "booking.mail-requested"

    @property
    def job_key(self) -> str:
        """Names the request: the record of the first mail stays."""
        return keys.booking_mail_requested_job_key(self.message_id)


@dataclass(frozen=True, kw_only=True)
class EventMoved(BookingMessage):
    """The event of a booking got another start, zone or venue: ``event`` is the new one, ``previous`` what was."""

    TYPE: ClassVar[str] = "event.moved"

    previous: PreviousSchedule

    def __post_init__(self) -> None:
        super().__post_init__()
        fields.integer("event.sequence", self.event.sequence, least=1, most=keys.MAX_SEQUENCE)

    @property
    def job_key(self) -> str:
        """Names the move and the booking."""
        return keys.event_moved_job_key(self.booking_id, self.event.sequence)

    @classmethod
    def from_json(cls, body: str) -> Self:
        """As BookingMessage.from_json."""
        document = document_of(cls.TYPE, cls.VERSION, body)
        previous = fields.mapping("previous", fields.required("", document, "previous"))
        return cls(
            **_booking_fields(document),
            previous=PreviousSchedule(
                starts_at=string("previous.", previous, "startsAt"),
                time_zone=string("previous.", previous, "timeZone"),
                venue=string("previous.", previous, "venue"),
            ),
        )

    def _document(self) -> dict[str, object]:
        previous = {
            "startsAt": self.previous.starts_at,
            "timeZone": self.previous.time_zone,
            "venue": self.previous.venue,
        }
        return {**super()._document(), "previous": previous}


@dataclass(frozen=True, kw_only=True)
class BookingCancelled(BookingMessage):
    """A booking was cancelled at ``cancelled_at`` (ISO 8601 with an offset): its seats are free, its tickets void."""

    TYPE: ClassVar[str] = "booking.cancelled"

    cancelled_at: str

    def __post_init__(self) -> None:
        super().__post_init__()
        fields.instant("cancelledAt", self.cancelled_at)

    @property
    def job_key(self) -> str:
        """Names the business action."""
        return keys.booking_cancelled_job_key(self.booking_id)

    @classmethod
    def from_json(cls, body: str) -> Self:
        """As BookingMessage.from_json."""
        document = document_of(cls.TYPE, cls.VERSION, body)
        return cls(**_booking_fields(document), cancelled_at=string("", document, "cancelledAt"))

    def _document(self) -> dict[str, object]:
        return {**super()._document(), "cancelledAt": self.cancelled_at}


@dataclass(frozen=True, kw_only=True)
class PasswordResetRequested:
    """Somebody asked to set the customer's password anew. ``token`` is secret; ``expires_at`` is as ``occurred_at``."""

    TYPE: ClassVar[str] = "password.reset-requested"
    VERSION: ClassVar[int] = 1

    message_id: str
    correlation_id: str
    occurred_at: str
    customer: Customer
    token: str = field(repr=False)
    expires_at: str

    def __post_init__(self) -> None:
        fields.uuid("messageId", self.message_id)
        fields.correlation_id("correlationId", self.correlation_id)
        fields.instant("occurredAt", self.occurred_at)
        fields.reset_token("token", self.token)
        fields.instant("expiresAt", self.expires_at)

    @property
    def job_key(self) -> str:
        """Names the request, which alone has this token."""
        return keys.password_reset_requested_job_key(self.message_id)

    def to_json(self) -> str:
        """The message's body. Raises ContractError if it would be larger than a message may be."""
        return message_body(
            {
                "type": self.TYPE,
                "version": self.VERSION,
                "messageId": self.message_id,
                "correlationId": self.correlation_id,
                "occurredAt": self.occurred_at,
                "customer": _customer_document(self.customer),
                "token": self.token,
                "expiresAt": self.expires_at,
            }
        )

    @classmethod
    def from_json(cls, body: str) -> Self:
        """The message in ``body``. Raises ContractError, which names the field, for anything that is not one."""
        document = document_of(cls.TYPE, cls.VERSION, body)
        return cls(
            message_id=string("", document, "messageId"),
            correlation_id=string("", document, "correlationId"),
            occurred_at=string("", document, "occurredAt"),
            customer=_customer(document),
            token=string("", document, "token"),
            expires_at=string("", document, "expiresAt"),
        )


def message_type(body: str) -> str:
    """The ``type`` of the message in ``body``, by which a consumer tells its own from what it acknowledges unread."""
    return fields.text("type", fields.required("", message_document(body), "type"), longest=100)


class BookingFields(TypedDict):
    """What every message about a booking is made of."""

    message_id: str
    booking_id: str
    correlation_id: str
    occurred_at: str
    customer: Customer
    event: BookedEvent
    seats: tuple[str, ...]
    total_minor: int
    currency: str


def _booking_fields(document: Mapping[str, object]) -> BookingFields:
    event = fields.mapping("event", fields.required("", document, "event"))
    return {
        "message_id": string("", document, "messageId"),
        "booking_id": string("", document, "bookingId"),
        "correlation_id": string("", document, "correlationId"),
        "occurred_at": string("", document, "occurredAt"),
        "customer": _customer(document),
        "event": BookedEvent(
            event_id=string("event.", event, "eventId"),
            title=string("event.", event, "title"),
            venue=string("event.", event, "venue"),
            starts_at=string("event.", event, "startsAt"),
            time_zone=string("event.", event, "timeZone"),
            # Absent in what was written before events could move.
            sequence=fields.integer("event.sequence", event.get("sequence", 0), least=0, most=keys.MAX_SEQUENCE),
        ),
        "seats": fields.seats("seats", fields.required("", document, "seats")),
        "total_minor": fields.integer(
            "totalMinor", fields.required("", document, "totalMinor"), least=0, most=MAX_TOTAL_MINOR
        ),
        "currency": string("", document, "currency"),
    }


def _customer(document: Mapping[str, object]) -> Customer:
    customer = fields.mapping("customer", fields.required("", document, "customer"))
    return Customer(
        user_id=string("customer.", customer, "userId"),
        email=string("customer.", customer, "email"),
        name=string("customer.", customer, "name"),
    )


def _customer_document(customer: Customer) -> dict[str, str]:
    return {"userId": customer.user_id, "email": customer.email, "name": customer.name}
