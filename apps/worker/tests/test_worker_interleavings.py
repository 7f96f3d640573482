"""Two workers with the same booking, in every order in which their calls can fall."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from apps.worker.tests.fakes import FakeInvocation, FakeSes, FakeTable
from apps.worker.tests.worker_under_test import BOOKING_ID, Worker, booking
from minitickets_worker.processed_jobs import LEASE_SECONDS, JobInProgressError

pytestmark = pytest.mark.unit

# GetItem, PutItem (lease), SendEmail, PutItem (done).
CALLS = 4


class Turns:
    """Lets actors, each a thread, make their calls in one given order."""

    def __init__(self, order: Sequence[str]) -> None:
        self._order = list(order)
        self._lock = threading.Lock()
        self._may_go = {actor: threading.Semaphore(0) for actor in order}
        self._wake_next()

    @contextmanager
    def turn(self, actor: str) -> Iterator[None]:
        assert self._may_go[actor].acquire(timeout=5), "the actor makes more calls than the order holds"
        try:
            yield
        finally:
            with self._lock:
                self._order.pop(0)
                self._wake_next()

    def leave(self, actor: str) -> None:
        """The actor makes no more calls."""
        with self._lock:
            was_next = self._order[:1] == [actor]
            self._order = [other for other in self._order if other != actor]
            if was_next:
                self._wake_next()

    def _wake_next(self) -> None:
        if self._order:
            self._may_go[self._order[0]].release()


class InTurn:
    """A client each of whose calls waits for its actor's turn."""

    def __init__(self, client: Any, turns: Turns, actor: str) -> None:
        self._client, self._turns, self._actor = client, turns, actor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)

        def in_turn(**arguments: Any) -> Any:
            with self._turns.turn(self._actor):
                return call(**arguments)

        return in_turn


def orders(**calls: int) -> list[tuple[str, ...]]:
    """Every order of so many calls of each actor."""
    total = sum(calls.values())
    found: list[list[str | None]] = [[None] * total]
    for actor, count in calls.items():
        extended = []
        for order in found:
            free = [position for position, taken in enumerate(order) if taken is None]
            for chosen in itertools.combinations(free, count):
                extended += [[actor if position in chosen else taken for position, taken in enumerate(order)]]
        found = extended
    return [tuple(str(actor) for actor in order) for order in found]


class Race:
    """Two workers, and time that jumps past a lease when it is the clock's turn."""

    def __init__(self, order: Sequence[str]) -> None:
        self.table, self.ses, self.invocation = FakeTable(), FakeSes(), FakeInvocation(ends=2_000_000)
        self.outcomes: dict[str, str] = {}
        self._turns = Turns(order)
        self._order = order

    def run(self) -> None:
        threads = [threading.Thread(target=self._work, args=(actor,)) for actor in ("a", "b")]
        if "clock" in self._order:
            threads.append(threading.Thread(target=self._jump))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=10)
            assert not thread.is_alive()

    def _work(self, actor: str) -> None:
        table: Any = InTurn(self.table, self._turns, actor)
        ses: Any = InTurn(self.ses, self._turns, actor)
        try:
            Worker(table=table, ses=ses, invocation=self.invocation).handle(booking())
            self.outcomes[actor] = "finished"
        except JobInProgressError:
            self.outcomes[actor] = "comes back"
        finally:
            self._turns.leave(actor)

    def _jump(self) -> None:
        with self._turns.turn("clock"):
            self.invocation.time += LEASE_SECONDS + 1
        self._turns.leave("clock")

    def redeliver(self) -> None:
        """What came back is delivered again, later."""
        for _ in range(list(self.outcomes.values()).count("comes back")):
            self.invocation.time += LEASE_SECONDS + 1
            Worker(table=self.table, ses=self.ses, invocation=self.invocation).handle(booking())

    def statuses(self) -> list[str]:
        return [item["status"]["S"] for item in self.table.history]


def test_two_workers_send_one_mail_in_every_order_of_their_calls() -> None:
    seen: Counter[str] = Counter()
    for order in orders(a=CALLS, b=CALLS):
        race = Race(order)
        race.run()
        race.redeliver()
        assert len(race.ses.accepted) == 1, order
        assert race.statuses()[-1] == "done"
        assert race.table.items[f"booking.confirmed:{BOOKING_ID}"]["status"] == {"S": "done"}
        seen.update(race.outcomes.values())
    assert set(seen) == {"finished", "comes back"}, "the orders must cover both"


def test_a_lease_that_runs_out_at_any_step_costs_one_more_mail_at_most_and_never_the_record() -> None:
    mails: Counter[int] = Counter()
    for order in orders(a=CALLS, b=CALLS, clock=1):
        race = Race(order)
        race.run()
        race.redeliver()
        mails[len(race.ses.accepted)] += 1
        # Once done, it stays done: whoever was paused never puts a lease over it.
        assert race.statuses()[-1] == "done", order
        assert race.statuses().count("done") == 1, order
    assert set(mails) == {1, 2}, "some order must show the second mail, or the jump comes at no step that matters"
