"""What AWS refuses, turned into the handlers' error: its own code and words, and never the values that were sent."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from local.handlers.handler import HandlerError
from local.processes import ProcessError, what_failed

T = TypeVar("T")

_ABSENT = re.compile(r"NotFound|NonExistent|NoSuch|DoesNotExist|^404$|ResourceNotFound|UnknownResource")


def code_of(error: ClientError) -> str:
    """AWS's error code, such as ``ResourceInUseException``."""
    return str(error.response["Error"]["Code"])


def says_absent(error: ClientError) -> bool:
    """Whether AWS says that what was asked for does not exist."""
    return bool(_ABSENT.search(code_of(error)))


def found(look: Callable[[], T]) -> T | None:
    """What ``look`` returns, or None if AWS says that there is no such thing."""
    try:
        return look()
    except ClientError as error:
        if says_absent(error):
            return None
        raise


def gone(remove: Callable[[], object]) -> None:
    """Call ``remove``; that the thing is gone already is what it is for."""
    found(remove)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise every refusal inside as HandlerError."""
    try:
        yield
    except ClientError as error:
        raise HandlerError(f"{code_of(error)}: {error.response['Error'].get('Message', '')}") from error
    except BotoCoreError as error:
        # botocore's own validation prints the values, which may be secrets.
        raise HandlerError(re.sub(r", value: .*?(, (?=type|valid)|$)", r"\1", str(error), flags=re.M)) from None
    except ProcessError as error:
        raise HandlerError(str(error)) from error
    except OSError as error:
        raise HandlerError(f"this machine: {what_failed(error)}") from error
