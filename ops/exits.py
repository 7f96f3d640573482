"""How a command of ours ends: 0 done, 1 failed on the way or declined, 2 refused with nothing changed."""

import functools
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec

import click

from ops.refusal import Failure, Refusal

Arguments = ParamSpec("Arguments")


def exits(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Turn a Refusal or a Failure into its line on stderr and its exit code. A SIGTERM ends us as Ctrl-C does."""

    @functools.wraps(command)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            command(*args, **kwargs)
        except (Refusal, Failure) as ending:
            click.echo(f"error: {ending}", err=True)
            sys.exit(ending.exit_code)
        finally:
            signal.signal(signal.SIGTERM, before)

    return wrapped


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
