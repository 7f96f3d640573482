"""The desk where seats are booked and given back."""

from collections.abc import Callable, Sequence
from uuid import UUID

import asyncpg

from minitickets_api.queries.bookings import BookingView
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import idempotency
from minitickets_api.services.accounts import User
from minitickets_api.services.booking_batches import BookingBatches
from minitickets_api.services.booking_decisions import BookingCustomer, BookingRequest, Offer, new_ids
from minitickets_api.services.cancellations import cancel_booking
from minitickets_api.services.coalescing import Coalescer
from minitickets_api.services.mail_requests import request_mail
from minitickets_contracts import fields
from minitickets_contracts.fields import ContractError

__all__ = ["BookingCustomer", "BookingDesk"]

_NO_BOOKING = "There is no such booking."


class BookingDesk:
    """Books and cancels seats for the requests of this process. Bookings that wait for an event share a transaction.

    ``on_commit`` is called after each transaction that left a message in the outbox.
    """

    def __init__(self, *, pool: asyncpg.Pool, on_commit: Callable[[], None]) -> None:
        self._pool = pool
        self._on_commit = on_commit
        batches = BookingBatches(pool=pool, on_commit=on_commit)
        self._requests: Coalescer[BookingRequest, BookingView] = Coalescer(
            run=batches.run, lane=lambda request: request.event_id
        )

    async def close(self, *, seconds: float = 8.0) -> None:
        """Take nothing new, and decide what waits; what is not decided after ``seconds`` is told so."""
        await self._requests.close(seconds=seconds)

    async def create(
        self,
        *,
        customer: BookingCustomer,
        event_id: str,
        seats: Sequence[str],
        idempotency_key: str,
        correlation_id: str,
        offer: Offer | None = None,
    ) -> BookingView:
        """Book 1 to 10 different ``seats``; the booking and its message are committed when this returns.

        The same key with the same input (in any order of seats) gives the same booking. Raises Refusal, and has then
        changed nothing: BAD_REQUEST (wrong or unknown seats, the event has begun), NOT_FOUND (no such event, or a
        draft), CONFLICT (``seats`` in its details are taken, ``offer`` is another by now, or the key was used for
        another input), UNAUTHORIZED (the account is gone). SERVICE_UNAVAILABLE means undecided: ask again with the
        same key.
        """
        try:
            wanted = fields.seats("seats", list(seats))
        except ContractError as error:
            raise Refusal(Code.BAD_REQUEST, str(error)) from None
        event = _id(event_id, "There is no such event.")
        booking_id, message_id = new_ids()
        request = BookingRequest(
            booking_id=booking_id,
            message_id=message_id,
            user_id=UUID(customer.user_id),
            event_id=event,
            customer=customer,
            seats=wanted,
            idempotency_key=idempotency.checked_key(idempotency_key),
            input_hash=idempotency.hash_input({"eventId": str(event), "seats": sorted(wanted)}),
            correlation_id=correlation_id,
            offer=offer,
        )
        return await self._requests.submit(request)

    async def cancel(self, *, user_id: str, booking_id: str, idempotency_key: str, correlation_id: str) -> BookingView:
        """The booking, cancelled; its seats are free again. See ``cancel_booking`` for what it refuses."""
        view = await cancel_booking(
            self._pool,
            user_id=UUID(user_id),
            booking_id=_id(booking_id, _NO_BOOKING),
            idempotency_key=idempotency.checked_key(idempotency_key),
            correlation_id=correlation_id,
        )
        self._on_commit()
        return view

    async def request_mail(self, *, user: User, booking_id: str, idempotency_key: str, correlation_id: str) -> str:
        """When the mail of the booking was asked for again. See ``mail_requests.request_mail``."""
        requested_at = await request_mail(
            self._pool,
            user=user,
            booking_id=_id(booking_id, _NO_BOOKING),
            idempotency_key=idempotency_key,
            correlation_id=correlation_id,
        )
        self._on_commit()
        return requested_at


def _id(text: str, message: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Refusal(Code.NOT_FOUND, message) from None
