"""Which of the platform's resources the engine means: it names one by its id, the platform by type and name.

While a replacement is under way the engine has two resources of one name; the second is then kept as ``<name>-2``.
"""

import itertools
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from local.engine.values import Properties
from local.handlers.handler import Handler
from local.handlers.registry import HANDLERS
from local.resource_store import Key, StoredResource
from ops.deploy.import_ids import TAKEN_OVER


class Control(Protocol):
    """What is asked of the platform's control API; :class:`local.control_client.ControlClient` does it."""

    def get(self, path: str, **query: str) -> Any: ...
    def post(self, path: str, document: object, *, seconds: float = 120) -> Any: ...


class KnownResources:
    """The platform's resources, looked up anew at every call."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def of_type(self, token: str) -> list[StoredResource]:
        """Those of a type, oldest first."""
        return [StoredResource.from_json(document) for document in self._control.get("/resources", type=token)]

    def find(self, token: str, *, name: str, id: str, outputs: Properties) -> StoredResource | None:
        """The one of this id or ARN; where several share an id (revisions of a task definition do), the one of the ARN
        in its outputs."""
        same = [found for found in self.of_type(token) if id in (found.id, found.outputs.get("arn"))]
        if outputs.get("arn"):
            same = [found for found in same if found.outputs.get("arn") == outputs["arn"]]
        return next((found for found in same if found.key.name == name), same[0] if same else None)

    def named(self, token: str, name: str) -> StoredResource | None:
        """The one of this type and name, whatever its id."""
        return next((found for found in self.of_type(token) if found.key.name == name), None)

    def taken_over(self, token: str, inputs: Properties) -> StoredResource | None:
        """What a create of this type would take over, if an earlier one did: it comes with its VPC, or its bucket."""
        owner = {key: inputs[key] for key in ("vpcId", "bucket", "defaultNetworkAclId") if key in inputs}
        if token not in TAKEN_OVER or not owner:
            return None
        return next((found for found in self.of_type(token) if owner.items() <= found.inputs.items()), None)

    def place_for(self, token: str, name: str) -> tuple[Key, list[Key]]:
        """A free key for a new one, and what must run again before it after a restart of the platform.

        The engine does not tell a provider what depends on what; all that runs and is older is safe to wait for.
        """
        known = [Key(type=type_, name=taken) for type_, taken in self._control.get("/resources/keys")]
        candidates = (
            Key(type=token, name=name if number == 1 else f"{name}-{number}") for number in itertools.count(1)
        )
        return next(key for key in candidates if key not in known), [key for key in known if key.type in _RUNNING]


def _running_types(handlers: Mapping[str, type[Handler]]) -> Collection[str]:
    return {token for token, handler in handlers.items() if handler.resume is not Handler.resume}


_RUNNING = _running_types(HANDLERS)
