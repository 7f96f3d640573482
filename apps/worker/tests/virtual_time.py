"""Threads that share a clock nobody waits for: real code runs concurrently, deterministically, in virtual seconds."""

import heapq
import threading
from collections.abc import Callable

_STUCK_SECONDS = 60


class VirtualTime:
    """Runs actors one at a time; time jumps to the next waking whenever all sleep."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, threading.Lock]] = []
        self._count = 0
        self._idle = _held()
        self._errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def spawn(self, actor: Callable[[], None]) -> None:
        """An actor that starts at the present virtual time, once ``run`` is called."""
        wake = self._queue(0.0)

        def live() -> None:
            wake.acquire()
            try:
                actor()
            except BaseException as error:  # noqa: BLE001 - raised by run(), in the test's own thread
                self._errors.append(error)
            finally:
                self._idle.release()

        thread = threading.Thread(target=live, daemon=True)
        self._threads.append(thread)
        thread.start()

    def sleep(self, seconds: float) -> None:
        """Called by an actor: the others run meanwhile."""
        wake = self._queue(seconds)
        self._idle.release()
        wake.acquire()

    def run(self) -> None:
        """Until every actor has ended. Raises the first error of an actor."""
        while self._sleepers and not self._errors:
            self.now, _, wake = heapq.heappop(self._sleepers)
            wake.release()
            assert self._idle.acquire(timeout=_STUCK_SECONDS), "an actor neither sleeps nor ends"
        if self._errors:
            raise self._errors[0]

    def _queue(self, seconds: float) -> threading.Lock:
        wake = _held()
        self._count += 1
        heapq.heappush(self._sleepers, (self.now + seconds, self._count, wake))
        return wake


def _held() -> threading.Lock:
    """A lock that one thread waits for and another releases: one actor runs at a time, so it is never released twice.
    A semaphore of the standard library, which is written in Python, costs several times as much."""
    lock = threading.Lock()
    lock.acquire()
    return lock
