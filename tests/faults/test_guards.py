"""Each guard against loss and doubling, taken out of a copy of its app: its own tests notice."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.guards import MUTATIONS
from tests.faults.mutations import Edit, Mutation, MutationError, copy_of, outcomes

pytestmark = pytest.mark.faults


def packages_of(mutation: Mutation) -> set[str]:
    return {edit.package for edit in mutation.edits}


@pytest.fixture(scope="session")
def with_all_guards(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What becomes of the same tests on copies that nobody edited: a test that is red anyway notices nothing."""
    every_package = {package for mutation in MUTATIONS for package in packages_of(mutation)}
    copies = copy_of(every_package, tmp_path_factory.mktemp("unedited"))
    fixtures = dict.fromkeys(fixture for mutation in MUTATIONS for fixture in mutation.fixtures)
    tests = [test for mutation in MUTATIONS for test in mutation.red]
    found: dict[str, str] = {}
    for folder in {test.partition("/")[0] for test in tests}:
        there = (test for test in tests if test.startswith(f"{folder}/"))
        found.update(outcomes(there, copies=copies, fixtures=fixtures))
    return found


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_without_a_guard_its_own_tests_are_red(
    mutation: Mutation, with_all_guards: Mapping[str, str], tmp_path: Path
) -> None:
    assert {test: with_all_guards[test] for test in mutation.red} == dict.fromkeys(mutation.red, "passed")
    copies = copy_of(packages_of(mutation), tmp_path, mutation.edits)
    without = outcomes(mutation.red, copies=copies, fixtures=mutation.fixtures)
    assert without == dict.fromkeys(mutation.red, "failed")


def test_a_guard_that_is_not_where_the_table_says_is_told(tmp_path: Path) -> None:
    gone = Edit(file="minitickets_worker/consumer.py", replace="this was never there", by="")
    with pytest.raises(MutationError, match=r"minitickets_worker/consumer\.py holds 0 times"):
        copy_of({"minitickets_worker"}, tmp_path, (gone,))


def test_a_mutant_that_does_not_even_load_is_no_test_that_noticed(tmp_path: Path) -> None:
    broken = Edit(file="minitickets_worker/visibility.py", replace="import BotoCoreError", by="import NoSuchError")
    test = "apps/worker/tests/test_consumer.py::test_a_message_seen_twice_sends_one_mail"
    with pytest.raises(MutationError, match="did not run"):
        outcomes([test], copies=copy_of({"minitickets_worker"}, tmp_path, (broken,)))
