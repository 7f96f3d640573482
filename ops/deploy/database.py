"""A stage's database around a flip: may it go, may it come from that snapshot, which old snapshots may go."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from ops.aws_account import LiveDatabase, Snapshot
from ops.refusal import Failure, Refusal

RESTORE_NOTHING = "none"

# A region holds 100 snapshots made by hand.
SNAPSHOTS_KEPT = 5

# A database in one of these is not there yet, or no longer: nothing that it might need again is deleted then.
_NOT_ANSWERING = ("creating", "deleting", "failed", "inaccessible", "incompatible", "restore-error", "stopped")


class Databases(Protocol):
    """What is asked of AWS about databases; :class:`ops.aws_account.AwsAccount` answers it."""

    def database(self, identifier: str) -> LiveDatabase | None: ...
    def snapshots(self, identifier: str) -> list[Snapshot]: ...
    def snapshot(self, name: str) -> Snapshot | None: ...
    def delete_snapshot(self, name: str) -> None: ...
    def remembered_snapshots(self, parameter: str) -> frozenset[str] | None: ...


class StageDatabase:
    """The database ``minitickets-<stage>-db``, its final snapshots and the parameter that remembers them.

    The names are the program's (infra/src/data): AWS holds the snapshots long after the state forgot the database.
    """

    def __init__(self, *, stage: str, aws: Databases) -> None:
        self.identifier = f"minitickets-{stage}-db"
        self._final_prefix = f"{self.identifier}-final-"
        self._memory = f"/minitickets-{stage}/database-life"
        self._stage = stage
        self._aws = aws

    def require_deletable(self) -> None:
        """Refusal while the live database's deletion protection is on: Pulumi would fail on it in the middle."""
        live = self._aws.database(self.identifier)
        if live is not None and live.deletion_protection:
            raise Refusal(
                f"Database {self.identifier} has deletion protection, so it cannot be switched off: set "
                f"minitickets:deletionProtection to false, run make up STAGE={self._stage}, then try again"
            )

    def require_restorable(self, restore_from: str) -> None:
        """Refusal where RESTORE_FROM names what cannot be restored now, or a database is there already."""
        live = self._aws.database(self.identifier)
        if live is not None:
            raise Refusal(
                f"RESTORE_FROM={restore_from} is refused while database {self.identifier} is there ({live.status}): "
                f"run make data-off STAGE={self._stage} first; its final snapshot will keep what it holds"
            )
        if restore_from == RESTORE_NOTHING:
            return
        found = self._aws.snapshot(restore_from)
        if found is None:
            names = [snapshot.name for snapshot in self._newest_first() if snapshot.status == "available"]
            known = f"there are: {', '.join(names)}" if names else "this stage has none"
            raise Refusal(f"RESTORE_FROM={restore_from}: no snapshot has that name ({known})")
        if found.status != "available":
            raise Refusal(f"RESTORE_FROM={restore_from}: it is {found.status}, try again once it is available")

    def prune(self, *, keep: int, say: Callable[[str], None]) -> None:
        """Delete this stage's final snapshots but the newest ``keep``, once the database answers.

        The one that the stage remembers and the one that the database was born from stay, however old. Nothing is
        deleted where the memory cannot be read.
        """
        live = self._aws.database(self.identifier)
        if live is None or live.status.startswith(_NOT_ANSWERING):
            return
        remembered = self._aws.remembered_snapshots(self._memory)
        if remembered is None:
            say(f"No parameter {self._memory}: old snapshots are left alone")
            return
        for snapshot in self._newest_first()[keep:]:
            if snapshot.name not in remembered and snapshot.status == "available":
                self._aws.delete_snapshot(snapshot.name)
                say(f"Deleted old snapshot {snapshot.name} (the newest {keep} are kept)")

    def delete_final_snapshots(self, *, say: Callable[[str], None]) -> None:
        """Delete every final snapshot of this stage. Failure, after trying all, that names those still there."""
        left = []
        for snapshot in self._newest_first():
            try:
                self._aws.delete_snapshot(snapshot.name)
            except Failure as failure:
                left.append(f"{snapshot.name} ({failure})")
            else:
                say(f"Deleted snapshot {snapshot.name}")
        if left:
            raise Failure(
                f"Everything is gone but these snapshots: {'; '.join(left)}. Run make destroy STAGE={self._stage} again"
            )

    def final_snapshots(self) -> list[str]:
        """The names of this stage's final snapshots, the newest first."""
        return [snapshot.name for snapshot in self._newest_first()]

    def _newest_first(self) -> list[Snapshot]:
        """By the time of their making; one that is still being written is the newest of all."""
        finals = [found for found in self._aws.snapshots(self.identifier) if found.name.startswith(self._final_prefix)]
        unfinished = datetime.max.replace(tzinfo=UTC)
        return sorted(finals, key=lambda found: (found.made or unfinished, found.name), reverse=True)
