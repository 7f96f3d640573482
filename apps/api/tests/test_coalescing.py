"""How requests share a run, whatever the run does. No I/O."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence

import pytest

from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import coalescing
from minitickets_api.services.coalescing import Coalescer

pytestmark = pytest.mark.unit

Run = Callable[[Sequence[str]], Awaitable[Sequence[str | Exception]]]


class RecordedRuns:
    """Answers each request with itself in capitals; remembers the batches; waits while the gate of a lane is closed."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.running = 0
        self.most_running = 0

    def close(self, lane: str) -> asyncio.Event:
        self.gates[lane] = asyncio.Event()
        return self.gates[lane]

    async def __call__(self, requests: Sequence[str]) -> Sequence[str | Exception]:
        self.batches.append(list(requests))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        for lane in {request[0] for request in requests}:
            if lane in self.gates:
                await self.gates[lane].wait()
        await asyncio.sleep(0)
        self.running -= 1
        return [request.upper() for request in requests]


def coalescer(run: Run, **options: float) -> Coalescer[str, str]:
    return Coalescer(run=run, lane=lambda request: request[0], **options)  # type: ignore[arg-type]  # options are any


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_what_arrives_in_one_turn_shares_a_run_and_each_gets_its_own_outcome() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        shared = coalescer(run)
        wanted = [f"a{n}" for n in range(30)]
        assert await asyncio.gather(*(shared.submit(request) for request in wanted)) == [w.upper() for w in wanted]
        assert run.batches == [wanted]

    asyncio.run(scenario())


def test_a_run_sees_the_context_of_no_request() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    seen = []

    async def run(requests: Sequence[str]) -> Sequence[str | Exception]:
        seen.append(who.get())
        return list(requests)

    async def scenario() -> None:
        shared = coalescer(run)
        who.set("the first")
        await shared.submit("a0")

    asyncio.run(scenario())
    assert seen == ["nobody"]


def test_a_lane_is_never_in_two_runs_at_once_and_what_waits_is_the_next_batch() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        gate = run.close("a")
        shared = coalescer(run)
        first = asyncio.create_task(shared.submit("a0"))
        await turns()
        rest = [asyncio.create_task(shared.submit(f"a{n}")) for n in range(1, 20)]
        await turns()
        assert run.batches == [["a0"]]
        gate.set()
        await asyncio.gather(first, *rest)
        assert run.batches[1:] == [[f"a{n}" for n in range(1, 20)]]
        assert run.most_running == 1

    asyncio.run(scenario())


def test_a_stuck_lane_holds_up_no_other() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        gate = run.close("a")
        shared = coalescer(run)
        stuck = asyncio.create_task(shared.submit("a0"))
        await turns()
        assert await shared.submit("b0") == "B0"
        assert not stuck.done()
        gate.set()
        assert await stuck == "A0"

    asyncio.run(scenario())


def test_a_stuck_lane_holds_up_those_that_shared_a_batch_with_it_once_and_no_more() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        shared = coalescer(run, slow_seconds=0.02)
        gate = run.close("a")
        together = [asyncio.create_task(shared.submit(request)) for request in ("a0", "b0")]
        await asyncio.sleep(0.03)
        gate.set()
        await asyncio.gather(*together)
        gate = run.close("a")

        stuck, free = (asyncio.create_task(shared.submit(request)) for request in ("a1", "b1"))
        assert await asyncio.wait_for(free, 5) == "B1"
        assert not stuck.done()

        # Quick again: b shares with others while a is alone with its trouble.
        await asyncio.gather(*(shared.submit(request) for request in ("b2", "c2")))
        assert run.batches[-1] == ["b2", "c2"]
        gate.set()
        await stuck

    asyncio.run(scenario())


def test_however_many_lanes_are_stuck_one_place_is_left_to_the_others() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        shared = coalescer(run, slow_seconds=0.02, max_running=3)
        gates = [run.close(lane) for lane in "abcd"]
        first = [asyncio.create_task(shared.submit(f"{lane}0")) for lane in "abcd"]
        await asyncio.sleep(0.03)
        for gate in gates:
            gate.set()
        await asyncio.gather(*first)
        gates = [run.close(lane) for lane in "abcd"]

        stuck = [asyncio.create_task(shared.submit(f"{lane}1")) for lane in "abcd"]
        await turns()
        assert await asyncio.wait_for(shared.submit("z1"), 5) == "Z1"
        assert run.batches[1:] == [["a1"], ["b1"], ["z1"]]
        for gate in gates:
            gate.set()
        assert await asyncio.gather(*stuck) == ["A1", "B1", "C1", "D1"]

    asyncio.run(scenario())


