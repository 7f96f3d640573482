"""Issues the tickets of a booking: reserve, let it follow the event, draw, upload, mark ready; seat by seat.

The table is its own memory: whoever reserves a seat first decides its token, and every attempt draws *that* token
under the same key. So any number of attempts, in any order, cut off anywhere, end with the same image. The event's
time and place are those of its latest move that any message told of, whichever comes first.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from minitickets_contracts.fields import ContractError
from minitickets_contracts.messages import BookingMessage
from minitickets_contracts.token import SigningKeys, TicketToken
from minitickets_tickets.failures import CallFailed, OutOfTime, TicketMismatch
from minitickets_tickets.qr import draw_qr
from minitickets_tickets.ticket import StoredTicket, Ticket, utc_text

# The most calls that one try of a seat makes: the secret twice, PutItem, GetItem, UpdateItem, PutObject, UpdateItem,
# GetItem. At 3 s each (aws.py) they take 24 s; the rest is for drawing. A test holds this against the timeouts.
SECONDS_FOR_A_SEAT = 25
TRIES_OF_A_SEAT = 3
_PAUSE_SECONDS = (0.1, 0.4)


class Tickets(Protocol):
    """Where tickets are kept."""

    def reserve(self, ticket: Ticket) -> StoredTicket: ...

    def follow_event(self, ticket: Ticket) -> bool: ...

    def mark_ready(self, ticket: Ticket, *, token: str, at: str) -> None: ...


class Images(Protocol):
    """Where their images are kept."""

    def put(self, key: str, png: bytes) -> None: ...


class Keys(Protocol):
    """Where the signing keys are kept."""

    def keys(self) -> SigningKeys: ...

    def read_again(self) -> SigningKeys: ...


@dataclass(frozen=True, kw_only=True)
class Issued:
    """How many tickets an attempt made ready, how many it found ready, and how many of all it moved with the event."""

    made: int
    found: int
    moved: int = 0


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class TicketIssuer:
    """Issues tickets with the stores that it is given."""

    tickets: Tickets
    images: Images
    signing: Keys
    now: Callable[[], datetime] = _now
    pause: Callable[[float], None] = time.sleep

    def issue(self, message: BookingMessage, *, seconds_left: Callable[[], float]) -> Issued:
        """Issue every ticket of the booking that is not ready yet, and move each that knows less of its event.

        Raises OutOfTime before a seat that ``seconds_left`` leaves no room for; CallFailed once a seat failed in
        every try; ContractError at once; TicketMismatch at the end, because it concerns one seat and the others'
        tickets need not wait for an operator. What is done stays done: the next attempt goes on.
        """
        seats: list[Issued] = []
        mismatch: TicketMismatch | None = None
        for done, seat in enumerate(message.seats):
            if seconds_left() < SECONDS_FOR_A_SEAT:
                raise OutOfTime(seats_done=done, seats=len(message.seats))
            try:
                seats.append(self._issue_seat_patiently(message, seat, seconds_left))
            except TicketMismatch as error:
                mismatch = mismatch or error
        if mismatch is not None:
            raise mismatch
        return Issued(
            made=sum(each.made for each in seats),
            found=sum(each.found for each in seats),
            moved=sum(each.moved for each in seats),
        )

    def _issue_seat_patiently(self, message: BookingMessage, seat: str, seconds_left: Callable[[], float]) -> Issued:
        """A throttle or a lost reply costs a moment here; left to the queue it would cost its visibility timeout."""
        tries = 0
        while True:
            tries += 1
            try:
                return self._issue_seat(message, seat)
            except CallFailed as failure:
                pause = random.uniform(*_PAUSE_SECONDS)  # noqa: S311 - it spreads load, it guards nothing
                is_last = tries == TRIES_OF_A_SEAT or seconds_left() - pause < SECONDS_FOR_A_SEAT
                if is_last or not failure.may_pass:
                    raise
                self.pause(pause)

    def _issue_seat(self, message: BookingMessage, seat: str) -> Issued:
        ticket = Ticket.of(message, seat, signed_with=self.signing.keys(), now=self.now())
        stored = self.tickets.reserve(ticket)
        self._recognise(stored, ticket)
        is_behind = stored.event_sequence < ticket.event_sequence
        moved = int(is_behind and self.tickets.follow_event(ticket))
        if stored.is_finished:
            return Issued(made=0, found=1, moved=moved)
        self.images.put(ticket.image_key, draw_qr(stored.token))
        self.tickets.mark_ready(ticket, token=stored.token, at=utc_text(self.now()))
        return Issued(made=1, found=0, moved=moved)

    def _recognise(self, stored: StoredTicket, ticket: Ticket) -> None:
        """Raise TicketMismatch unless ``stored`` is ``ticket`` with a token that we signed for it."""
        for field in ("user_id", "ticket_id", "booking_id", "event_id", "seat"):
            if getattr(stored, field) != getattr(ticket, field):
                raise TicketMismatch(ticket.ticket_id, field)
        if stored.token == ticket.token:
            return
        said = self._read(stored)
        if (said.ticket_id, said.event_id, said.seat) != (ticket.ticket_id, ticket.event_id, ticket.seat):
            raise TicketMismatch(ticket.ticket_id, "qrToken")

    def _read(self, stored: StoredTicket) -> TicketToken:
        try:
            return TicketToken.verify(stored.token, self.signing.keys())
        except ContractError:
            # Another process may know keys that came after this one read them.
            keys = self.signing.read_again()
        try:
            return TicketToken.verify(stored.token, keys)
        except ContractError:
            raise TicketMismatch(stored.ticket_id, "qrToken") from None
