"""The whole pipeline in one process: the real desk and outbox on a real database, the real consumers on fakes.

Every step is a call, so a test decides the order of all that happens, and how time passes: the database's clock cannot
be turned, so what is written in it is moved back instead.
"""

import asyncio
import io
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from aws_lambda_powertools import Logger

from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.bookings import BookingCustomer, BookingDesk
from minitickets_api.services.outbox_claims import Claim, Delay, OutboxClaims
from minitickets_contracts.messages import BookingConfirmed, message_type
from minitickets_contracts.token import SigningKeys
from tests.faults.ledger import (
    AcceptedMail,
    Acknowledged,
    BookingRow,
    Books,
    JobRecord,
    OutboxRow,
    TicketItem,
    audit,
    report,
)
from tests.faults.simulated_functions import MailFunction, TicketFunction
from tests.faults.simulated_queue import Clock, SimulatedQueue
from tests.fixtures.catalogue import add_customer, add_event
from tests.fixtures.reply_dropper import Loss, ReplyDropper
from tests.fixtures.ticket_fakes import FakeAws

SEATS = tuple(f"A-{number}" for number in range(1, 7))
_KEYS = SigningKeys("k1", {"k1": "key-of-the-state-machine-" + "a" * 32})
_TABLES = "outbox, idempotency_keys, booked_seats, bookings, seats, events, sessions, users"
# Nothing waits longer than 900 s (visibility.py); so often is far more than enough.
_QUIET_SECONDS = 901.0
_MOST_ROUNDS = 60

T = TypeVar("T")


@dataclass
class Wish:
    """What a customer asked for under one key; ``booking_id`` once it is known that it was booked."""

    customer: BookingCustomer
    seats: tuple[str, ...]
    key: str
    booking_id: str | None = None


@dataclass
class Relay:
    """One relay's hands: what it holds, and whether that is published."""

    claims: OutboxClaims
    claim: Claim | None = None
    is_published: bool = False


