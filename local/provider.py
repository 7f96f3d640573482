"""The verbs of a provider over the stage's resources: what a driver asks for, a handler does, and the store keeps."""

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Outputs, PlatformServices
from local.handlers.refusals import refusals
from local.processes import ProcessError
from local.resource_store import Key, ResourceStore, StoredResource

LookUp = Callable[[PlatformServices, str, Mapping[str, Any]], Outputs]

# Below this, a step of the start is not worth a line to the person who watches.
_WORTH_A_LINE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A resource as the program declares it now."""

    key: Key
    inputs: Inputs
    depends_on: tuple[Key, ...] = ()
    is_protected: bool = False


class Provider:
    """Creates, reads, updates and deletes resources through their handlers, and resumes them after a restart."""

    def __init__(
        self,
        platform: PlatformServices,
        store: ResourceStore,
        *,
        handlers: Mapping[str, type[Handler]],
        look_up: LookUp,
    ) -> None:
        self._platform = platform
        self._store = store
        self._handlers = {token: handler(platform) for token, handler in handlers.items()}
        self._look_up = look_up
        self._busy: set[Key] = set()
        self._lock = threading.Lock()

    def replaced_by(self) -> dict[str, Collection[str]]:
        """Of each known type, the inputs whose change replaces the resource."""
        return {token: handler.replaced_by for token, handler in self._handlers.items()}

    def resources(self) -> list[StoredResource]:
        """What exists, oldest first."""
        return self._store.all()

    def create(self, declared: Declared) -> StoredResource:
        """Make a resource. HandlerError if AWS would refuse it, or if nothing here handles its type."""
        if self._store.get(declared.key) is not None:
            raise HandlerError(f"{declared.key} exists already")
        handler = self._handler(declared.key)
        with self._exclusively(declared.key, "created"):
            made = handler.create(declared.key.name, declared.inputs)
            return self._keep(declared, made.id, made.outputs)

    def adopt(self, declared: Declared) -> StoredResource | None:
        """Take up what exists under the declared inputs' names but is unknown here; None if there is no such thing.

        A platform that was killed between making a resource and writing it down left it like this.
        """
        handler = self._handler(declared.key)
        with self._exclusively(declared.key, "adopted"):
            found = handler.read("", declared.inputs)
            if found is None:
                return None
            self._keep(declared, found.id, found.outputs)
            return self._keep(declared, found.id, handler.update(found.id, found.outputs, declared.inputs))

    def read(self, key: Key) -> StoredResource | None:
        """A resource as it is now; None (and forgotten) if it is gone."""
        stored = self._stored(key)
        found = self._handler(key).read(stored.id, stored.inputs)
        if found is None:
            self._store.remove(key)
            return None
        # What AWS does not tell (a port of this machine, say) is as it was when the resource was made. What somebody
        # changed there counts as declared, so that an update to what the program says is none to nothing.
        changed = {
            key: found.outputs[key]
            for key in stored.inputs
            if key in found.outputs and key in stored.outputs and found.outputs[key] != stored.outputs[key]
        }
        return self._store.put(
            replace(
                stored,
                id=found.id,
                inputs={**stored.inputs, **changed},
                outputs={**stored.outputs, **found.outputs},
            )
        )

    def update(self, declared: Declared) -> StoredResource:
        """Change a resource in place to what is declared."""
        stored = self._stored(declared.key)
        with self._exclusively(declared.key, "updated"):
            if stored.inputs == declared.inputs:
                outputs: Mapping[str, Any] = stored.outputs
            else:
                outputs = self._handler(declared.key).update(stored.id, dict(stored.outputs), declared.inputs)
            return self._keep(declared, stored.id, outputs)

    def delete(self, key: Key) -> None:
        """Remove a resource. HandlerError if AWS, or its protection, refuses."""
        stored = self._stored(key)
        if stored.is_protected:
            raise HandlerError(f"{key} is protected: the program must first declare it with protect=False")
        with self._exclusively(key, "deleted"):
            self._handler(key).delete(stored.id, dict(stored.outputs))
            self._store.remove(key)

    def invoke(self, token: str, arguments: Mapping[str, Any]) -> Outputs:
        """A look-up of the program (``aws.get_…``); InvokeError with the provider's text if it finds nothing."""
        return self._look_up(self._platform, token, arguments)

    def resume(self, *, only: str | None = None) -> None:
        """Start again what ran before the platform ended: each resource (``only``: of this type) after those that it
        depends on.

        ProcessError naming the first that does not come up.
        """
        resources = self._store.all() if only is None else self._store.of_type(only)
        done: dict[Key, Future[None]] = {resource.key: Future() for resource in resources}

        def resume(resource: StoredResource) -> None:
            try:
                for key in resource.depends_on:
                    if key in done:
                        done[key].result()
                began = time.monotonic()
                self._handler(resource.key).resume(resource.id, dict(resource.outputs))
                self._say_if_long(f"resumed {resource.key}", began)
            except BaseException as error:  # noqa: BLE001 - whoever depends on it must not wait for ever
                done[resource.key].set_exception(error)
            else:
                done[resource.key].set_result(None)

        # Oldest first, and what a resource depends on is older: a waiting one never keeps its own need from a thread.
        with ThreadPoolExecutor(max_workers=16, thread_name_prefix="resume") as pool:
            for resource in resources:
                pool.submit(resume, resource)
        for resource in resources:
            error = done[resource.key].exception()
            if error is not None:
                raise ProcessError(f"{resource.key} cannot be resumed: {error}") from error

    def _handler(self, key: Key) -> Handler:
        handler = self._handlers.get(key.type)
        if handler is None:
            raise HandlerError(f"no handler for the resource type {key.type} ({key.name}): add one in local/handlers")
        return handler

    def _stored(self, key: Key) -> StoredResource:
        stored = self._store.get(key)
        if stored is None:
            raise HandlerError(f"{key} does not exist")
        return stored

    def _keep(self, declared: Declared, id: str, outputs: Mapping[str, Any]) -> StoredResource:
        return self._store.put(
            StoredResource(
                key=declared.key,
                id=id,
                inputs=declared.inputs,
                outputs=outputs,
                depends_on=declared.depends_on,
                is_protected=declared.is_protected,
            )
        )

    @contextlib.contextmanager
    def _exclusively(self, key: Key, done: str) -> Iterator[None]:
        """One verb at a time on a resource; says how long the long ones took."""
        with self._lock:
            if key in self._busy:
                raise HandlerError(f"{key} is being changed by another driver: wait until it has finished")
            self._busy.add(key)
        began = time.monotonic()
        try:
            with refusals():
                yield
        finally:
            with self._lock:
                self._busy.discard(key)
        self._say_if_long(f"{done} {key}", began)

    def _say_if_long(self, text: str, began: float) -> None:
        seconds = time.monotonic() - began
        if seconds >= _WORTH_A_LINE_SECONDS:
            self._platform.say(f"{text} in {seconds:.1f} s")
