"""Customers who go on booking whatever happens to the platform, and remember what they were told."""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from local.visitor import ApiRefusedError, Visitor
from tests.faults.ledger import Acknowledged

# Answers after which the same request, under the same key, is made again: nothing is known, or nothing was done.
_ASK_AGAIN = frozenset({"UNREACHABLE", "NOT_TRPC", "SERVICE_UNAVAILABLE"})
_PATIENCE_SECONDS = 90.0  # with one request; longer than the longest pause of a process, and its timeouts
_SEATS = (1, 1, 1, 1, 2, 2, 2, 3, 4, 10)
_CONTENDED, _ASKED_TWICE, _CANCELLED = 0.1, 0.2, 0.08  # shares of the bookings


@dataclass
class Hall:
    """The seats of one event. Each is handed to one customer, but those of ``contended``, which all may try."""

    event_id: str
    free: list[str]
    contended: list[str]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, count: int) -> list[str]:
        """So many seats for one customer alone; fewer at the end."""
        with self._lock:
            taken, self.free = self.free[:count], self.free[count:]
        return taken

    def give_back(self, seats: tuple[str, ...]) -> None:
        """They were cancelled: somebody else may have them."""
        with self._lock:
            self.free = [*seats, *self.free]


@dataclass
class Journal:
    """What all customers were told, and when. ``surprises`` are answers that nobody should get."""

    acknowledged: dict[str, Acknowledged] = field(default_factory=dict)
    acknowledged_at: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    undecided: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, booking: Acknowledged) -> None:
        """A booking was acknowledged, or what is known of its cancellation changed."""
        with self._lock:
            if booking.booking_id not in self.acknowledged:
                self.acknowledged_at.append(time.monotonic())
            self.acknowledged[booking.booking_id] = booking

    def note_answer(self, code: str) -> None:
        with self._lock:
            self.answers[code] += 1

    def note_undecided(self) -> None:
        with self._lock:
            self.undecided += 1

    def note_surprise(self, text: str) -> None:
        with self._lock:
            self.surprises.append(text)


class Customer(threading.Thread):
    """Books every ``seconds`` seconds until ``end`` (of the monotonic clock). ``seed`` decides what it wants."""

    def __init__(
        self, visitor: Visitor, *, email: str, hall: Hall, journal: Journal, seconds: float, end: float, seed: str
    ) -> None:
        super().__init__(name=f"customer {email}", daemon=True)
        self._visitor = visitor
        self._email = email
        self._hall = hall
        self._journal = journal
        self._seconds = seconds
        self._end = end
        self._random = random.Random(seed)  # noqa: S311 - a run that can be repeated

    def run(self) -> None:
        due = time.monotonic() + self._random.uniform(0, self._seconds)
        while (now := time.monotonic()) < self._end:
            if now < due:
                time.sleep(min(due, self._end) - now)
                continue
            # Whoever was held up does not make up for it: that would be a burst of its own.
            due = max(due + self._seconds, now)
            try:
                self._visit()
            except ApiRefusedError as error:
                self._journal.note_surprise(str(error))

    def _visit(self) -> None:
        if self._hall.contended and self._random.random() < _CONTENDED:
            self._try_contended_seat()
            return
        seats = self._hall.take(self._random.choice(_SEATS))
        if not seats:
            return
        key = str(uuid.uuid4())
        booking = self._book(seats, key)
        if booking is None:
            return
        if self._random.random() < _ASKED_TWICE:
            again = self._book(seats, key)
            if again is not None and again != booking:
                self._journal.note_surprise(f"one key is two bookings: {booking.booking_id}, {again.booking_id}")
        if self._random.random() < _CANCELLED:
            self._cancel(booking)

    def _try_contended_seat(self) -> None:
        seat = self._random.choice(self._hall.contended)
        try:
            self._book([seat], str(uuid.uuid4()))
        except ApiRefusedError as error:
            if error.code != "CONFLICT":
                raise

    def _book(self, seats: list[str], key: str) -> Acknowledged | None:
        """The booking; None if nothing is known of it after all patience. ApiRefusedError if it is refused."""
        told = self._patiently(
            lambda: self._visitor.book(event_id=self._hall.event_id, seats=seats, idempotency_key=key)
        )
        if told is None:
            return None
        booking = Acknowledged(
            booking_id=told["bookingId"], event_id=self._hall.event_id, seats=tuple(told["seats"]), email=self._email
        )
        self._journal.note(booking)
        return booking

    def _cancel(self, booking: Acknowledged) -> None:
        wanted = {"bookingId": booking.booking_id, "idempotencyKey": str(uuid.uuid4())}
        # From the first attempt on nobody can say, until an answer does.
        self._journal.note(replace(booking, cancelled=None))
        if self._patiently(lambda: self._visitor.mutate("bookings.cancel", wanted)) is None:
            return
        self._journal.note(replace(booking, cancelled=True))
        self._hall.give_back(booking.seats)

    def _patiently(self, ask: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                answer = ask()
            except ApiRefusedError as error:
                self._journal.note_answer(error.code)
                if error.code not in _ASK_AGAIN:
                    raise
                if time.monotonic() > give_up:
                    self._journal.note_undecided()
                    return None
                time.sleep(self._random.uniform(0.1, 0.6))
            else:
                self._journal.note_answer("OK")
                return answer
