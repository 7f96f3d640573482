"""Lines for the person who watches, with the seconds since the start, and in a file for whoever comes later."""

import contextlib
import os
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path


class Progress:
    """Says lines on standard output and keeps them in ``log``. One clock counts for all processes of a start."""

    def __init__(self, *, since: float | None = None, log: Path | None = None) -> None:
        self.since = time.time() if since is None else since
        self._log = log
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """One line (or a few, for an error)."""
        with self._lock:
            try:
                print(f"{time.time() - self.since:6.1f} s  {text}", flush=True)
            except OSError:
                # Whoever watched is gone; the work goes on, and its exit code counts.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        self.note(text)

    def note(self, text: str) -> None:
        """A line for the log alone."""
        if self._log is None:
            return
        with self._lock, contextlib.suppress(OSError):
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a") as file:
                file.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}\n")
