"""The relay: publishes what the outbox holds, at least once, for as long as it takes."""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from minitickets_api.services.outbox_claims import Claim, ClaimedRow, Delay, OutboxClaims
from minitickets_api.services.topic import Outcome, Publication, Topic, Verdict

FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0
_NO_OUTCOME = Outcome(verdict=Verdict.DELAYED, reason="the topic gave no outcome")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RelayTiming:
    """In seconds. ``lease`` is longer than the worst publish, with its marking; ``idle`` is between two looks when
    nobody wakes the relay; ``outage_pause`` is the longest between two claims while nothing can be published;
    ``stop`` is how long a stopping relay waits for what it publishes, longer than one call of the topic (topic.py);
    ``release`` is how long it then has to give back what is not over; ``silence`` is how long its loop may take for a
    turn before it counts as dead."""

    lease: float = 30.0
    idle: float = 0.5
    outage_pause: float = 5.0
    stop: float = 7.5
    release: float = 2.0
    silence: float = 60.0


def start_outbox_relay(
    *,
    pool: asyncpg.Pool,
    topic: Topic,
    timing: RelayTiming | None = None,
    publishers: int = 4,
    jitter: Callable[[], float] = random.random,
) -> "OutboxRelay":
    """Start publishing in the background of the running event loop; ``publishers`` batches at a time, each in a thread.

    ``jitter`` draws from 0 to 1.
    """
    return OutboxRelay(pool=pool, topic=topic, timing=timing or RelayTiming(), publishers=publishers, jitter=jitter)


def backoff_seconds(attempts: int, *, jitter: float) -> float:
    """Until the next attempt after ``attempts``: 1 s doubling to 60 s, less up to half of it, so that rows that failed
    together do not come back together."""
    # The exponent is bounded, because an outage of a week has attempts that no float holds 2 to the power of.
    whole: float = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(max(attempts, 1) - 1, 16))
    return whole * (1 - jitter / 2)


