"""Where databases and their snapshots live on this machine: a folder each, moved and copied whole.

``rds/<instance>/`` holds ``data/`` (PostgreSQL's) and ``instance.json``; ``rds-snapshots/<snapshot>/`` is such a
folder as it was, with ``snapshot.json`` beside. A folder without its JSON file is the debris of a crash.
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DatabaseFacts:
    """What a database was born with, and a snapshot keeps: its identity, its owner, its name."""

    identifier: str
    resource_id: str
    engine_version: str
    username: str
    database: str | None


class DatabaseFiles:
    """The folders below one stage's state."""

    def __init__(self, state: Path) -> None:
        self._instances = state / "rds"
        self._snapshots = state / "rds-snapshots"

    def instance(self, identifier: str) -> Path:
        """Folder of an instance, there or not."""
        return self._instances / identifier

    def snapshot(self, name: str) -> Path:
        """Folder of a snapshot, there or not."""
        return self._snapshots / name

    def instance_facts(self, identifier: str) -> DatabaseFacts | None:
        """The facts of a finished instance; None if there is none."""
        return _read(self.instance(identifier) / "instance.json")

    def snapshot_facts(self, name: str) -> DatabaseFacts | None:
        """The facts of the database that a snapshot is of; None if there is no such snapshot with data here."""
        return _read(self.snapshot(name) / "snapshot.json")

    def begin(self, identifier: str, *, snapshot: str | None = None) -> Path:
        """An instance's folder to fill: empty, or with a copy of a snapshot's data. Debris in its place is removed."""
        folder = self.instance(identifier)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        if snapshot is not None:
            shutil.copytree(self.snapshot(snapshot) / "data", folder / "data")
            (folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        return folder

    def finish(self, facts: DatabaseFacts) -> None:
        """Mark an instance as whole."""
        _write(self.instance(facts.identifier) / "instance.json", facts)

    def move_to_snapshot(self, identifier: str, name: str) -> None:
        """Turn a stopped instance's folder into a snapshot: one rename, so that a crash leaves one or the other.

        Whoever calls has made sure that AWS knows no snapshot of that name; data left under it has no owner.
        """
        facts = self.instance_facts(identifier)
        if facts is None:
            raise FileNotFoundError(f"no database in {self.instance(identifier)}")
        _write(self.instance(identifier) / "snapshot.json", facts)
        shutil.rmtree(self.snapshot(name), ignore_errors=True)
        self._snapshots.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.instance(identifier).rename(self.snapshot(name))

    def remove(self, identifier: str) -> None:
        """Remove an instance's folder with all its data."""
        shutil.rmtree(self.instance(identifier), ignore_errors=True)


def _read(file: Path) -> DatabaseFacts | None:
    try:
        return DatabaseFacts(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None


def _write(file: Path, facts: DatabaseFacts) -> None:
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(facts)))
    partial.replace(file)
