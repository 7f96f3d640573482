"""Which snapshots are pruned, deleted or may be restored."""

import pytest

from ops.aws_account import LiveDatabase, Snapshot
from ops.deploy.database import StageDatabase
from ops.refusal import Failure, Refusal
from ops.tests.stages import FakeAws, final_snapshots

pytestmark = pytest.mark.unit

AVAILABLE = LiveDatabase(status="available", deletion_protection=False)


def _silent(text: str) -> None:
    pass


def _names(*numbers: int) -> list[str]:
    return [f"minitickets-dev-db-final-{number}" for number in numbers]


def test_the_oldest_final_snapshots_beyond_those_kept_are_deleted() -> None:
    aws = FakeAws(live=AVAILABLE, kept=final_snapshots(7))
    StageDatabase(stage="dev", aws=aws).prune(keep=5, say=_silent)
    assert sorted(aws.deleted) == _names(1, 2)


def test_the_remembered_snapshot_and_the_one_it_was_born_from_stay_however_old() -> None:
    aws = FakeAws(live=AVAILABLE, kept=final_snapshots(7), remembered=frozenset(_names(1, 3)))
    StageDatabase(stage="dev", aws=aws).prune(keep=2, say=_silent)
    assert sorted(aws.deleted) == _names(2, 4, 5)


def test_a_snapshot_made_by_hand_is_never_touched() -> None:
    mine = Snapshot(name="before-the-migration", status="available", made=final_snapshots(1)[0].made)
    aws = FakeAws(live=AVAILABLE, kept=[mine, *final_snapshots(1)])
    database = StageDatabase(stage="dev", aws=aws)
    database.prune(keep=0, say=_silent)
    database.delete_final_snapshots(say=_silent)
    assert aws.kept == [mine]


def test_a_snapshot_still_being_written_is_the_newest_and_stays() -> None:
    writing = Snapshot(name="minitickets-dev-db-final-9", status="creating", made=None)
    aws = FakeAws(live=AVAILABLE, kept=[*final_snapshots(3), writing])
    StageDatabase(stage="dev", aws=aws).prune(keep=1, say=_silent)
    assert [found.name for found in aws.kept] == _names(9)


@pytest.mark.parametrize(
    "live", [None, *(LiveDatabase(status=s, deletion_protection=False) for s in ("creating", "failed"))]
)
def test_nothing_is_pruned_before_the_database_answers(live: LiveDatabase | None) -> None:
    aws = FakeAws(live=live, kept=final_snapshots(9))
    StageDatabase(stage="dev", aws=aws).prune(keep=1, say=_silent)
    assert aws.deleted == []


def test_nothing_is_pruned_where_the_stage_s_memory_is_missing() -> None:
    aws = FakeAws(live=AVAILABLE, kept=final_snapshots(9), remembered=None)
    StageDatabase(stage="dev", aws=aws).prune(keep=1, say=_silent)
    assert aws.deleted == []


def test_a_snapshot_that_cannot_be_deleted_is_named_after_the_others_are_gone() -> None:
    class Stubborn(FakeAws):
        def delete_snapshot(self, name: str) -> None:
            if name.endswith("2"):
                raise Failure("InvalidDBSnapshotState")
            super().delete_snapshot(name)

    aws = Stubborn(kept=final_snapshots(3))
    with pytest.raises(Failure, match=r"final-2 \(InvalidDBSnapshotState\).*make destroy STAGE=dev again"):
        StageDatabase(stage="dev", aws=aws).delete_final_snapshots(say=_silent)
    assert sorted(aws.deleted) == _names(1, 3)


def test_restoring_is_refused_while_a_database_is_there() -> None:
    aws = FakeAws(live=AVAILABLE, kept=final_snapshots(1))
    for wish in ("minitickets-dev-db-final-1", "none"):
        with pytest.raises(Refusal, match="make data-off STAGE=dev first"):
            StageDatabase(stage="dev", aws=aws).require_restorable(wish)


def test_restoring_a_snapshot_that_is_not_there_names_those_that_are() -> None:
    aws = FakeAws(kept=final_snapshots(2))
    with pytest.raises(Refusal, match=r"no snapshot has that name \(there are: .*final-2, .*final-1\)"):
        StageDatabase(stage="dev", aws=aws).require_restorable("typo")


def test_restoring_waits_until_a_snapshot_is_available() -> None:
    aws = FakeAws(kept=[Snapshot(name="mine", status="creating", made=None)])
    with pytest.raises(Refusal, match="it is creating"):
        StageDatabase(stage="dev", aws=aws).require_restorable("mine")


def test_an_available_snapshot_or_none_may_be_restored() -> None:
    database = StageDatabase(stage="dev", aws=FakeAws(kept=final_snapshots(1)))
    database.require_restorable("minitickets-dev-db-final-1")
    database.require_restorable("none")
