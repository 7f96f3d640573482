"""Who of a batch gets seats: decided on what the database shows under the events' locks. No I/O."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from minitickets_api.queries.bookings import BookingView, instant
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.idempotency import Remembered
from minitickets_api.venue_time import local_start
from minitickets_contracts.messages import BookedEvent, BookingConfirmed, Customer


@dataclass(frozen=True, kw_only=True)
class BookingCustomer:
    """Who books: the session's user, never what a request says. ``email`` gets the mail."""

    user_id: str
    email: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What somebody books on: the price of a seat, in minor units of ``currency``, and when and where it is.

    ``starts_at`` is the venue's local time with its UTC offset.
    """

    price_minor: int
    currency: str
    starts_at: str
    venue: str


@dataclass(frozen=True, kw_only=True)
class BookingRequest:
    """A checked request: 1 to 10 different seat names. The ids are drawn before the first attempt, so that a booking
    keeps them through all attempts. ``offer`` is what the person was shown, if that is known."""

    booking_id: UUID
    message_id: UUID
    user_id: UUID
    event_id: UUID
    customer: BookingCustomer
    seats: tuple[str, ...]
    idempotency_key: str
    input_hash: bytes
    correlation_id: str
    offer: Offer | None = None

    @property
    def key(self) -> tuple[UUID, str]:
        return self.user_id, self.idempotency_key


@dataclass(frozen=True, kw_only=True)
class LockedEvent:
    """An event whose row this transaction has locked; ``locked_at`` is the database's time after that."""

    event_id: UUID
    title: str
    venue: str
    starts_at: datetime
    time_zone: str
    price_minor: int
    currency: str
    is_published: bool
    sequence: int
    locked_at: datetime


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What the database shows under the locks. ``seats`` holds of each wanted seat that exists whether it is taken."""

    events: Mapping[UUID, LockedEvent]
    seats: Mapping[tuple[UUID, str], bool]
    remembered: Mapping[tuple[UUID, str], Remembered]


@dataclass(frozen=True, kw_only=True)
class NewBooking:
    """A booking to insert; ``body`` is its message as it will be published, ``result`` what its key remembers."""

    request: BookingRequest
    view: BookingView
    booked_at: datetime
    body: str
    result: str


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """``outcomes`` are in the order of the requests and hold once ``new`` is committed."""

    outcomes: Sequence[BookingView | Exception]
    new: Sequence[NewBooking]


def decide(requests: Sequence[BookingRequest], situation: Situation) -> Decisions:
    """Decide one after the other, in the order of their coming.

    A seat counts as taken only by a request that was itself accepted, so nobody loses a seat to a batch-mate that is
    refused; and a key that comes twice is one booking.
    """
    taken = {seat for seat, is_taken in situation.seats.items() if is_taken}
    remembered = dict(situation.remembered)
    outcomes: list[BookingView | Exception] = []
    new: list[NewBooking] = []
    for request in requests:
        try:
            if (known := remembered.get(request.key)) is not None:
                outcomes.append(BookingView.from_json(known.answer(request.input_hash)))
                continue
            event = _bookable(request, situation)
            _refuse_taken(request, taken)
            _refuse_another_offer(request, event)
            booking = _new_booking(request, event)
        except Exception as error:  # noqa: BLE001 - it is this request's alone, whatever it is
            outcomes.append(error)
            continue
        taken.update((request.event_id, seat) for seat in request.seats)
        remembered[request.key] = Remembered(input_hash=request.input_hash, result=booking.result)
        outcomes.append(booking.view)
        new.append(booking)
    return Decisions(outcomes=outcomes, new=new)


def new_ids() -> tuple[UUID, UUID]:
    """Ids of a booking and its message. Random, never a sequence: a restored database would issue one twice."""
    return uuid.uuid4(), uuid.uuid4()


def _bookable(request: BookingRequest, situation: Situation) -> LockedEvent:
    event = situation.events.get(request.event_id)
    if event is None or not event.is_published:
        raise Refusal(Code.NOT_FOUND, "There is no such event.")
    if event.starts_at <= event.locked_at:
        raise Refusal(Code.BAD_REQUEST, "This event has begun, so its seats can no longer be booked.")
    unknown = [seat for seat in request.seats if (request.event_id, seat) not in situation.seats]
    if unknown:
        raise Refusal(Code.BAD_REQUEST, f"seats: this event has no seat {', '.join(unknown)}", seats=unknown)
    return event


def _refuse_taken(request: BookingRequest, taken: set[tuple[UUID, str]]) -> None:
    lost = [seat for seat in request.seats if (request.event_id, seat) in taken]
    if lost:
        raise Refusal(Code.CONFLICT, f"Already taken: {', '.join(lost)}. Choose other seats.", seats=lost)


def _refuse_another_offer(request: BookingRequest, event: LockedEvent) -> None:
    """Its organiser may change the event while somebody looks at it: nobody pays a price that they were not shown."""
    now = Offer(
        price_minor=event.price_minor,
        currency=event.currency,
        starts_at=local_start(event.starts_at, event.time_zone),
        venue=event.venue,
    )
    if request.offer not in (None, now):
        raise Refusal(
            Code.CONFLICT,
            "The event has changed since you looked at it: see its price, start and venue again, and book on those.",
            offer={
                "priceMinor": now.price_minor,
                "currency": now.currency,
                "startsAt": now.starts_at,
                "venue": now.venue,
            },
        )


def _new_booking(request: BookingRequest, event: LockedEvent) -> NewBooking:
    total_minor = event.price_minor * len(request.seats)
    starts_at = local_start(event.starts_at, event.time_zone)
    message = BookingConfirmed(
        message_id=str(request.message_id),
        booking_id=str(request.booking_id),
        correlation_id=request.correlation_id,
        occurred_at=instant(event.locked_at),
        customer=Customer(user_id=request.customer.user_id, email=request.customer.email, name=request.customer.name),
        event=BookedEvent(
            event_id=str(event.event_id),
            title=event.title,
            venue=event.venue,
            starts_at=starts_at,
            time_zone=event.time_zone,
            sequence=event.sequence,
        ),
        seats=request.seats,
        total_minor=total_minor,
        currency=event.currency,
    )
    view = BookingView(
        booking_id=str(request.booking_id),
        event_id=str(event.event_id),
        event_title=event.title,
        venue=event.venue,
        starts_at=starts_at,
        time_zone=event.time_zone,
        seats=request.seats,
        total_minor=total_minor,
        currency=event.currency,
        status="confirmed",
        booked_at=instant(event.locked_at),
        cancelled_at=None,
    )
    return NewBooking(
        request=request, view=view, booked_at=event.locked_at, body=message.to_json(), result=view.to_json()
    )
