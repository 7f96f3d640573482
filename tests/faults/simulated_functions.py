"""The two functions on their queues: the real consumer and the real issuer, on faithful fakes, one call at a time.

Each delivery has a fate: where the process dies, whose reply is lost, who refuses, or who is overtaken while paused.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from aws_lambda_powertools import Logger

from apps.worker.tests.fakes import FakeSes, FakeTable, Fault, Killed, client_error, lost_reply, raising
from apps.worker.tests.worker_under_test import Worker
from minitickets_tickets.batch import process_batch
from minitickets_worker.consumer import Record
from tests.faults.simulated_queue import Clock, Queued, SimulatedQueue
from tests.fixtures.ticket_fakes import FakeAws, FakeProcess, refusal

WORKER_SECONDS = 10.0
_KILL = raising(Killed())
_LOSE = raising(lost_reply())
_THROTTLE_TABLE = raising(client_error("ProvisionedThroughputExceededException"))
# Longer than a lease (25 s) and than the queue's visibility timeout (60 s).
_PAUSE_SECONDS = 70.0


@dataclass
class _Invocation:
    """One invocation; whoever sleeps in it moves the clock."""

    clock: Clock
    ends: float

    def now(self) -> float:
        return self.clock.now

    def seconds_left(self) -> float:
        return self.ends - self.clock.now

    def sleep(self, seconds: float) -> None:
        self.clock.now += seconds


@dataclass(kw_only=True)
class MailFunction:
    """The worker, its table and SES. ``excused`` counts the sends after which one more mail is allowed."""

    clock: Clock
    queue: SimulatedQueue
    table: FakeTable = field(default_factory=FakeTable)
    ses: FakeSes = field(default_factory=FakeSes)
    excused: int = 0

    def deliver(self, messages: Sequence[Queued], fate: str = "well") -> None:
        """One invocation with ``messages``. What ``fate`` says happens to the first call that it fits."""
        batch = self.queue.receive(messages)
        fates: dict[str, Callable[[], None]] = {
            "dies before the lease": lambda: self._on(self.table.writes.before, _KILL),
            "dies after the lease": lambda: self._on(self.table.writes.after, _KILL),
            "dies before SES": lambda: self._on(self.ses.sends.before, _KILL),
            "dies after SES": lambda: self._on(self.ses.sends.after, self._excuse, _KILL),
            "dies before the record": lambda: self._on_second(self.table.writes.before, self._excuse, _KILL),
            "dies after the record": lambda: self._on_second(self.table.writes.after, _KILL),
            "reply of the lease is lost": lambda: self._on(self.table.writes.after, _LOSE),
            "reply of SES is lost": lambda: self._on(self.ses.sends.after, self._excuse, _LOSE),
            "reply of the record is lost": lambda: self._on_second(self.table.writes.after, _LOSE),
            "the table is throttled": lambda: self.table.reads.before.extend([_THROTTLE_TABLE] * 3),
            "SES is throttled": lambda: self._on(
                self.ses.sends.before, raising(client_error("TooManyRequestsException", status=429))
            ),
            "the day's quota is gone": lambda: self._on(
                self.ses.sends.before,
                raising(client_error("LimitExceededException", message="Daily message quota exceeded")),
            ),
            "SES refuses for good": lambda: self._on(self.ses.sends.before, raising(client_error("MessageRejected"))),
            "is overtaken before the lease": lambda: self._on(
                self.table.writes.before, self._overtaken(messages, excused=False)
            ),
            "is overtaken before SES": lambda: self._on(self.ses.sends.before, self._overtaken(messages)),
            "is overtaken before the record": lambda: self._on_second(
                self.table.writes.before, self._overtaken(messages)
            ),
            "well": lambda: None,
        }
        fates[fate]()
        with suppress(Killed):  # what it held comes back after the visibility timeout
            self._run(batch)
        self._heal()

    def _run(self, batch: Sequence[Record]) -> None:
        parts: Any = {"table": self.table, "ses": self.ses, "sqs": self.queue}
        invocation = _Invocation(self.clock, self.clock.now + WORKER_SECONDS)
        worker = Worker(**parts, invocation=invocation, random=Random(int(self.clock.now)))  # noqa: S311 - a run that can be repeated
        self.queue.settle(batch, worker.consume(*batch))

    def _overtaken(self, messages: Sequence[Queued], *, excused: bool = True) -> Fault:
        """The process stops here for so long that another one gets its messages, and finishes them.

        ``excused``: it holds a lease by now, so that it cannot know that its mail is one too many.
        """

        def pause() -> None:
            before = len(self.ses.accepted)
            self.clock.now += _PAUSE_SECONDS
            again = [message for message in self.queue.visible() if message in messages]
            self._run(self.queue.receive(again))
            self.excused += excused and len(self.ses.accepted) > before

        return pause

    def _excuse(self) -> None:
        self.excused += 1

    def _heal(self) -> None:
        for faults in (self.table.reads, self.table.writes, self.ses.sends):
            faults.before.clear()
            faults.after.clear()

    @staticmethod
    def _on(calls: "list[Fault | None]", *faults: Fault) -> None:
        def strike() -> None:
            for fault in faults:
                fault()

        calls.append(strike)

    def _on_second(self, calls: "list[Fault | None]", *faults: Fault) -> None:
        calls.append(None)
        self._on(calls, *faults)


MAIL_FATES = (
    "well",
    "dies before the lease",
    "dies after the lease",
    "dies before SES",
    "dies after SES",
    "dies before the record",
    "dies after the record",
    "reply of the lease is lost",
    "reply of SES is lost",
    "reply of the record is lost",
    "the table is throttled",
    "SES is throttled",
    "the day's quota is gone",
    "SES refuses for good",
    "is overtaken before the lease",
    "is overtaken before SES",
    "is overtaken before the record",
)

TICKET_CALLS = ("PutItem", "PutObject", "UpdateItem")
TICKET_FATES = (
    ("well", ""),
    *((what, call) for what in ("dies before", "dies after", "loses", "is throttled at") for call in TICKET_CALLS),
    ("is overtaken before", "PutObject"),
    ("is overtaken before", "UpdateItem"),
)


@dataclass(kw_only=True)
class TicketFunction:
    """The issuer of tickets, its table and its bucket."""

    clock: Clock
    queue: SimulatedQueue
    aws: FakeAws
    log: Logger

    def deliver(self, message: Queued, fate: tuple[str, str] = ("well", "")) -> None:
        """One invocation with one message, whose first call of the fate's kind has the fate."""
        what, where = fate
        pending = [where]

        def strikes(action: str) -> bool:
            if pending != [action]:
                return False
            pending.clear()
            return True

        def before(action: str) -> None:
            if what == "dies before" and strikes(action):
                raise Killed
            if what == "is throttled at" and strikes(action):
                raise refusal(action, "ThrottlingException")
            if what == "is overtaken before" and strikes(action):
                self._run(self.queue.receive([message]), FakeProcess(aws=self.aws))

        def after(action: str) -> None:
            if what == "dies after" and strikes(action):
                raise Killed
            if what == "loses" and strikes(action):
                raise lost_reply()

        with suppress(Killed):
            self._run(self.queue.receive([message]), FakeProcess(aws=self.aws, before=before, after=after))

    def _run(self, batch: Sequence[Record], process: FakeProcess) -> None:
        response = process_batch(
            {"Records": batch}, issue=process.issuer().issue, logger=self.log, seconds_left=lambda: 30.0
        )
        self.queue.settle(batch, [failure["itemIdentifier"] for failure in response["batchItemFailures"]])