class SimulatedPlatform:
    """``direct`` is a pool of connections of the test's own; the desk's pool leads through ``dropper``."""

    def __init__(self, runner: asyncio.Runner, *, direct: Any, pool: Any, dropper: ReplyDropper, lease: Any) -> None:
        self._runner = runner
        self._direct = direct
        self._dropper = dropper
        self.clock = Clock()
        self.jobs = SimulatedQueue(clock=self.clock, visibility_seconds=60)
        self.tickets = SimulatedQueue(clock=self.clock, visibility_seconds=180)
        self.mailing = MailFunction(clock=self.clock, queue=self.jobs)
        log = Logger(service=f"tickets-{uuid.uuid4()}", stream=io.StringIO())
        self.issuing = TicketFunction(clock=self.clock, queue=self.tickets, aws=FakeAws(keys=_KEYS), log=log)
        self.relays = [Relay(OutboxClaims(pool=pool, lease=lease)) for _ in range(2)]
        self.wishes: list[Wish] = []
        self.acknowledged: dict[str, Acknowledged] = {}
        self.holders: dict[str, Wish] = {}

        async def prepare() -> tuple[str, list[BookingCustomer], BookingDesk]:
            await direct.execute(f"truncate {_TABLES} cascade")
            event_id = await add_event(direct, seats=SEATS)
            customers = [await add_customer(direct) for _ in range(2)]
            return event_id, customers, BookingDesk(pool=pool, on_commit=lambda: None)

        self.event_id, self.customers, self.desk = self.run(prepare())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    # What customers do

    def book(self, wish: Wish, *, is_heard: bool, fault: str) -> None:
        """Ask for it, now or again. The answer must be the one that the model knows."""
        in_the_way = {seat for seat in wish.seats if self.holders.get(seat, wish) is not wish}

        async def ask() -> Any:
            if fault == "COMMIT's reply is lost":
                self._dropper.losses = [Loss.APPLIED]
            if fault == "connections are severed":
                await self._direct.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and pid <> pg_backend_pid()"
                    " and application_name = 'state-machine-api'"
                )
            try:
                return await self.desk.create(
                    customer=wish.customer,
                    event_id=self.event_id,
                    seats=wish.seats,
                    idempotency_key=wish.key,
                    correlation_id=f"correlation-{wish.key}",
                )
            except Refusal as refusal:
                if refusal.code is not Code.CONFLICT:
                    raise
                return None
            finally:
                self._dropper.losses = []

        view = self.run(ask())
        if view is None:
            assert wish.booking_id is None, "what was booked once is refused now"
            assert in_the_way, f"{wish.seats} are free, and were refused"
            return
        if wish.booking_id is None:
            assert not in_the_way, f"{in_the_way} are sold, and were sold again"
            wish.booking_id = view.booking_id
            self.holders.update(dict.fromkeys(wish.seats, wish))
        assert view.booking_id == wish.booking_id, "one key, two bookings"
        if is_heard and wish.booking_id not in self.acknowledged:
            self.acknowledged[wish.booking_id] = Acknowledged(
                booking_id=view.booking_id,
                event_id=self.event_id,
                seats=tuple(view.seats),
                email=wish.customer.email,
                cancelled=self._is_cancelled(wish),
            )

    def cancel(self, wish: Wish, *, is_heard: bool) -> None:
        """Give the seats back; asked again, it is the same cancellation."""
        booking_id = wish.booking_id
        assert booking_id is not None
        view = self.run(
            self.desk.cancel(
                user_id=wish.customer.user_id,
                booking_id=booking_id,
                idempotency_key=f"cancel-{wish.key}",
                correlation_id=f"correlation-{wish.key}",
            )
        )
        assert view.status == "cancelled"
        for seat in wish.seats:
            if self.holders.get(seat) is wish:
                del self.holders[seat]
        if booking_id in self.acknowledged:
            told = self.acknowledged[booking_id]
            self.acknowledged[booking_id] = replace(told, cancelled=True if is_heard else told.cancelled or None)

    def _is_cancelled(self, wish: Wish) -> bool:
        return any(self.holders.get(seat) is not wish for seat in wish.seats)

    # What relays do

    def claim(self, relay: Relay) -> None:
        found = self.run(relay.claims.take())
        relay.claim, relay.is_published = (found, False) if found.rows else (None, False)

    def publish(self, relay: Relay) -> None:
        """SNS takes all of the claim, and hands each message to both queues."""
        assert relay.claim is not None
        for row in relay.claim.rows:
            self.jobs.send(row.body)
            self.tickets.send(row.body)
        relay.is_published = True

    def mark(self, relay: Relay) -> None:
        """Record the outcome: sent, or (SNS was down) later."""
        assert relay.claim is not None
        ids = [row.message_id for row in relay.claim.rows]
        if relay.is_published:
            self.run(relay.claims.mark_sent(relay.claim, ids))
        else:
            delays = [Delay(message_id=message_id, seconds=60, reason="SNS is down") for message_id in ids]
            self.run(relay.claims.mark_delayed(relay.claim, delays))
        relay.claim = None

    def release(self, relay: Relay) -> None:
        """SIGTERM while it waits for SNS."""
        assert relay.claim is not None
        self.run(relay.claims.release(relay.claim))
        relay.claim = None

    # Time, and the end of all faults

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.run(
            self._direct.execute(
                "update outbox set next_attempt_at = next_attempt_at - make_interval(secs => $1),"
                " lease_until = lease_until - make_interval(secs => $1) where sent_at is null",
                float(seconds),
            )
        )

    def recover(self) -> None:
        """Nothing fails any more: all that is under way comes to its end."""
        for relay in self.relays:
            relay.claim = None  # whoever held it died long ago
        for _ in range(_MOST_ROUNDS):
            self.pass_time(_QUIET_SECONDS)
            self.relay_all()
            while due := self.jobs.visible():
                self.mailing.deliver(due[:10])
            while due := self.tickets.visible():
                self.issuing.deliver(due[0])
            self.jobs.redrive()
            self.tickets.redrive()
            if not self.jobs.messages and not self.tickets.messages and not self.unsent():
                return
        raise AssertionError(f"it does not come to rest: {self.jobs}, {self.tickets}, {self.unsent()} unsent")

    def relay_all(self) -> None:
        """What is due and free is published and recorded; another relay's claim is left to it."""
        while self.relay_one():
            pass

    def relay_one(self) -> bool:
        """One claim, published and recorded by a relay that nothing happens to; whether there was something."""
        relay = Relay(self.relays[0].claims)
        self.claim(relay)
        if relay.claim is None:
            return False
        self.publish(relay)
        self.mark(relay)
        return True

    def unsent(self) -> int:
        """How many messages wait in the outbox."""
        count: int = self.run(self._direct.fetchval("select count(*) from outbox where sent_at is null"))
        return count

    # The books

    def check_seats(self) -> None:
        """At every moment: the database holds exactly the seats that the model knows to be sold."""
        rows = self.run(self._direct.fetch("select seat, booking_id from booked_seats"))
        assert {row["seat"]: str(row["booking_id"]) for row in rows} == {
            seat: wish.booking_id for seat, wish in self.holders.items()
        }

    def check_mails(self) -> None:
        """At every moment: no more mails than one a message, and one for each send that may have to be repeated."""
        told = [(mail["Destination"]["ToAddresses"][0], _text_of(mail)) for mail in self.mailing.ses.accepted]
        extra = len(told) - len(set(told))
        assert extra <= self.mailing.excused, f"{extra} mails too many, {self.mailing.excused} are excused"

    def check_images(self) -> None:
        """At every moment: what is ready has an image."""
        for item in self.issuing.aws.items.values():
            if item["status"]["S"] == "ready":
                assert item["imageKey"]["S"] in self.issuing.aws.objects

    def check_all(self) -> None:
        """At rest: the ledger."""
        findings = audit(self.acknowledged.values(), self.books(), excused_mails=self.mailing.excused)
        assert not findings, report(findings)

    def books(self) -> Books:
        """What is held, for the ledger."""
        bookings = self.run(
            self._direct.fetch(
                "select booking_id, event_id, seats, email, cancelled_at from bookings join users using (user_id)"
            )
        )
        seats = self.run(self._direct.fetch("select event_id, seat, booking_id from booked_seats"))
        outbox = self.run(self._direct.fetch("select booking_id, body, sent_at, last_error, parked_at from outbox"))
        accepted = self.mailing.ses.accepted
        return Books(
            keys=_KEYS,
            bookings={
                str(row["booking_id"]): BookingRow(
                    event_id=str(row["event_id"]),
                    seats=tuple(row["seats"]),
                    email=row["email"],
                    is_cancelled=row["cancelled_at"] is not None,
                )
                for row in bookings
            },
            held_seats={(str(row["event_id"]), row["seat"]): str(row["booking_id"]) for row in seats},
            outbox=[
                OutboxRow(
                    booking_id=str(row["booking_id"]),
                    is_sent=row["sent_at"] is not None,
                    parked=None if row["parked_at"] is None else row["last_error"],
                )
                for row in outbox
                if message_type(row["body"]) == BookingConfirmed.TYPE
            ],
            mails=[
                AcceptedMail(
                    message_id=f"ses-{number}", recipient=mail["Destination"]["ToAddresses"][0], text=_text_of(mail)
                )
                for number, mail in enumerate(accepted, start=1)
            ],
            jobs={
                key: JobRecord(status=item["status"]["S"], result=item["result"]["S"] if "result" in item else None)
                for key, item in self.mailing.table.items.items()
            },
            tickets=[
                TicketItem(
                    booking_id=item["bookingId"]["S"],
                    event_id=item["eventId"]["S"],
                    seat=item["seat"]["S"],
                    status=item["status"]["S"],
                    token=item["qrToken"]["S"],
                    image_key=item["imageKey"]["S"],
                )
                for item in self.issuing.aws.items.values()
            ],
            images={key: stored["Body"] for key, stored in self.issuing.aws.objects.items()},
        )


def _text_of(mail: dict[str, Any]) -> str:
    text: str = mail["Content"]["Simple"]["Body"]["Text"]["Data"]
    return text