class OutboxRelay:
    """A running relay. Several may run beside one another, in this process or in others."""

    def __init__(
        self,
        *,
        pool: asyncpg.Pool,
        topic: Topic,
        timing: RelayTiming,
        publishers: int,
        jitter: Callable[[], float],
    ) -> None:
        self._claims = OutboxClaims(pool=pool, lease=timedelta(seconds=timing.lease))
        self._topic = topic
        self._timing = timing
        self._jitter = jitter
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(max_workers=publishers, thread_name_prefix="publish")
        self._slots = asyncio.Semaphore(publishers)
        self._woken = asyncio.Event()
        self._delivering: dict[asyncio.Task[None], Claim] = {}
        self._failures_in_a_row = 0
        self._parked = 0
        self._paused_until = 0.0
        self._stopping = asyncio.Event()
        self._last_turn = self._loop.time()
        self._task = self._loop.create_task(self._run(), name="outbox-relay")

    def wake(self) -> None:
        """A row has just been committed in this process: look at once instead of at the next turn."""
        self._woken.set()

    @property
    def is_alive(self) -> bool:
        """Whether its loop turns. It does so without SNS, and without a database."""
        return not self._task.done() and self._loop.time() - self._last_turn < self._timing.silence

    @property
    def parked_count(self) -> int:
        """How many rows this relay has parked since it started."""
        return self._parked

    async def stop(self) -> None:
        """Claim nothing new, and finish what is being published; what is not over after ``timing.stop`` is released,
        so that another relay takes it at once."""
        self._stopping.set()
        self._woken.set()
        end = self._loop.time() + self._timing.stop
        await asyncio.wait({self._task}, timeout=self._timing.stop)
        if self._delivering:
            await asyncio.wait(set(self._delivering), timeout=max(0.0, end - self._loop.time()))
        unfinished = dict(self._delivering)
        for task in (self._task, *unfinished):
            task.cancel()
        await asyncio.gather(self._task, *unfinished, return_exceptions=True)
        try:
            async with asyncio.timeout(self._timing.release):
                await asyncio.gather(*(self._release(claim) for claim in unfinished.values()))
        except TimeoutError:
            _log.warning("claims cannot be released in time; their leases will end")
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        self._threads.submit(self._prepare)
        while not self._stopping.is_set():
            self._last_turn = self._loop.time()
            try:
                found = await self._turn()
            except Exception as error:  # noqa: BLE001 - the relay outlives whatever happens to the database
                self._pause()
                _log.warning("the outbox cannot be read: %s", type(error).__name__)
                found = False
            if not found:
                await self._rest()

    async def _turn(self) -> bool:
        """Claim once, and hand it to a thread; whether there was something."""
        await self._slots.acquire()
        # Before the look: what is committed during it must not wait for the next turn.
        self._woken.clear()
        handed_on = False
        try:
            claim = await self._claims.take() if not self._stopping.is_set() else None
            if claim is None or not claim.rows:
                return False
            if self._stopping.is_set():
                await self._release(claim)
                return False
            task = self._loop.create_task(self._deliver(claim), name="outbox-publish")
            self._delivering[task] = claim
            task.add_done_callback(self._delivered)
            handed_on = True
        finally:
            if not handed_on:
                self._slots.release()
        return self._loop.time() >= self._paused_until

    def _pause(self) -> None:
        """Nothing gets through: wait before the next claim, instead of failing the whole backlog row by row."""
        self._failures_in_a_row += 1
        seconds = backoff_seconds(self._failures_in_a_row, jitter=self._jitter())
        self._paused_until = self._loop.time() + min(seconds, self._timing.outage_pause)

    async def _rest(self) -> None:
        paused = self._paused_until - self._loop.time()
        # A new booking ends an idle wait, but no outage.
        ends = self._stopping if paused > 0 else self._woken
        with suppress(TimeoutError):
            async with asyncio.timeout(max(self._timing.idle, paused)):
                await ends.wait()

    async def _deliver(self, claim: Claim) -> None:
        publications = [Publication(message_id=str(row.message_id), body=row.body) for row in claim.rows]
        try:
            outcomes = await self._loop.run_in_executor(self._threads, self._topic.publish, publications)
        except Exception:  # noqa: BLE001 - whatever it was, the rows come back
            _log.exception("publishing failed in a way that it should not")
            outcomes = {}
        try:
            await self._mark(claim, outcomes)
        except Exception as error:  # noqa: BLE001 - the lease frees them; the price is one more publication
            _log.warning("outcomes cannot be recorded: %s; they are published again", type(error).__name__)

    async def _mark(self, claim: Claim, outcomes: Mapping[str, Outcome]) -> None:
        sent: list[ClaimedRow] = []
        delays: list[Delay] = []
        for row in claim.rows:
            outcome = outcomes.get(str(row.message_id), _NO_OUTCOME)
            if outcome.verdict is Verdict.SENT:
                sent.append(row)
            elif outcome.verdict is Verdict.DELAYED:
                seconds = backoff_seconds(row.attempts, jitter=self._jitter())
                delays.append(Delay(message_id=row.message_id, seconds=seconds, reason=outcome.reason))
                _log.warning("booking event delayed by %.1f s: %s", seconds, outcome.reason, extra=_fields(row))
            else:
                await self._claims.park(claim, row.message_id, outcome.reason)
                self._parked += 1
                _log.error("booking event parked: %s", outcome.reason, extra=_fields(row))
        if sent:
            self._failures_in_a_row = 0
        elif delays:
            self._pause()
        if sent:
            await self._claims.mark_sent(claim, [row.message_id for row in sent])
        if delays:
            await self._claims.mark_delayed(claim, delays)
        for row in sent:
            _log.info("booking event published", extra=_fields(row))

    async def _release(self, claim: Claim) -> None:
        try:
            await self._claims.release(claim)
        except Exception as error:  # noqa: BLE001 - the lease frees them a little later
            _log.warning("a claim cannot be released: %s; its lease will end", type(error).__name__)

    def _delivered(self, task: "asyncio.Task[None]") -> None:
        self._delivering.pop(task, None)
        self._slots.release()

    def _prepare(self) -> None:
        try:
            self._topic.prepare()
        except Exception as error:  # noqa: BLE001 - the first publication will say it again, and try again
            _log.warning("the topic's client cannot be made: %s", type(error).__name__)


def _fields(row: ClaimedRow) -> Mapping[str, object]:
    return {
        "correlation_id": row.correlation_id,
        "messageId": str(row.message_id),
        "bookingId": None if row.booking_id is None else str(row.booking_id),
        "attempts": row.attempts,
    }