def test_a_batch_has_its_limit_and_a_busy_lane_does_not_starve_a_quiet_one() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        shared = coalescer(run, max_batch=10, max_running=1)
        crowd = [asyncio.create_task(shared.submit(f"a{n}")) for n in range(35)]
        await asyncio.sleep(0)
        quiet = asyncio.create_task(shared.submit("b0"))
        await asyncio.gather(quiet, *crowd)
        assert max(len(batch) for batch in run.batches) == 10
        assert sorted(request for batch in run.batches for request in batch) == sorted(
            [f"a{n}" for n in range(35)] + ["b0"]
        )
        assert "b0" in run.batches[2]  # of four: it waited for one batch of the crowd, not for all

    asyncio.run(scenario())


def test_no_more_runs_at_a_time_than_allowed() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        gates = [run.close(lane) for lane in "abcdef"]
        shared = coalescer(run, max_running=3)
        requests = []
        for lane in "abcdef":
            requests.append(asyncio.create_task(shared.submit(f"{lane}0")))
            await turns()
        assert run.running == 3
        for gate in gates:
            gate.set()
        await asyncio.gather(*requests)

    asyncio.run(scenario())


def test_a_run_that_raises_leaves_nobody_waiting_and_the_next_one_works() -> None:
    async def scenario() -> None:
        answers = RecordedRuns()
        is_broken = True

        async def run(requests: Sequence[str]) -> Sequence[str | Exception]:
            if is_broken:
                raise RuntimeError("a bug")
            return await answers(requests)

        shared = coalescer(run)
        outcomes = await asyncio.gather(*(shared.submit(f"a{n}") for n in range(3)), return_exceptions=True)
        assert [outcome.code for outcome in outcomes if isinstance(outcome, Refusal)] == [Code.SERVICE_UNAVAILABLE] * 3
        is_broken = False
        assert await shared.submit("a0") == "A0"

    asyncio.run(scenario())


def test_an_error_among_the_outcomes_is_raised_for_its_own_request_alone() -> None:
    async def scenario() -> None:
        async def run(requests: Sequence[str]) -> Sequence[str | Exception]:
            return [ValueError("mine") if request == "a1" else request for request in requests]

        shared = coalescer(run)
        outcomes = await asyncio.gather(*(shared.submit(f"a{n}") for n in range(3)), return_exceptions=True)
        assert outcomes[0] == "a0"
        assert isinstance(outcomes[1], ValueError)
        assert outcomes[2] == "a2"

    asyncio.run(scenario())


def test_waiting_has_an_end_and_says_that_asking_again_is_safe() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        gate = run.close("a")
        shared = coalescer(run, wait_seconds=0.05)
        with pytest.raises(Refusal, match="same idempotency key") as caught:
            await shared.submit("a0")
        assert caught.value.code is Code.SERVICE_UNAVAILABLE
        gate.set()
        await turns()
        assert await shared.submit("a1") == "A1"

    asyncio.run(scenario())


def test_a_crowd_beyond_measure_is_turned_away_and_cancelled_ones_do_not_count_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coalescing, "MAX_WAITING", 10)

    async def scenario() -> None:
        run = RecordedRuns()
        gate = run.close("a")
        shared = coalescer(run)
        first = asyncio.create_task(shared.submit("a0"))
        await turns()
        crowd = [asyncio.create_task(shared.submit(f"a{n}")) for n in range(1, 11)]
        await turns()
        with pytest.raises(Refusal, match="Too many"):
            await shared.submit("a11")
        for each in crowd:
            each.cancel()
        gate.set()
        await asyncio.gather(first, *crowd, return_exceptions=True)
        await turns()
        assert await shared.submit("a12") == "A12"
        assert run.batches == [["a0"], ["a12"]]

    asyncio.run(scenario())


def test_closing_decides_what_waits_and_refuses_what_takes_too_long() -> None:
    async def scenario() -> None:
        run = RecordedRuns()
        gate = run.close("a")
        shared = coalescer(run)
        stuck = asyncio.create_task(shared.submit("a0"))
        await turns()
        behind = asyncio.create_task(shared.submit("a1"))
        fine = asyncio.create_task(shared.submit("b0"))
        await asyncio.sleep(0)
        await shared.close(seconds=0.1)
        async with asyncio.timeout(1):
            outcomes = await asyncio.gather(stuck, behind, fine, return_exceptions=True)
        assert [getattr(outcome, "code", outcome) for outcome in outcomes] == [
            Code.SERVICE_UNAVAILABLE,
            Code.SERVICE_UNAVAILABLE,
            "B0",
        ]
        assert not gate.is_set()

    asyncio.run(scenario())
