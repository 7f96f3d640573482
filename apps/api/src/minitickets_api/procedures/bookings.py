"""Booking seats."""

from typing import Annotated, Literal

from pydantic import Field

from minitickets_api.procedures.call import Call
from minitickets_api.procedures.fields import (
    MAX_TEXT_CHARACTERS,
    Currency,
    Cursor,
    Id,
    IdempotencyKey,
    PageSize,
    PriceMinor,
    Seats,
)
from minitickets_api.queries import bookings
from minitickets_api.queries.booking_progress import booking_progress
from minitickets_api.services import rate_limits
from minitickets_api.services.booking_decisions import Offer
from minitickets_api.services.bookings import BookingCustomer
from minitickets_api.trpc.registry import Input, Output, Registry


class SeenOffer(Input):
    """What the person was shown of the event."""

    price_minor: PriceMinor
    currency: Currency
    starts_at: Annotated[str, Field(max_length=25)]
    venue: Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)]


class CreateBooking(Input):
    """Which seats of which event. With `offer`, nothing is booked on other terms than those."""

    event_id: Id
    seats: Seats
    offer: SeenOffer | None = None
    idempotency_key: IdempotencyKey


class CancelBooking(Input):
    """Which booking."""

    booking_id: Id
    idempotency_key: IdempotencyKey


class BookingId(Input):
    """Which booking."""

    booking_id: Id


class ResendMail(Input):
    """Which booking's mail."""

    booking_id: Id
    idempotency_key: IdempotencyKey


class MyBookings(Input):
    """A page of the list."""

    cursor: Cursor | None = None
    limit: PageSize = 50


class Booking(Output):
    """`startsAt` is the venue's local time with its UTC offset; `totalMinor` is in minor units of `currency`.

    A cancelled booking keeps the names of the seats that it freed.
    """

    booking_id: str
    event_id: str
    event_title: str
    venue: str
    starts_at: str
    time_zone: str
    seats: list[str]
    total_minor: int
    currency: str
    status: Literal["confirmed", "cancelled"]
    booked_at: str
    cancelled_at: str | None


class BookingWithProgress(Booking):
    """How far it has come: booked, then handed over, then its tickets are ready one by one.

    `handedOver`: every message about it has left for mail and tickets; `parked`: one never will without help.
    `ticketsReady`, of `ticketsTotal`, is null while the tickets cannot be asked for. What became of the mail cannot be
    seen from here.
    """

    handed_over: bool
    parked: bool
    tickets_ready: int | None
    tickets_total: int


class RequestedMail(Output):
    """The mail is on its way, to the address of whoever booked."""

    booking_id: str
    requested_at: str


class BookingList(Output):
    """`nextCursor` is null on the last page."""

    bookings: list[Booking]
    next_cursor: str | None


async def create(call: Call, wanted: CreateBooking) -> Booking:
    """Book all these seats, or none of them. The mail and the tickets follow.

    CONFLICT: some are taken (`seats` names them), the event was changed since it looked like `offer` (the refusal's is
    today's), or the key was used for something else. NOT_FOUND: no such event.
    BAD_REQUEST: no such seat, or the event has begun. The same key and input again: the same booking.
    """
    user = await call.require_session()
    made = await call.services.desk.create(
        customer=BookingCustomer(user_id=user.user_id, email=user.email, name=user.name),
        event_id=wanted.event_id,
        seats=wanted.seats,
        idempotency_key=wanted.idempotency_key,
        correlation_id=call.correlation_id,
        offer=None if wanted.offer is None else Offer(**wanted.offer.model_dump()),
    )
    return Booking.model_validate(made)


async def cancel(call: Call, wanted: CancelBooking) -> Booking:
    """Give the seats back; the tickets are void. Cancelled already: the same answer again.

    NOT_FOUND: you have no such booking.
    """
    user = await call.require_session()
    cancelled = await call.services.desk.cancel(
        user_id=user.user_id,
        booking_id=wanted.booking_id,
        idempotency_key=wanted.idempotency_key,
        correlation_id=call.correlation_id,
    )
    return Booking.model_validate(cancelled)


async def by_id(call: Call, wanted: BookingId) -> BookingWithProgress:
    """Your booking, and how far it has come. NOT_FOUND: you have no such booking."""
    user = await call.require_session()
    found = await booking_progress(
        call.services.database.pool, call.services.tickets, user_id=user.user_id, booking_id=wanted.booking_id
    )
    return BookingWithProgress(
        **Booking.model_validate(found.booking).model_dump(),
        handed_over=found.is_handed_over,
        parked=found.is_parked,
        tickets_ready=found.tickets_ready,
        tickets_total=len(found.booking.seats),
    )


async def resend_mail(call: Call, wanted: ResendMail) -> RequestedMail:
    """Send the mail of a booking again, as things stand now: of your own, or of one of your event. Once a key.

    NOT_FOUND: neither is the case. BAD_REQUEST: it is cancelled. TOO_MANY_REQUESTS: by booking or person;
    `retryAfterSeconds` says when.
    """
    user = await call.require_session()
    await call.services.rate_limits.spend(
        (rate_limits.RESEND_BY_USER, user.user_id),
        # Of both, or a stranger could use up what the owner may ask for.
        (rate_limits.RESEND_BY_BOOKING, f"{user.user_id}\n{wanted.booking_id}"),
    )
    requested_at = await call.services.desk.request_mail(
        user=user,
        booking_id=wanted.booking_id,
        idempotency_key=wanted.idempotency_key,
        correlation_id=call.correlation_id,
    )
    return RequestedMail(booking_id=wanted.booking_id, requested_at=requested_at)


async def mine(call: Call, wanted: MyBookings) -> BookingList:
    """Your bookings, the newest first."""
    user = await call.require_session()
    page = await bookings.mine(
        call.services.database.pool, user_id=user.user_id, cursor=wanted.cursor, limit=wanted.limit
    )
    return BookingList(
        bookings=[Booking.model_validate(booking) for booking in page.bookings], next_cursor=page.next_cursor
    )


def add_to(registry: Registry[Call]) -> None:
    """Register this module's procedures."""
    registry.mutation("bookings.create", session=True)(create)
    registry.mutation("bookings.cancel", session=True)(cancel)
    registry.mutation("bookings.resendMail", session=True)(resend_mail)
    registry.query("bookings.byId", session=True)(by_id)
    registry.query("bookings.mine", session=True)(mine)
