"""What the engine had the platform do, a line an operation: the record that a rehearsal reports from."""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

CREATE, UPDATE, DELETE = "create", "update", "delete"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One verb that changed something, or tried to. ``changed`` names the inputs of an update."""

    verb: str
    type: str
    name: str
    seconds: float
    changed: tuple[str, ...] = ()
    error: str | None = None

    @property
    def label(self) -> str:
        """Type and name as a person reads them: ``rds.Instance db``."""
        _, module, kind = self.type.split(":")
        return f"{module.partition('/')[0]}.{kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What a stretch of operations did, by label. A resource that was deleted and created was replaced."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    replaced: tuple[str, ...]
    deleted: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.created or self.updated or self.replaced or self.deleted)


class OperationLog:
    """The operations of a platform's life, in ``file``: one process writes, others read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def write(self, operation: Operation) -> None:
        """Append one."""
        with self._lock, self._file.open("a") as file:
            file.write(f"{json.dumps(asdict(operation))}\n")

    def read(self, *, skip: int = 0) -> list[Operation]:
        """All of them, in the order in which they ended, but the first ``skip``."""
        if not self._file.exists():
            return []
        documents = [json.loads(line) for line in self._file.read_text().splitlines()]
        return [Operation(**{**found, "changed": tuple(found["changed"])}) for found in documents[skip:]]


def changes(operations: Sequence[Operation]) -> Changes:
    """What they did together; those that failed did nothing."""
    done = [operation for operation in operations if operation.error is None]
    created = {operation.label for operation in done if operation.verb == CREATE}
    deleted = {operation.label for operation in done if operation.verb == DELETE}
    updated = {operation.label for operation in done if operation.verb == UPDATE}
    return Changes(
        created=tuple(sorted(created - deleted)),
        updated=tuple(sorted(updated - created - deleted)),
        replaced=tuple(sorted(created & deleted)),
        deleted=tuple(sorted(deleted - created)),
    )
