"""When a message that was not done comes back."""

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from minitickets_worker.clients import SQS_CALL_SECONDS
from minitickets_worker.invocation import Invocation
from minitickets_worker.processed_jobs import LEASE_SECONDS

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# Earlier, it could find the lease of its own last attempt.
SHORTEST_SECONDS = LEASE_SECONDS
# Measured by simulation at one mail a second, the sandbox's rate: three receives carry a burst of 200 bookings in each
# of a hundred orders (ADR 0017). Whoever expects more raises maxReceiveCount, or SES's rate: with 450 s here four
# receives carried 300, five 500, six 1,000.
FIRST_LONGEST_SECONDS = 600
LONGEST_SECONDS = 900

_MAX_ENTRIES = 10


def draw_visibility(*, receives: int, random: Random) -> int:
    """Whole seconds until a message comes back that was received ``receives`` times, this time included.

    Spread evenly from 25 s to 600 s, and to 900 s from the second receive on: the queue counts every receive, so those
    that could not be sent must come back when there is room for them, not all together.
    """
    longest = min(LONGEST_SECONDS, FIRST_LONGEST_SECONDS * 2 ** (receives - 1))
    return random.randint(SHORTEST_SECONDS, longest)


class JobsQueue:
    """The queue that the worker consumes."""

    def __init__(self, *, client: "SQSClient", url: str, invocation: Invocation) -> None:
        self._client = client
        self._url = url
        self._invocation = invocation

    def put_back(self, seconds: Mapping[str, int]) -> int:
        """Set when each message, named by its receipt handle, comes back; how many were set.

        For the others the queue's own visibility timeout (60 s) holds: that only costs a receive, so neither an error
        of SQS nor a lack of time may end the invocation, which would bring back the finished messages too.
        """
        entries = list(seconds.items())
        done = 0
        for start in range(0, len(entries), _MAX_ENTRIES):
            if self._invocation.seconds_left() < SQS_CALL_SECONDS:
                break
            try:
                answer = self._client.change_message_visibility_batch(
                    QueueUrl=self._url,
                    Entries=[
                        {"Id": str(position), "ReceiptHandle": handle, "VisibilityTimeout": timeout}
                        for position, (handle, timeout) in enumerate(entries[start : start + _MAX_ENTRIES])
                    ],
                )
            except (BotoCoreError, ClientError):
                break
            done += len(answer.get("Successful", []))
        return done
