"""How a command ends when it is told to: as an exception, so that whatever it started is ended too."""

import signal
import sys
from types import FrameType
from typing import NoReturn


def end_on_signals() -> None:
    """SIGTERM becomes SystemExit, SIGINT KeyboardInterrupt: the latter too where it is inherited as ignored, as the
    background jobs of a script inherit it."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
