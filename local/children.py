"""The processes that a platform runs, remembered on disk, so that the next start ends what a crash left."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.processes import Child, ProcessError, boot_id, end_group, kernel_start_time
from local.stage_folder import read_json, write_json

# PostgreSQL's shutdown checkpoint and the emulator's state are the long ones; both take under a second here.
_LEFTOVER_SECONDS = 20.0


class Children:
    """Processes by name. Whoever starts one registers it; an exit that nobody asked for calls ``on_exit``."""

    def __init__(self, file: Path, *, say: Callable[[str], None], leftover_seconds: float = _LEFTOVER_SECONDS) -> None:
        self._file = file
        self._leftover_seconds = leftover_seconds
        self._say = say
        self._lock = threading.Lock()
        self._children: dict[str, Child] = {}
        self._stopping: set[str] = set()

    def watch(self, child: Child, *, on_exit: Callable[[int], None] | None = None) -> None:
        """Remember a child, and call ``on_exit`` with its exit code if it ends by itself."""
        with self._lock:
            if child.name in self._children:
                raise ValueError(f"a process named {child.name} runs already")
            self._children[child.name] = child
            self._write()
        threading.Thread(target=self._wait, args=(child, on_exit), name=f"watch {child.name}", daemon=True).start()

    def get(self, name: str) -> Child | None:
        """The running child of that name."""
        with self._lock:
            return self._children.get(name)

    def names(self) -> list[str]:
        """Who runs, oldest first."""
        with self._lock:
            return list(self._children)

    def stop(self, name: str, *, seconds: float) -> None:
        """End a child, if it runs: its stop signal, then SIGKILL to its group after ``seconds``."""
        with self._lock:
            child = self._children.get(name)
            if child is None:
                return
            self._stopping.add(name)
        code = child.stop(seconds)
        if code == -signal.SIGKILL:
            self._say(f"{name} did not end within {seconds:g} s and was killed")
        self._forget(child)

    def stop_all(self, names: list[str], *, seconds: float) -> None:
        """End several at the same time."""
        threads = [threading.Thread(target=self.stop, args=(name,), kwargs={"seconds": seconds}) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def end_leftovers(self) -> None:
        """End what an earlier platform left running, and wait until it has ended.

        On Linux they have their stop signal from its death already and are on their way: they get time first.
        """
        remembered = [entry for entry in self._remembered() if entry["boot"] == boot_id()]
        left = [entry for entry in remembered if _still_runs(entry)]
        if left:
            self._say(
                f"waiting for {', '.join(entry['name'] for entry in left)} of a platform that did not end cleanly"
            )
        if not sys.platform.startswith("linux"):
            _send_stop_signals(left)
        left = _wait_for_end(left, self._leftover_seconds / 2)
        _send_stop_signals(left)
        for entry in _wait_for_end(left, self._leftover_seconds / 2):
            self._say(f"killing {entry['name']} (process {entry['pid']})")
            end_group(entry["pid"])
        for entry in remembered:
            # Its own children (Lambdas of a killed emulator): their group outlives it under its number.
            if kernel_start_time(entry["pid"]) is None:
                end_group(entry["pid"])
        write_json(self._file, [])

    def _remembered(self) -> list[dict[str, Any]]:
        try:
            return list(read_json(self._file) or [])
        except ProcessError as error:
            # A machine that crashed while it was written; its processes went with it.
            self._say(f"{error}; what an earlier platform left running is not known")
            return []

    def _wait(self, child: Child, on_exit: Callable[[int], None] | None) -> None:
        code = _exit_code(child)
        with self._lock:
            asked = child.name in self._stopping or self._children.get(child.name) is not child
        if asked:
            return
        child.end_group()  # nothing of it stays behind
        self._forget(child)
        if on_exit is not None:
            on_exit(code)

    def _forget(self, child: Child) -> None:
        with self._lock:
            self._stopping.discard(child.name)
            if self._children.get(child.name) is child:
                del self._children[child.name]
                # On a full disk the file goes on naming it, which is harmless: its start time tells that it has ended.
                with contextlib.suppress(OSError):
                    self._write()

    def _write(self) -> None:
        write_json(
            self._file,
            [
                {
                    "name": child.name,
                    "pid": child.pid,
                    "boot": boot_id(),
                    "started": kernel_start_time(child.pid),
                    "stop_signal": int(child.stop_signal),
                }
                for child in self._children.values()
            ],
        )


def _exit_code(child: Child) -> int:
    while True:
        try:
            return child.wait(3600)
        except subprocess.TimeoutExpired:
            continue


def _still_runs(entry: dict[str, Any]) -> bool:
    started = kernel_start_time(entry["pid"])
    return started is not None and started == entry["started"]


def _send_stop_signals(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        if _still_runs(entry):
            os.kill(entry["pid"], entry["stop_signal"])


def _wait_for_end(entries: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
    end = time.monotonic() + seconds
    while (entries := [entry for entry in entries if _still_runs(entry)]) and time.monotonic() < end:
        time.sleep(0.02)
    return entries
