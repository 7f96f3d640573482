"""How this function calls AWS: bounded in time, one attempt a call, errors without the values that were sent."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError  # noqa: A004 - botocore's own name

from minitickets_tickets.failures import CallFailed

CONNECT_SECONDS = 1
READ_SECONDS = 2

# boto3 would wait 60 s for a reply, and try again by itself. Here a whole seat is tried again instead (issue.py):
# it knows how much time is left, and that a write whose reply was lost has happened.
CLIENT_CONFIG = Config(
    connect_timeout=CONNECT_SECONDS,
    read_timeout=READ_SECONDS,
    retries={"total_max_attempts": 1, "mode": "standard"},
)

_PASSING_CODES = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)


@contextmanager
def aws_call(action: str) -> Iterator[None]:
    """Turn an error of the call within into CallFailed, which drops its text: that may hold what was sent."""
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        raise CallFailed(action, code, may_pass=status >= 500 or code in _PASSING_CODES) from None
    except BotoCoreError as error:
        may_pass = isinstance(error, HTTPClientError | ConnectionError)
        raise CallFailed(action, type(error).__name__, may_pass=may_pass) from None
