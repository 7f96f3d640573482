"""SQS in memory, in time that a test turns: visibility, receives, dead letters, and messages that come twice."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from minitickets_worker.consumer import Record


@dataclass
class Clock:
    """Seconds since 1970; they pass when a test says so."""

    now: float = 1_000_000.5


@dataclass
class Queued:
    """A message, or a second copy of one: SQS delivers at least once."""

    body: str
    visible_at: float
    message_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    handle: str = field(default_factory=lambda: f"handle-{uuid.uuid4()}")
    receives: int = 0


@dataclass(kw_only=True)
class SimulatedQueue:
    """A queue without order, with a dead-letter queue. It stands in for boto3's client where a worker asks for one."""

    clock: Clock
    visibility_seconds: int
    max_receives: int = 3
    messages: list[Queued] = field(default_factory=list)
    dead: list[Queued] = field(default_factory=list)

    def send(self, body: str) -> None:
        self.messages.append(Queued(body, self.clock.now))

    def visible(self) -> list[Queued]:
        """What could be received now. The receive after the last moves a message to the dead letters."""
        due = [message for message in self.messages if message.visible_at <= self.clock.now]
        for message in due:
            if message.receives >= self.max_receives:
                self.messages.remove(message)
                self.dead.append(message)
        return [message for message in due if message in self.messages]

    def receive(self, wanted: Sequence[Queued]) -> list[Record]:
        """Deliver these of the visible ones, in this order."""
        batch: list[Record] = []
        for message in wanted:
            message.receives += 1
            message.visible_at = self.clock.now + self.visibility_seconds
            batch.append(
                {
                    "messageId": message.message_id,
                    "receiptHandle": message.handle,
                    "body": message.body,
                    "attributes": {"ApproximateReceiveCount": str(message.receives)},
                }
            )
        return batch

    def settle(self, batch: Sequence[Record], failed: Sequence[str]) -> None:
        """As Lambda's poller does with a partial batch response: delete what did not fail."""
        done = {record["messageId"] for record in batch} - set(failed)
        self.messages = [message for message in self.messages if message.message_id not in done]

    def duplicate(self, message: Queued) -> None:
        self.messages.append(Queued(message.body, self.clock.now, message_id=str(uuid.uuid4())))

    def redrive(self) -> None:
        """Move the dead letters back, under new ids."""
        for message in self.dead:
            self.send(message.body)
        self.dead.clear()

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - boto3's names
        for entry in Entries:
            for message in self.messages:
                if message.handle == entry["ReceiptHandle"]:
                    message.visible_at = self.clock.now + entry["VisibilityTimeout"]
        return {"Successful": list(Entries)}
