"""What the Pulumi engine does, as far as the mock hook needs it: create, update, replace, prune.

It acts through the platform's control API. Unlike the engine it adopts what exists already but is not on record.
"""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.control_client import ControlClient, NothingFoundError, RefusedError
from local.drivers.diff import difference
from local.resource_store import Key, StoredResource


class RegistrationError(RuntimeError):
    """A resource could not become what the program declares. The message names it, and says what AWS would say."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The resource options of the program that matter here."""

    depends_on: tuple[Key, ...] = ()
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    protect: bool = False
    retain_on_delete: bool = False


@dataclass
class Summary:
    """What a run did: how many of each, and what failed."""

    created: int = 0
    adopted: int = 0
    updated: list[Key] = field(default_factory=list)
    replaced: list[Key] = field(default_factory=list)
    unchanged: int = 0
    deleted: list[Key] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = {
            "created": self.created,
            "adopted": self.adopted,
            "updated": len(self.updated),
            "replaced": len(self.replaced),
            "deleted": len(self.deleted),
            "unchanged": self.unchanged,
        }
        return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing declared"


class SmallEngine:
    """One run of the program over what the platform has. ``register`` may be called from many threads."""

    def __init__(self, client: ControlClient) -> None:
        self.summary = Summary()
        self._client = client
        self._replaced_by: Mapping[str, Collection[str]] = client.get("/types")
        stored = (StoredResource.from_json(document) for document in client.get("/resources"))
        self._stored = {resource.key: resource for resource in stored}
        self._declared: set[Key] = set()
        self._retained: set[Key] = set()
        self._lock = threading.Lock()

    def register(self, key: Key, inputs: Mapping[str, Any], options: Options) -> StoredResource:
        """Have the resource be what the program declares; RegistrationError if it cannot."""
        with self._lock:
            if key in self._declared:
                raise RegistrationError(f"{key} is declared twice")
            self._declared.add(key)
            if options.retain_on_delete:
                self._retained.add(key)
        try:
            return self._become(key, inputs, options)
        except RefusedError as error:
            failure = f"{key.type.rpartition(':')[2]} {key.name} ({key.type}): {error}"
            with self._lock:
                self.summary.failures.append(failure)
            raise RegistrationError(failure) from error

    def invoke(self, token: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
        """A look-up: its result, or why there is none."""
        try:
            return dict(self._client.post("/invoke", {"token": token, "arguments": arguments})), None
        except (NothingFoundError, RefusedError) as error:
            return {}, str(error)

    def prune(self) -> None:
        """Remove what exists but is declared no more, newest first; RegistrationError at the first that refuses."""
        for resource in sorted(self._stored.values(), key=lambda resource: -resource.order):
            if resource.key in self._declared or resource.key in self._retained:
                continue
            try:
                self._client.post("/resources/delete", _name(resource.key))
            except RefusedError as error:
                failure = f"{resource.key} cannot be removed: {error}"
                self.summary.failures.append(failure)
                raise RegistrationError(failure) from error
            self.summary.deleted.append(resource.key)

    def _become(self, key: Key, inputs: Mapping[str, Any], options: Options) -> StoredResource:
        stored = self._stored.get(key)
        if stored is None:
            return self._create_or_adopt(key, inputs, options)
        found = difference(
            old=stored.inputs,
            new=inputs,
            ignored=options.ignore_changes,
            replaced_by={*self._replaced_by.get(key.type, ()), *options.replace_on_changes},
        )
        if found.replacing:
            if options.protect or stored.is_protected:
                raise RefusedError(f"it is protected, but {', '.join(sorted(found.replacing))} would replace it")
            self._client.post("/resources/delete", _name(key))
            made = self._create(key, found.inputs, options)
            with self._lock:
                self.summary.replaced.append(key)
            return made
        is_same = not found.changed and stored.is_protected == options.protect
        if is_same and stored.depends_on == options.depends_on:
            with self._lock:
                self.summary.unchanged += 1
            return stored
        updated = StoredResource.from_json(
            self._client.post("/resources/update", _declared(key, found.inputs, options))
        )
        with self._lock:
            if found.changed:
                self.summary.updated.append(key)
            else:
                self.summary.unchanged += 1
        return updated

    def _create_or_adopt(self, key: Key, inputs: Mapping[str, Any], options: Options) -> StoredResource:
        try:
            made = self._create(key, inputs, options)
        except RefusedError:
            adopted = self._client.post("/resources/adopt", _declared(key, inputs, options))
            if adopted is None:
                raise
            with self._lock:
                self.summary.adopted += 1
            return StoredResource.from_json(adopted)
        with self._lock:
            self.summary.created += 1
        return made

    def _create(self, key: Key, inputs: Mapping[str, Any], options: Options) -> StoredResource:
        return StoredResource.from_json(self._client.post("/resources/create", _declared(key, inputs, options)))


def _name(key: Key) -> dict[str, str]:
    return {"type": key.type, "name": key.name}


def _declared(key: Key, inputs: Mapping[str, Any], options: Options) -> dict[str, Any]:
    return {
        **_name(key),
        "inputs": dict(inputs),
        "dependsOn": [[needed.type, needed.name] for needed in options.depends_on],
        "protect": options.protect,
    }
