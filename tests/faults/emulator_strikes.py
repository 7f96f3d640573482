"""The emulator ended and started again under whatever runs, by SIGTERM alone: it is not what is tested."""

import random
import threading
import time
from collections.abc import Callable, Collection

from local.control_client import RefusedError
from local.processes import ProcessError, kernel_start_time
from tests.faults.strikes import Struck

_FIRST_SECONDS = (8.0, 20.0)  # so that the shortest soak, a minute, has one
_SECONDS_BETWEEN = (25.0, 40.0)


class EmulatorStriker(threading.Thread):
    """Calls ``restart`` (which tells for how many seconds the emulator was away) now and then until ``end``.

    ``workers`` names the worker's processes that run now: those that a restart ends are noted in ``struck``. It ends
    with the first restart that fails, which is then its ``failure``.
    """

    def __init__(
        self,
        restart: Callable[[], float],
        *,
        workers: Callable[[], Collection[int]],
        struck: Struck,
        end: float,
        seed: str,
        first_seconds: tuple[float, float] = _FIRST_SECONDS,
        seconds_between: tuple[float, float] = _SECONDS_BETWEEN,
    ) -> None:
        super().__init__(name="striker of the emulator", daemon=True)
        self.failure: str | None = None
        self._restart = restart
        self._workers = workers
        self._struck = struck
        self._end = end
        self._random = random.Random(seed)  # noqa: S311 - a run that can be repeated
        self._first_seconds = first_seconds
        self._seconds_between = seconds_between

    def run(self) -> None:
        due = time.monotonic() + self._random.uniform(*self._first_seconds)
        while due < self._end:
            time.sleep(max(0.0, due - time.monotonic()))
            # Whatever starts later finds SES away already: nothing that it sends is accepted.
            running = {(pid, kernel_start_time(pid)) for pid in self._workers()}
            try:
                self._struck.seconds_away.append(self._restart())
            except (ProcessError, RefusedError) as error:
                self.failure = f"the emulator was not restarted: {error}"
                return
            for pid, started in running:
                if started is not None and kernel_start_time(pid) != started:
                    self._struck.cut_off.add((pid, started))
            due = time.monotonic() + self._random.uniform(*self._seconds_between)
