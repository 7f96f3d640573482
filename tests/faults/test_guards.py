"""Each guard against loss and doubling, taken out of a copy of its app: its own tests notice."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from tests.faults.guards import MUTATIONS
from tests.faults.mutations import Edit, Mutation, MutationError, copy_of, outcomes

pytestmark = pytest.mark.faults


def packages_of(mutation: Mutation) -> set[str]:
    return {edit.package for edit in mutation.edits}


def neighbours(mutation: Mutation) -> tuple[tuple[str, ...], str]:
    """Mutations of the same packages, with tests below the same folder, can share a run."""
    return tuple(sorted(packages_of(mutation))), mutation.red[0].partition("/")[0]


class Judged:
    """What became of the tests of each of ``mutations``, with all guards in place and without its own.

    Each run is a process of its own, which mostly waits for its servers to start: all are asked for at once, and two
    run at a time.
    """

    def __init__(self, mutations: Sequence[Mutation], *, folder: Path, lanes: Executor) -> None:
        self._with_all_guards = {
            shared: lanes.submit(self._unedited, group, folder / " ".join(("unedited", *shared[0], shared[1])))
            for shared in dict.fromkeys(map(neighbours, mutations))
            if (group := [mutation for mutation in mutations if neighbours(mutation) == shared])
        }
        self._without = {
            mutation.name: lanes.submit(self._mutant, mutation, folder / mutation.name) for mutation in mutations
        }

    @staticmethod
    def _unedited(group: Sequence[Mutation], folder: Path) -> Mapping[str, str]:
        return outcomes(
            [test for mutation in group for test in mutation.red],
            copies=copy_of(packages_of(group[0]), folder),
            fixtures=[fixture for mutation in group for fixture in mutation.fixtures],
        )

    @staticmethod
    def _mutant(mutation: Mutation, folder: Path) -> Mapping[str, str]:
        copies = copy_of(packages_of(mutation), folder, mutation.edits)
        return outcomes(mutation.red, copies=copies, fixtures=mutation.fixtures)

    def with_all_guards(self, mutation: Mutation) -> Mapping[str, str]:
        """A test that is red anyway notices nothing."""
        found = self._with_all_guards[neighbours(mutation)].result()
        return {test: found[test] for test in mutation.red}

    def without(self, mutation: Mutation) -> Mapping[str, str]:
        return self._without[mutation.name].result()


@pytest.fixture(scope="session")
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """Of the mutations that this run of pytest selected."""
    selected: list[Mutation] = [
        cast("Mutation", item.callspec.params["mutation"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_without_a_guard_its_own_tests_are_red"
    ]
    with ThreadPoolExecutor(2) as lanes:
        yield Judged(selected, folder=tmp_path_factory.mktemp("mutants"), lanes=lanes)
        lanes.shutdown(cancel_futures=True)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_without_a_guard_its_own_tests_are_red(mutation: Mutation, judged: Judged) -> None:
    assert judged.with_all_guards(mutation) == dict.fromkeys(mutation.red, "passed")
    assert judged.without(mutation) == dict.fromkeys(mutation.red, "failed")


def test_a_guard_that_is_not_where_the_table_says_is_told(tmp_path: Path) -> None:
    gone = Edit(file="minitickets_worker/consumer.py", replace="this was never there", by="")
    with pytest.raises(MutationError, match=r"minitickets_worker/consumer\.py holds 0 times"):
        copy_of({"minitickets_worker"}, tmp_path, (gone,))


def test_a_mutant_that_does_not_even_load_is_no_test_that_noticed(tmp_path: Path) -> None:
    broken = Edit(file="minitickets_worker/visibility.py", replace="import BotoCoreError", by="import NoSuchError")
    test = "apps/worker/tests/test_consumer.py::test_a_message_seen_twice_sends_one_mail"
    with pytest.raises(MutationError, match="did not run"):
        outcomes([test], copies=copy_of({"minitickets_worker"}, tmp_path, (broken,)))
