"""Dead letters sent again, as an operator does: new message ids, the same bodies."""

import json
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


def move_as_told(
    platform: RunningPlatform,
    *,
    SourceArn: str,  # noqa: N803 - SQS's names
    MaxNumberOfMessagesPerSecond: int,  # noqa: N803 - AWS's own name
) -> list[str]:
    """What SQS does for StartMessageMoveTask without a destination, which the emulator does not know: each letter goes
    to the queue that it died in, as a new message, so many a second. The letters, once all are moved."""
    sqs = platform.aws("sqs")
    source = sqs.get_queue_url(QueueName=SourceArn.rpartition(":")[2])["QueueUrl"]
    [destination] = [url for url in sqs.list_queues()["QueueUrls"] if _dies_into(platform, url) == SourceArn]
    moved: list[str] = []
    while letters := sqs.receive_message(QueueUrl=source, MaxNumberOfMessages=1, WaitTimeSeconds=6).get("Messages"):
        for letter in letters:
            sqs.send_message(QueueUrl=destination, MessageBody=letter["Body"])
            sqs.delete_message(QueueUrl=source, ReceiptHandle=letter["ReceiptHandle"])
            moved.append(letter["Body"])
            time.sleep(1 / MaxNumberOfMessagesPerSecond)
    return moved


def _dies_into(platform: RunningPlatform, url: str) -> str | None:
    """The ARN of a queue's own dead-letter queue."""
    found = platform.aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])
    policy = found.get("Attributes", {}).get("RedrivePolicy")
    arn: str | None = None if policy is None else json.loads(policy)["deadLetterTargetArn"]
    return arn


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
