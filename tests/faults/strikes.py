"""What strikes a running platform: its processes killed or paused, at random, as a seed decides."""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from local.processes import kernel_start_time
from local.stage_folder import StageFolder, read_json

API, WORKER, TICKETS, POSTGRES, BACKEND, VALKEY = "API", "worker", "tickets function", "Postgres", "backend", "Valkey"

# How often each is chosen, and for how long it is paused (None: it is killed).
_PLAN: tuple[tuple[int, str, tuple[float, float] | None], ...] = (
    (24, API, None),
    (8, API, (0.5, 6.0)),
    (2, API, (31.0, 34.0)),  # past the lease of the relay's claim
    (20, WORKER, None),
    (5, WORKER, (2.0, 40.0)),  # past the function's timeout and its lease
    (8, TICKETS, None),
    (4, TICKETS, (2.0, 40.0)),
    (8, POSTGRES, None),
    (4, POSTGRES, (0.5, 6.0)),
    (5, BACKEND, None),
    (6, VALKEY, None),
    (4, VALKEY, (0.5, 6.0)),
)


@dataclass
class Struck:
    """What was done so far, by victim.

    ``cut_off`` are the worker's processes that were killed, alone or with the emulator: their numbers and kernel start
    times. Each had at most one send in flight. ``seconds_away`` is how long the emulator was, at each restart.
    """

    killed: Counter[str] = field(default_factory=Counter)
    paused: Counter[str] = field(default_factory=Counter)
    cut_off: set[tuple[int, str]] = field(default_factory=set)
    seconds_away: list[float] = field(default_factory=list)

    def note_kill(self, victim: str, pid: int, started: str | None) -> None:
        """A process was sent SIGKILL; ``started`` is None if it had ended by itself."""
        self.killed[victim] += 1
        if victim == WORKER and started is not None:
            self.cut_off.add((pid, started))

    def __str__(self) -> str:
        killed = ", ".join(f"{victim} {times}" for victim, times in self.killed.most_common())
        paused = ", ".join(f"{victim} {times}" for victim, times in self.paused.most_common())
        away = ", ".join(f"{seconds:.1f} s" for seconds in self.seconds_away)
        return (
            f"{self.killed.total()} kills ({killed}), {self.paused.total()} pauses ({paused}), "
            f"{len(self.seconds_away)} restarts of the emulator (away for {away})"
        )


class Striker(threading.Thread):
    """Strikes about every ``seconds`` seconds until ``end``. Whatever it paused goes on when it ends."""

    def __init__(self, folder: StageFolder, *, seconds: float, end: float, seed: str) -> None:
        super().__init__(name="striker", daemon=True)
        self.struck = Struck()
        self._folder = folder
        self._seconds = seconds
        self._end = end
        self._random = random.Random(seed)  # noqa: S311 - a run that can be repeated
        self._pauses: list[threading.Thread] = []
        self._over = threading.Event()

    def run(self) -> None:
        while time.monotonic() < self._end:
            weights = [weight for weight, _, _ in _PLAN]
            _, victim, pause = self._random.choices(_PLAN, weights)[0]
            found = sorted(processes(self._folder, victim))
            if found:
                self._strike(victim, self._random.choice(found), pause)
            time.sleep(self._random.uniform(0.5, 1.5) * self._seconds)
        self._over.set()
        for resumed in self._pauses:
            resumed.join()

    def _strike(self, victim: str, pid: int, pause: tuple[float, float] | None) -> None:
        if pause is None:
            started_at = kernel_start_time(pid)
            if _signal(pid, signal.SIGKILL):
                self.struck.note_kill(victim, pid, started_at)
            return
        # A server of many processes stands still only with all of them.
        paused = [pid, *_children(pid)] if victim == POSTGRES else [pid]
        started = {each: kernel_start_time(each) for each in paused}
        if not all(_signal(each, signal.SIGSTOP) for each in paused):
            _go_on(started)
            return
        self.struck.paused[victim] += 1
        seconds = self._random.uniform(*pause)

        def go_on_later() -> None:
            self._over.wait(seconds)
            _go_on(started)

        resumed = threading.Thread(target=go_on_later, name=f"pause of {victim}", daemon=True)
        resumed.start()
        self._pauses.append(resumed)


def processes(folder: StageFolder, victim: str) -> Iterator[int]:
    """The processes of a kind that run on a platform now."""
    children = {entry["name"]: int(entry["pid"]) for entry in read_json(folder.path / "children.json") or []}
    if victim in (POSTGRES, BACKEND):
        servers = [pid for name, pid in children.items() if name.startswith("postgres:")]
        if victim == POSTGRES:
            yield from servers
        else:
            yield from (each for pid in servers for each in _children(pid) if " idle" in _command(each))
    elif victim == VALKEY:
        yield from (pid for name, pid in children.items() if name.startswith("valkey:"))
    elif victim == API:
        yield from (pid for name, pid in children.items() if ".api." in name)
    else:
        wanted = b"-worker" if victim == WORKER else b"-tickets"
        for pid in _children(children.get("emulator", 0)):
            if _variable(pid, b"AWS_LAMBDA_FUNCTION_NAME").endswith(wanted):
                yield pid


def _signal(pid: int, number: signal.Signals) -> bool:
    """Whether it could be sent: the process may have ended a moment ago."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _go_on(started: dict[int, str | None]) -> None:
    for pid, start in started.items():
        if start is not None and kernel_start_time(pid) == start:  # a number can be another's by now
            _signal(pid, signal.SIGCONT)


def _children(parent: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{parent}/task").glob("*/children") if parent else ():
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in task.read_text().split()]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _variable(pid: int, name: bytes) -> bytes:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return b""
    return next((line.partition(b"=")[2] for line in variables if line.startswith(name + b"=")), b"")
