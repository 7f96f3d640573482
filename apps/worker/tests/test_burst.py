"""The documented burst: 200 bookings at once, one mail a second, three receives; the real worker in virtual time."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from apps.worker.tests.fakes import FakeSes, FakeTable, client_error
from apps.worker.tests.virtual_time import VirtualTime
from apps.worker.tests.worker_under_test import Worker, booking
from minitickets_worker import visibility
from minitickets_worker.consumer import Record

pytestmark = pytest.mark.unit

BOOKINGS = 200
FUNCTIONS = 5
BATCH = 10
FUNCTION_TIMEOUT_SECONDS = 10.0
QUEUE_VISIBILITY_SECONDS = 60
MAX_RECEIVES = 3
SES_CALL_SECONDS = 0.1


@dataclass
class VirtualInvocation:
    """One invocation of ten virtual seconds."""

    time: VirtualTime
    ends: float

    def now(self) -> float:
        return self.time.now

    def seconds_left(self) -> float:
        return self.ends - self.time.now

    def sleep(self, seconds: float) -> None:
        self.time.sleep(seconds)


@dataclass
class Queued:
    """A message in the simulated queue."""

    body: str
    visible_at: float = 0.0
    receives: int = 0


@dataclass
class SimulatedQueue:
    """SQS with a dead-letter queue: each receive counts, and the one after the last moves the message."""

    time: VirtualTime
    random: Random
    max_receives: int
    messages: dict[str, Queued] = field(default_factory=dict)
    dead: list[Queued] = field(default_factory=list)

    def receive(self) -> list[Record]:
        due = [handle for handle, message in self.messages.items() if message.visible_at <= self.time.now]
        self.random.shuffle(due)
        batch: list[Record] = []
        for handle in due:
            message = self.messages[handle]
            if message.receives == self.max_receives:
                self.dead.append(self.messages.pop(handle))
                continue
            message.receives += 1
            message.visible_at = self.time.now + QUEUE_VISIBILITY_SECONDS
            batch.append(
                {
                    "messageId": handle,
                    "receiptHandle": handle,
                    "body": message.body,
                    "attributes": {"ApproximateReceiveCount": str(message.receives)},
                }
            )
            if len(batch) == BATCH:
                break
        return batch

    def redrive(self) -> None:
        """The dead letters come again, under new message ids, their receives not counted."""
        for letter in self.dead:
            self.messages[str(uuid.UUID(int=self.random.getrandbits(128)))] = Queued(letter.body)
        self.dead = []

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
        for entry in Entries:
            self.messages[entry["ReceiptHandle"]].visible_at = self.time.now + entry["VisibilityTimeout"]
        return {"Successful": list(Entries)}


def one_a_second(time: VirtualTime) -> Callable[[], None]:
    """SES's sending rate as a bucket of one mail."""
    last = [-1.0]

    def allow() -> None:
        time.sleep(SES_CALL_SECONDS)
        if time.now - last[0] < 1.0:
            raise client_error("TooManyRequestsException", status=429)
        last[0] = time.now

    return allow


def simulate(
    seed: int,
    *,
    max_receives: int = MAX_RECEIVES,
    bookings: int = BOOKINGS,
    rate: Callable[[VirtualTime], Callable[[], None]] = one_a_second,
    redriven_at: float = float("inf"),
) -> tuple[FakeSes, SimulatedQueue]:
    """All bookings at once, until each message is done or dead. ``rate`` is SES; ``redriven_at`` is when an operator
    sends the dead letters again."""
    random = Random(seed)  # noqa: S311 - a simulation that can be repeated
    time = VirtualTime()
    table, ses = FakeTable(), FakeSes(allow=rate(time))
    queue = SimulatedQueue(time=time, random=random, max_receives=max_receives)
    for _ in range(bookings):
        booking_id = str(uuid.UUID(int=random.getrandbits(128), version=4))
        # In UTC, whose mails take less time to write: it is their number that is tried here.
        message = booking(
            booking_id, email=f"{booking_id}@example.org", time_zone="UTC", starts_at="2027-01-01T04:00:00+00:00"
        )
        queue.messages[booking_id] = Queued(message.to_json())

    def function() -> None:
        fakes: Any = {"table": table, "ses": ses, "sqs": queue, "random": random}
        worker = Worker(invocation=None, **fakes)
        while queue.messages:
            batch = queue.receive()
            if not batch:
                time.sleep(1.0)
                continue
            invocation = VirtualInvocation(time, time.now + FUNCTION_TIMEOUT_SECONDS)
            worker.in_invocation(invocation)
            failed = worker.consume(*batch)
            assert invocation.seconds_left() > 0, "the function ran into its timeout"
            for delivery in batch:
                if delivery["messageId"] not in failed:
                    del queue.messages[delivery["messageId"]]

    for _ in range(FUNCTIONS):
        time.spawn(function)
    time.run()
    if redriven_at < float("inf"):
        time.now = max(time.now, redriven_at)
        queue.redrive()
        for _ in range(FUNCTIONS):
            time.spawn(function)
        time.run()
    return ses, queue


@pytest.mark.parametrize("seed", range(6))
def test_a_burst_of_200_bookings_at_one_mail_a_second_loses_none_to_the_dead_letters(seed: int) -> None:
    ses, queue = simulate(seed)
    assert queue.dead == []
    assert len(set(ses.recipients())) == len(ses.accepted) == BOOKINGS


def test_with_a_fixed_visibility_the_same_burst_would_lose_mails(monkeypatch: pytest.MonkeyPatch) -> None:
    # The control: the simulation can lose mails, so that losing none says something.
    monkeypatch.setattr(visibility, "FIRST_LONGEST_SECONDS", 60)
    monkeypatch.setattr(visibility, "LONGEST_SECONDS", 60)
    _, queue = simulate(0)
    assert len(queue.dead) >= BOOKINGS / 20
