"""The lives of a stage's database: what a run may do, given what is there and what the stage remembers.

Switching data off deletes the database and leaves a final snapshot; switching it on makes a new one from exactly that
snapshot. Which one that is stands in the stage's memory (data/database_memory.py), written before the database is
touched. This module only decides, on facts that others looked up; docs/adr/0002-the-switches.md says why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import pulumi

RESTORE_NOTHING = "none"
AVAILABLE = "available"
CREATING = "creating"


class DatabaseLifeError(pulumi.RunError):
    """The run must not go on: the message names what was found and says what to do."""


class Instance(Enum):
    """Whether the database is there."""

    ABSENT = "absent"
    PRESENT = "present"


@dataclass(frozen=True, kw_only=True)
class Life:
    """One life of the database, from its birth to the snapshot that its end leaves.

    ``final``: name of that snapshot, fixed at birth; None for a stage that never had a database.
    ``born_from``: the snapshot it was born from; None if it began empty.
    ``rewound_at``: when it was last put back to another snapshot than its final one (ISO 8601, UTC); sessions older
    than that are void. None if it never was.
    """

    final: str | None = None
    born_from: str | None = None
    rewound_at: str | None = None


NEVER_BORN = Life()


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What a run found before it decides.

    ``snapshot_status`` answers for a snapshot's name: its status as RDS gives it, or None if there is none. It is
    asked only where the answer matters. ``last_up`` is the ``final`` of the last life whose database came up, None if
    none ever did. ``restore_from`` is what this one run was asked for: a snapshot's name,
    ``none`` for an empty database, or None for no wish.
    """

    identifier: str
    is_wanted: bool
    instance: Instance
    remembered: Life | None
    last_up: str | None
    restore_from: str | None
    snapshot_status: Callable[[str], str | None]
    now: datetime


def decide(observed: Observed) -> Life:
    """The life that the stage remembers from now on; with data enabled, the one that its database lives.

    Raises DatabaseLifeError where going on could lose or rewind data. It depends on the time only when a life begins,
    so two runs in a row give the same.
    """
    if observed.restore_from is not None and not observed.is_wanted:
        raise DatabaseLifeError(
            f"RESTORE_FROM={observed.restore_from} is for the run that switches the database on, and dataEnabled is "
            "false: set minitickets:dataEnabled to true, or leave RESTORE_FROM out"
        )
    remembered = observed.remembered or NEVER_BORN
    if not observed.is_wanted:
        return _sleep(observed, remembered)
    if observed.instance is Instance.PRESENT:
        return _live_on(observed, remembered)
    if observed.restore_from is not None:
        return _restore(observed, remembered, wish=observed.restore_from)
    return _wake(observed, remembered)


def _sleep(observed: Observed, remembered: Life) -> Life:
    if observed.instance is Instance.PRESENT and remembered.final is None:
        raise DatabaseLifeError(
            f"database {observed.identifier} exists, but the stage does not remember it: its final snapshot would be "
            "lost sight of. Run once with minitickets:dataEnabled true, then switch it off"
        )
    return remembered


def _live_on(observed: Observed, remembered: Life) -> Life:
    if observed.restore_from is not None:
        raise DatabaseLifeError(
            f"RESTORE_FROM={observed.restore_from} is refused while database {observed.identifier} is on: what it "
            "holds would be lost. Switch it off first (`make data-off`), then wake it with RESTORE_FROM"
        )
    if remembered.final is None:  # imported, or older than the stage's memory
        return _born(observed, born_from=None, rewound_at=None)
    if observed.snapshot_status(remembered.final) is not None:
        # Only the end of this life makes this snapshot, so that end has begun.
        raise DatabaseLifeError(
            f"database {observed.identifier} is being deleted (its final snapshot {remembered.final} exists already): "
            "try again when it is gone, in about ten minutes. If it is not being deleted (it was restored by hand), "
            f"copy that snapshot to another name and delete it: as long as it exists {observed.identifier} could not "
            "be switched off"
        )
    return remembered


def _restore(observed: Observed, remembered: Life, *, wish: str) -> Life:
    if wish == RESTORE_NOTHING:
        return _born(observed, born_from=None, rewound_at=_time(observed.now) if remembered.final else None)
    _require_available(observed, wish, wanted_by=f"RESTORE_FROM={wish}")
    rewinds = wish != remembered.final
    return _born(observed, born_from=wish, rewound_at=_time(observed.now) if rewinds else remembered.rewound_at)


def _wake(observed: Observed, remembered: Life) -> Life:
    if remembered.final is None:
        return _born(observed, born_from=None, rewound_at=None)
    if observed.snapshot_status(remembered.final) is not None:
        _require_available(observed, remembered.final, wanted_by="the stage's last database ended in it")
        return _born(observed, born_from=remembered.final, rewound_at=remembered.rewound_at)
    if observed.last_up != remembered.final:
        # The run that wrote this life down ended before its database was up: go on with it. Nothing was ever in it.
        if remembered.born_from is not None:
            _require_available(observed, remembered.born_from, wanted_by="an interrupted run began to restore it")
        return remembered
    raise DatabaseLifeError(
        f"the stage's database ended in snapshot {remembered.final}, which is gone: neither an empty database nor an "
        "older one must take its place unasked. Name a snapshot to restore with RESTORE_FROM=<snapshot> (`aws rds "
        f"describe-db-snapshots` lists them{_origin(remembered)}), or RESTORE_FROM=none for an empty database"
    )


def _origin(life: Life) -> str:
    return f"; {life.born_from} is what it came from, without all that was booked since" if life.born_from else ""


def _require_available(observed: Observed, snapshot: str, *, wanted_by: str) -> None:
    status = observed.snapshot_status(snapshot)
    if status == AVAILABLE:
        return
    if status is None:
        raise DatabaseLifeError(
            f"snapshot {snapshot} does not exist ({wanted_by}): `aws rds describe-db-snapshots` lists those that do"
        )
    if status == CREATING:
        raise DatabaseLifeError(f"snapshot {snapshot} is still being written ({wanted_by}): try again in a few minutes")
    raise DatabaseLifeError(
        f"snapshot {snapshot} has status {status!r} ({wanted_by}): if that does not pass, name another snapshot with "
        "RESTORE_FROM=<snapshot>"
    )


def _born(observed: Observed, *, born_from: str | None, rewound_at: str | None) -> Life:
    # Letters, digits and single hyphens only: a valid snapshot identifier, and like no other, since lives of one
    # database follow each other by minutes.
    moment = observed.now.astimezone(UTC).strftime("%Y%m%dt%H%M%Sz")
    return Life(final=f"{observed.identifier}-final-{moment}", born_from=born_from, rewound_at=rewound_at)


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
