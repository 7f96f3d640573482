"""The lives of a database: a table of what a run may find, and what it then does or refuses."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from src.data.database_life import DatabaseLifeError, Instance, Life, Observed, decide

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 29, 15, 3, 1, tzinfo=UTC)
NEW = "minitickets-dev-db-final-20261129t150301z"
NOW_TEXT = "2026-11-29T15:03:01Z"

FIRST = Life(final="F1")  # born empty
SECOND = Life(final="F2", born_from="F1")
REWOUND = Life(final="F3", born_from="S0", rewound_at="2026-11-01T00:00:00Z")


def _statuses(**statuses: str) -> Callable[[str], str | None]:
    return statuses.get


def _not_asked(snapshot: str) -> str | None:
    raise AssertionError(f"nobody should have looked for {snapshot}")


def _observed(
    *,
    data: bool = True,
    instance: Instance = Instance.ABSENT,
    remembered: Life | None = None,
    was_up: bool = True,
    wish: str | None = None,
    snapshots: Callable[[str], str | None] = _not_asked,
) -> Observed:
    return Observed(
        identifier="minitickets-dev-db",
        is_wanted=data,
        instance=instance,
        remembered=remembered,
        last_up=remembered.final if remembered is not None and was_up else "F0",
        restore_from=wish,
        snapshot_status=snapshots,
        now=NOW,
    )


GOES_ON = {
    "nothing was ever there: a first, empty database": (_observed(), Life(final=NEW)),
    "nothing but a memory of never having had one": (_observed(remembered=Life()), Life(final=NEW)),
    "it is on: its life is as remembered": (
        _observed(instance=Instance.PRESENT, remembered=SECOND, snapshots=_statuses(F1="available")),
        SECOND,
    ),
    "it is on, and what it came from is long gone": (
        _observed(instance=Instance.PRESENT, remembered=SECOND, snapshots=_statuses()),
        SECOND,
    ),
    "it is on, but nobody remembers it: an imported one is given a last snapshot": (
        _observed(instance=Instance.PRESENT),
        Life(final=NEW),
    ),
    "it was switched off: the next is born from its last snapshot": (
        _observed(remembered=FIRST, snapshots=_statuses(F1="available")),
        Life(final=NEW, born_from="F1"),
    ),
    "newer snapshots that somebody took by hand change nothing": (
        _observed(remembered=FIRST, snapshots=_statuses(F1="available", F9="available")),
        Life(final=NEW, born_from="F1"),
    ),
    "a rewind is remembered by the lives that follow it": (
        _observed(remembered=REWOUND, snapshots=_statuses(F3="available")),
        Life(final=NEW, born_from="F3", rewound_at="2026-11-01T00:00:00Z"),
    ),
    "a birth was interrupted: again from the same snapshot, under the same name": (
        _observed(remembered=SECOND, was_up=False, snapshots=_statuses(F1="available")),
        SECOND,
    ),
    "the very first birth was interrupted: again, under the same name": (
        _observed(remembered=FIRST, was_up=False, snapshots=_statuses()),
        FIRST,
    ),
    "it came up, and the run ended before that was written down: its last snapshot counts": (
        _observed(remembered=SECOND, was_up=False, snapshots=_statuses(F1="available", F2="available")),
        Life(final=NEW, born_from="F2"),
    ),
    "a rewind was interrupted: it goes on without being asked again": (
        _observed(remembered=REWOUND, was_up=False, snapshots=_statuses(S0="available")),
        REWOUND,
    ),
    "this run asks for another snapshot: sessions from before are void": (
        _observed(remembered=SECOND, wish="S0", snapshots=_statuses(S0="available", F2="available")),
        Life(final=NEW, born_from="S0", rewound_at=NOW_TEXT),
    ),
    "this run asks for the last snapshot: that is no rewind": (
        _observed(remembered=SECOND, wish="F2", snapshots=_statuses(F2="available")),
        Life(final=NEW, born_from="F2"),
    ),
    "this run asks for an empty database": (
        _observed(remembered=SECOND, wish="none"),
        Life(final=NEW, rewound_at=NOW_TEXT),
    ),
    "an empty database is asked for where none ever was": (_observed(wish="none"), Life(final=NEW)),
    "the last snapshot is lost, and this run says what to take instead": (
        _observed(remembered=FIRST, wish="S0", snapshots=_statuses(S0="available")),
        Life(final=NEW, born_from="S0", rewound_at=NOW_TEXT),
    ),
    "data is off, and never was on": (_observed(data=False), Life()),
    "data is off: the life that ended stays remembered": (_observed(data=False, remembered=SECOND), SECOND),
    "data is being switched off: the life that ends stays remembered": (
        _observed(data=False, instance=Instance.PRESENT, remembered=SECOND),
        SECOND,
    ),
}


@pytest.mark.parametrize("case", GOES_ON)
def test_a_run_goes_on(case: str) -> None:
    observed, life = GOES_ON[case]
    assert decide(observed) == life


STOPS = {
    "its final snapshot exists while it does: it is being deleted": (
        _observed(instance=Instance.PRESENT, remembered=SECOND, snapshots=_statuses(F2="creating")),
        "is being deleted .*F2.*try again when it is gone",
    ),
    "its last snapshot is still being written": (
        _observed(remembered=FIRST, snapshots=_statuses(F1="creating")),
        "F1 is still being written.*try again in a few minutes",
    ),
    "its last snapshot failed": (
        _observed(remembered=FIRST, snapshots=_statuses(F1="failed")),
        "F1 has status 'failed'.*RESTORE_FROM",
    ),
    "its last snapshot is gone, and it began empty": (
        _observed(remembered=FIRST, snapshots=_statuses()),
        "F1, which is gone: neither an empty database nor an older one must take.*RESTORE_FROM=<snapshot>",
    ),
    "its last snapshot is gone, and so is what it came from": (
        _observed(remembered=SECOND, snapshots=_statuses()),
        "F2, which is gone.*RESTORE_FROM=none",
    ),
    "its last snapshot is gone, and the one before would rewind it": (
        _observed(remembered=SECOND, snapshots=_statuses(F1="available")),
        "F2, which is gone.*F1 is what it came from, without all that was booked since",
    ),
    "an interrupted birth's snapshot is gone": (
        _observed(remembered=SECOND, was_up=False, snapshots=_statuses()),
        "F1 does not exist",
    ),
    "an interrupted birth's snapshot cannot be read": (
        _observed(remembered=SECOND, was_up=False, snapshots=_statuses(F1="deleting")),
        "F1 has status 'deleting'",
    ),
    "a snapshot is asked for that is not there": (
        _observed(remembered=FIRST, wish="S9", snapshots=_statuses(F1="available")),
        "S9 does not exist",
    ),
    "a snapshot is asked for that is still being written": (
        _observed(wish="S9", snapshots=_statuses(S9="creating")),
        "S9 is still being written",
    ),
    "another snapshot is asked for while the database is on": (
        _observed(instance=Instance.PRESENT, remembered=FIRST, wish="S0"),
        "RESTORE_FROM=S0 is refused while database minitickets-dev-db is on",
    ),
    "an empty database is asked for while the database is on": (
        _observed(instance=Instance.PRESENT, remembered=FIRST, wish="none"),
        "RESTORE_FROM=none is refused",
    ),
    "a snapshot is asked for while data is off": (
        _observed(data=False, remembered=FIRST, wish="S0"),
        "set minitickets:dataEnabled to true, or leave RESTORE_FROM out",
    ),
    "a database that nobody remembers would be switched off": (
        _observed(data=False, instance=Instance.PRESENT),
        "does not remember it.*Run once with minitickets:dataEnabled true",
    ),
}


@pytest.mark.parametrize("case", STOPS)
def test_a_run_stops(case: str) -> None:
    observed, message = STOPS[case]
    with pytest.raises(DatabaseLifeError, match=message):
        decide(observed)


@pytest.mark.parametrize("was_up", [True, False])
@pytest.mark.parametrize("remembered", [FIRST, SECOND, REWOUND])
def test_what_follows_a_life_unasked_holds_what_its_last_snapshot_holds(remembered: Life, *, was_up: bool) -> None:
    """Whatever the snapshots' states are: after a life that held something comes its own last snapshot, or nobody."""
    states: list[str | None] = [None, "creating", "available", "failed"]
    for final in states:
        for origin in states:
            found: dict[str | None, str | None] = {remembered.final: final, remembered.born_from: origin}
            try:
                life = decide(_observed(remembered=remembered, was_up=was_up, snapshots=found.get))
            except DatabaseLifeError:
                continue
            if life == remembered:  # the birth that nobody saw the end of
                assert not was_up
                assert final is None
            else:
                assert life.born_from == remembered.final
            assert life.born_from is None or found[life.born_from] == "available"


def test_a_new_life_follows_the_one_before_and_a_second_run_changes_nothing() -> None:
    born = decide(_observed(remembered=FIRST, snapshots=_statuses(F1="available")))
    interrupted = _observed(remembered=born, was_up=False, snapshots=_statuses(F1="available"))
    later = replace(interrupted, now=datetime(2027, 1, 1, tzinfo=UTC))
    assert decide(later) == born
    assert decide(replace(later, instance=Instance.PRESENT)) == born


def test_the_name_of_a_final_snapshot_is_one_that_rds_takes() -> None:
    final = decide(_observed()).final
    assert final == NEW
    assert final.replace("-", "").isalnum()
    assert final[0].isalpha()
