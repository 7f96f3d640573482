"""Requests that wait for the same thing share one run; each gets its own outcome (ADR 0007)."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Generic, TypeVar

from minitickets_api.refusals import Code, Refusal

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")

MAX_WAITING = 5_000
# A commit takes milliseconds. This is a little less than the wait for a row that somebody else has locked
# (database.py, 5 s), which would otherwise be every neighbour's wait, batch after batch.
SLOW_SECONDS = 4.0
_MAX_SLOW = 1_000
_UNDECIDED = "This could not be decided in time. Try again with the same idempotency key: nothing will happen twice."

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Waiting(Generic[Request, Outcome]):
    request: Request
    outcome: "asyncio.Future[Outcome]"


class Coalescer(Generic[Request, Outcome]):
    """Collects requests and runs them in batches.

    Requests of one ``lane`` (an event's id) are in at most one running batch, so the next batch collects while one
    commits, and no two of ours wait for one another's row lock. Requests of several lanes share a batch; a lane that
    is stuck holds up only those that were in a batch with it, and those once: a lane whose batch took ``slow_seconds``
    runs alone until one of its batches is quick again, and such lanes leave one place to the others.

    ``run`` gives an outcome for each request, in order; an Exception in it is raised for that request alone.
    """

    def __init__(
        self,
        *,
        run: Callable[[Sequence[Request]], Awaitable[Sequence[Outcome | Exception]]],
        lane: Callable[[Request], Hashable],
        max_batch: int = 100,
        max_running: int = 4,
        wait_seconds: float = 20.0,
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        self._run = run
        self._lane = lane
        self._max_batch = max_batch
        self._max_running = max_running
        self._wait_seconds = wait_seconds
        self._slow_seconds = slow_seconds
        self._lanes: dict[Hashable, deque[_Waiting[Request, Outcome]]] = {}
        self._busy: set[Hashable] = set()
        self._slow: set[Hashable] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._is_scheduled = False
        self._is_closed = False

    async def submit(self, request: Request) -> Outcome:
        """The outcome of ``request``. Whoever is cancelled while waiting takes only itself out of its batch.

        Raises Refusal(SERVICE_UNAVAILABLE) when it is undecided after ``wait_seconds``, when too many wait, or when
        this is closed.
        """
        if self._is_closed or self._waiting >= MAX_WAITING:
            raise Refusal(Code.SERVICE_UNAVAILABLE, "Too many requests are waiting. Try again shortly.")
        loop = asyncio.get_running_loop()
        waiting: _Waiting[Request, Outcome] = _Waiting(request, loop.create_future())
        self._lanes.setdefault(self._lane(request), deque()).append(waiting)
        self._waiting += 1
        if not self._is_scheduled:
            # At the end of this turn of the loop, so that all that arrive in it start together.
            self._is_scheduled = True
            loop.call_soon(self._dispatch)
        try:
            async with asyncio.timeout(self._wait_seconds):
                return await waiting.outcome
        except TimeoutError:
            raise Refusal(Code.SERVICE_UNAVAILABLE, _UNDECIDED) from None

    async def close(self, *, seconds: float = 8.0) -> None:
        """Take nothing new, and let what waits be decided; what is not after ``seconds`` is refused."""
        self._is_closed = True
        end = asyncio.get_running_loop().time() + seconds
        while (self._running or self._is_scheduled) and (left := end - asyncio.get_running_loop().time()) > 0:
            if self._running:
                await asyncio.wait(self._running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(0)
        # First those that wait: a run that ends would take them up.
        for waiting in (waiting for lane in self._lanes.values() for waiting in lane):
            _settle(waiting, Refusal(Code.SERVICE_UNAVAILABLE, _UNDECIDED))
        self._lanes.clear()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _dispatch(self) -> None:
        self._is_scheduled = False
        while len(self._running) < self._max_running and (batch := self._collect()):
            lanes = {self._lane(waiting.request) for waiting in batch}
            self._busy |= lanes
            task = asyncio.get_running_loop().create_task(
                # A context of its own: what it logs is not the request's that happened to come first.
                self._finish(batch, lanes),
                name="coalesced-batch",
                context=Context(),
            )
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _collect(self) -> "list[_Waiting[Request, Outcome]]":
        batch: list[_Waiting[Request, Outcome]] = []
        slow_may_run = len(self._busy & self._slow) < max(1, self._max_running - 1)
        for lane in [lane for lane in self._lanes if lane not in self._busy]:
            runs_alone = lane in self._slow
            if runs_alone and (batch or not slow_may_run):
                continue
            waiting = self._lanes.pop(lane)
            while waiting and len(batch) < self._max_batch:
                self._waiting -= 1
                if not (first := waiting.popleft()).outcome.done():  # done: its request was cancelled
                    batch.append(first)
            if waiting:
                self._lanes[lane] = waiting  # at the end: other lanes come first next time
            if len(batch) == self._max_batch or (runs_alone and batch):
                break
        return batch

    async def _finish(self, batch: "Sequence[_Waiting[Request, Outcome]]", lanes: set[Hashable]) -> None:
        outcomes: Sequence[Outcome | Exception] = ()
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            outcomes = await self._run([waiting.request for waiting in batch])
        except Exception:  # noqa: BLE001 - whoever waits is told, whatever it was
            _log.exception("a batch of %d failed whole", len(batch))
        finally:
            self._busy -= lanes
            self._note_speed(lanes, seconds=clock() - started)
            for position, waiting in enumerate(batch):
                undecided = Refusal(Code.SERVICE_UNAVAILABLE, _UNDECIDED)
                _settle(waiting, outcomes[position] if position < len(outcomes) else undecided)

    def _note_speed(self, lanes: set[Hashable], *, seconds: float) -> None:
        if seconds < self._slow_seconds:
            self._slow -= lanes
        else:
            if len(self._slow) > _MAX_SLOW:  # lanes that never came again
                self._slow.clear()
            self._slow |= lanes

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._dispatch()


def _settle(waiting: "_Waiting[Request, Outcome]", outcome: Outcome | Exception) -> None:
    if waiting.outcome.done():
        return
    if isinstance(outcome, Exception):
        waiting.outcome.set_exception(outcome)
    else:
        waiting.outcome.set_result(outcome)
