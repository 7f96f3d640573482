"""The time that one invocation has."""

import time
from typing import Protocol

MESSAGE_SECONDS = 5.0
"""A message is started, and a throttled send repeated, only while this much time is left.

Every call of one message, each lasting until its time-out, fits into it (``clients``), so the function reports what it
did not do instead of being killed in the middle of a send.
"""


class Invocation(Protocol):
    """What the worker asks of time; seconds everywhere."""

    def now(self) -> float:
        """Seconds since 1970."""

    def seconds_left(self) -> float:
        """Seconds until Lambda kills the invocation."""

    def sleep(self, seconds: float) -> None:
        """Wait inside the invocation."""


class LambdaContext(Protocol):
    """The part of Lambda's context object that the worker reads."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda kills the invocation."""


class LambdaInvocation:
    """The invocation that Lambda's context object describes."""

    def __init__(self, context: LambdaContext) -> None:
        self._context = context

    def now(self) -> float:
        return time.time()

    def seconds_left(self) -> float:
        return self._context.get_remaining_time_in_millis() / 1000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
