"""Dead letters sent again, as an operator does: new message ids, the same bodies."""

import time
from dataclasses import dataclass

from tests.fixtures.platform import RunningPlatform

_SECONDS = 30.0
_QUEUES = (("jobsDlqUrl", "jobsQueueUrl"), ("ticketsDlqUrl", "ticketsQueueUrl"))


@dataclass(frozen=True, kw_only=True)
class QueueCounts:
    """Messages that wait, and those that are in work or hidden until they come back."""

    waiting: int
    hidden: int


_EMPTY = QueueCounts(waiting=0, hidden=0)


def redrive(platform: RunningPlatform) -> int:
    """Move every dead letter of both functions back into its queue; how many."""
    sqs = platform.aws("sqs")
    moved = 0
    for dead, alive in _QUEUES:
        end = time.monotonic() + _SECONDS
        while queue_counts(platform, dead) != _EMPTY and time.monotonic() < end:
            # Some may be hidden for a moment from whoever looked at them last.
            letters = sqs.receive_message(
                QueueUrl=platform.outputs[dead], MaxNumberOfMessages=10, WaitTimeSeconds=1
            ).get("Messages", [])
            for letter in letters:
                sqs.send_message(QueueUrl=platform.outputs[alive], MessageBody=letter["Body"])
                sqs.delete_message(QueueUrl=platform.outputs[dead], ReceiptHandle=letter["ReceiptHandle"])
                moved += 1
    return moved


def queue_counts(platform: RunningPlatform, queue: str) -> QueueCounts:
    """What a queue holds (``queue``: the stack output with its URL)."""
    attributes = platform.aws("sqs").get_queue_attributes(
        QueueUrl=platform.outputs[queue],
        AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
    )["Attributes"]
    return QueueCounts(
        waiting=int(attributes["ApproximateNumberOfMessages"]),
        hidden=int(attributes["ApproximateNumberOfMessagesNotVisible"]),
    )
