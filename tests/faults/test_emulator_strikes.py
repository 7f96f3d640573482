"""Who strikes the emulator: now and then, and each worker that ends with it counts once."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from local.processes import ProcessError, kernel_start_time
from tests.faults.emulator_strikes import EmulatorStriker
from tests.faults.strikes import Struck

pytestmark = pytest.mark.unit

PATIENCE_SECONDS = 30.0


class Workers:
    """Processes that stand for the worker's."""

    def __init__(self) -> None:
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> tuple[int, str]:
        """One more: its number and start time."""
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.running[process.pid] = process
        return process.pid, str(kernel_start_time(process.pid))

    def kill(self, pid: int) -> None:
        process = self.running.pop(pid)
        process.kill()
        process.communicate()


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    for pid in list(workers.running):
        workers.kill(pid)


def strike(
    restart: Callable[[], float], workers: Workers, *, struck: Struck | None = None, end: float = 0.2
) -> tuple[EmulatorStriker, Struck]:
    """A striker that has come to its end: its first restart is due at once, its next after 10 s."""
    struck = struck or Struck()
    striker = EmulatorStriker(
        restart,
        workers=lambda: list(workers.running),
        struck=struck,
        end=time.monotonic() + end,
        seed="1",
        first_seconds=(0.0, 0.0),
        seconds_between=(10.0, 10.0),
    )
    striker.start()
    striker.join(PATIENCE_SECONDS)
    assert not striker.is_alive()
    return striker, struck


def test_a_worker_that_ends_with_the_emulator_is_cut_off_and_one_that_lives_on_or_begins_then_is_not(
    workers: Workers,
) -> None:
    ending, _living = workers.start(), workers.start()

    def restart() -> float:
        workers.kill(ending[0])
        begun = workers.start()
        workers.kill(begun[0])
        return 1.5

    striker, struck = strike(restart, workers)

    assert struck.cut_off == {ending}
    assert struck.seconds_away == [1.5]
    assert striker.failure is None


def test_a_worker_that_was_killed_before_the_emulator_ended_counts_once(workers: Workers) -> None:
    ending = workers.start()

    def restart() -> float:
        workers.kill(ending[0])
        return 1.0

    _, struck = strike(restart, workers, struck=Struck(cut_off={ending}))

    assert len(struck.cut_off) == 1


def test_a_restart_that_fails_is_told_and_is_the_last(workers: Workers) -> None:
    calls: list[float] = []

    def restart() -> float:
        calls.append(time.monotonic())
        raise ProcessError("it could not write what it holds (sqs)")

    striker, struck = strike(restart, workers)

    assert striker.failure == "the emulator was not restarted: it could not write what it holds (sqs)"
    assert len(calls) == 1
    assert struck.seconds_away == []


def test_no_restart_begins_after_the_end(workers: Workers) -> None:
    _, struck = strike(lambda: 1.0, workers, end=-1.0)

    assert struck.seconds_away == []
