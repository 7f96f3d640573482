"""What each resource became: kept on disk from the moment it is made, in the order of making."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from local.stage_folder import read_json, write_json


@dataclass(frozen=True, kw_only=True)
class Key:
    """A resource's name in the program: its type token and its Pulumi name."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


@dataclass(frozen=True, kw_only=True)
class StoredResource:
    """A resource that exists. Inputs and outputs may hold secrets: they are in files that only their owner reads."""

    key: Key
    id: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    depends_on: tuple[Key, ...] = ()
    is_protected: bool = False
    order: int = field(default=0)

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.key.type,
            "name": self.key.name,
            "id": self.id,
            "order": self.order,
            "protect": self.is_protected,
            "dependsOn": [[key.type, key.name] for key in self.depends_on],
            "inputs": dict(self.inputs),
            "outputs": dict(self.outputs),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "StoredResource":
        return cls(
            key=Key(type=document["type"], name=document["name"]),
            id=document["id"],
            order=document["order"],
            is_protected=document["protect"],
            depends_on=tuple(Key(type=token, name=name) for token, name in document["dependsOn"]),
            inputs=document["inputs"],
            outputs=document["outputs"],
        )


class ResourceStore:
    """The stage's resources, in ``file``. Every change is on disk when the call returns."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        stored = (StoredResource.from_json(document) for document in read_json(file) or [])
        self._resources = {resource.key: resource for resource in stored}

    def all(self) -> list[StoredResource]:
        """All resources, oldest first."""
        with self._lock:
            return sorted(self._resources.values(), key=lambda resource: resource.order)

    def get(self, key: Key) -> StoredResource | None:
        """One resource, if it exists."""
        with self._lock:
            return self._resources.get(key)

    def of_type(self, token: str) -> list[StoredResource]:
        """All resources of one type, oldest first."""
        return [resource for resource in self.all() if resource.key.type == token]

    def put(self, resource: StoredResource) -> StoredResource:
        """Keep it; a new one gets the next order, a known one keeps its own."""
        with self._lock:
            known = self._resources.get(resource.key)
            newest = max((other.order for other in self._resources.values()), default=0)
            kept = replace(resource, order=known.order if known is not None else newest + 1)
            self._resources[kept.key] = kept
            self._write()
        return kept

    def remove(self, key: Key) -> None:
        """Forget it."""
        with self._lock:
            if self._resources.pop(key, None) is not None:
                self._write()

    def _write(self) -> None:
        write_json(self._file, [resource.to_json() for resource in self._resources.values()])
