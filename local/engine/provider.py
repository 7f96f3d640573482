"""The platform as the `aws` provider of the real Pulumi engine, over gRPC.

The engine decides what is created, updated, replaced and deleted; each verb goes to the platform's control API and
there to the same handlers as under the mock hook. Nothing is kept here, so that a run which is killed loses nothing:
what it began is finished by the platform, and found by the next run.
"""
# ruff: noqa: N802 - the names are those of the protocol

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb

from local.control_client import NothingFoundError, RefusedError
from local.drivers.aws_schema import output_names, takes_tags
from local.engine.holds import EngineGoneError, Holds
from local.engine.known_resources import Control, KnownResources
from local.engine.operations import CREATE, DELETE, UPDATE, Operation
from local.engine.replacement import Change, change
from local.engine.values import (
    UNKNOWN,
    Properties,
    UnusableValueError,
    as_it_came,
    plain,
    properties_of,
    secret,
    struct_of,
    unwrapped,
    with_drift,
    without_elided_files,
)
from local.processes import ProcessError
from local.resource_store import Key, StoredResource
from ops.deploy.import_ids import IMPORT_IDS

# Longer than any verb takes: a database's start, an API's health check, a task's drain.
_VERB_SECONDS = 240.0

# Of the program's types those without a fixed name.
_AUTO_NAMED = frozenset(
    {"aws:ec2/securityGroup:SecurityGroup", "aws:lb/loadBalancer:LoadBalancer", "aws:lb/targetGroup:TargetGroup"}
)

_REFUSALS = (RefusedError, NothingFoundError, ProcessError, UnusableValueError)


class EngineProvider(provider_pb2_grpc.ResourceProviderServicer):
    """Answers the engine. ``version`` is the provider's that the program was written for."""

    def __init__(self, control: Control, *, version: str, record: Callable[[Operation], None], holds: Holds) -> None:
        self._control = control
        self._holds = holds
        self._known = KnownResources(control)
        self._version = version
        self._record = record
        self._replaced_by: Mapping[str, list[str]] | None = None
        self._default_tags: dict[str, str] = {}
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._locks_lock = threading.Lock()

    def Attach(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Handshake(self, request: Any, context: Any) -> Any:
        return pb.ProviderHandshakeResponse(accept_secrets=True, accept_resources=False, accept_outputs=False)

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=self._version)

    def GetSchema(self, request: Any, context: Any) -> Any:
        return pb.GetSchemaResponse(schema="{}")

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return pb.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return pb.DiffResponse(changes=pb.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        tags = unwrapped(properties_of(request.args)).get("defaultTags") or request.variables.get(
            "aws:config:defaultTags"
        )
        # The engine hands a structured setting of a provider on as JSON.
        self._default_tags = (json.loads(tags) if isinstance(tags, str) and tags else tags or {}).get("tags") or {}
        return pb.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    def Check(self, request: Any, context: Any) -> Any:
        token, name = _token_and_name(request.urn)
        news = properties_of(request.news)
        if token not in self._types(context):
            reason = f"no handler for the resource type {token} ({name}): add one in local/handlers"
            return pb.CheckResponse(inputs=request.news, failures=[pb.CheckFailure(reason=reason)])
        if token in _AUTO_NAMED and not news.get("name"):
            news.update(_auto_name(name, old=properties_of(request.olds), seed=request.randomSeed))
        if self._default_tags and takes_tags(token):
            # As the provider does: they are part of the inputs, so that a change of them is seen.
            news["tags"] = _with_default_tags(news.get("tags"), self._default_tags)
        return pb.CheckResponse(inputs=struct_of(news))

    def Diff(self, request: Any, context: Any) -> Any:
        token, _ = _token_and_name(request.urn)
        found = change(
            token,
            old=properties_of(request.old_inputs),
            new=properties_of(request.news),
            ignored=list(request.ignoreChanges),
            replaced_by=self._types(context).get(token, ()),
        )
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if found.changed else pb.DiffResponse.DIFF_NONE,
            diffs=found.changed,
            replaces=found.replacing,
            deleteBeforeReplace=found.deletes_first,
            detailedDiff=_detailed(found),
            hasDetailedDiff=True,
        )

    def Create(self, request: Any, context: Any) -> Any:
        token, name = _token_and_name(request.urn)
        inputs = properties_of(request.properties)
        if request.preview:
            unknown = {output: UNKNOWN for output in output_names(token) if output not in inputs}
            return pb.CreateResponse(properties=struct_of({**unknown, **inputs}))
        with self._doing(CREATE, token, name, context):
            taken = self._known.taken_over(token, plain(inputs))
            if taken is not None:
                made = self._send("/resources/update", taken.key, inputs, depends_on=list(taken.depends_on))
            else:
                key, depends_on = self._known.place_for(token, name)
                made = self._send("/resources/create", key, inputs, depends_on=depends_on)
            return pb.CreateResponse(id=made.id, properties=struct_of(as_it_came(made.outputs, inputs)))

    def Update(self, request: Any, context: Any) -> Any:
        token, name = _token_and_name(request.urn)
        old, new = properties_of(request.olds), properties_of(request.news)
        was = properties_of(request.old_inputs)
        changed = change(token, old=was, new=new, ignored=list(request.ignoreChanges), replaced_by=()).changed
        if request.preview:
            # Only what changes is new: this machine's answer to the rest (a port, say) stays.
            kept = {key: value for key, value in old.items() if key in new or key not in was}
            return pb.UpdateResponse(
                properties=struct_of({**kept, **{key: value for key, value in new.items() if key in changed}})
            )
        with self._doing(UPDATE, token, name, context, changed=changed):
            stored = self._known.find(token, name=name, id=request.id, outputs=unwrapped(old))
            if stored is None:
                raise RefusedError(f"{token} {name} ({request.id}) does not exist: refresh the stack")
            made = self._send("/resources/update", stored.key, new, depends_on=list(stored.depends_on))
            return pb.UpdateResponse(properties=struct_of(as_it_came(made.outputs, new)))

    def Delete(self, request: Any, context: Any) -> Any:
        token, name = _token_and_name(request.urn)
        with self._doing(DELETE, token, name, context):
            outputs = unwrapped(properties_of(request.properties))
            stored = self._known.find(token, name=name, id=request.id, outputs=outputs)
            if stored is not None:  # what is gone already needs no delete, as the provider sees it
                self._control.post("/resources/delete", _body(stored.key), seconds=_VERB_SECONDS)
            return empty_pb2.Empty()

    def Read(self, request: Any, context: Any) -> Any:
        """A resource as it is now. Without outputs it is an import: by the id that AWS made up, or by one that is made
        of its name, under which the platform knows it whatever its id is on this machine."""
        token, name = _token_and_name(request.urn)
        inputs, outputs = properties_of(request.inputs), properties_of(request.properties)
        with _refusing(context), self._alone(token, name):
            stored = self._known.find(token, name=name, id=request.id, outputs=unwrapped(outputs))
            if stored is None and not outputs and token in IMPORT_IDS:
                stored = self._known.named(token, name) or self._adopted(Key(type=token, name=name), inputs)
            if stored is None:
                return pb.ReadResponse()
            answer = self._control.post("/resources/read", _body(stored.key), seconds=_VERB_SECONDS)
            if answer is None:
                return pb.ReadResponse()
            live = StoredResource.from_json(answer)
            return pb.ReadResponse(
                id=live.id,
                properties=struct_of(as_it_came(live.outputs, inputs)),
                inputs=struct_of(with_drift(inputs, known=outputs or stored.outputs, live=live.outputs)),
            )

    def Invoke(self, request: Any, context: Any) -> Any:
        arguments = plain(properties_of(request.args))
        try:
            found = self._control.post("/invoke", {"token": request.tok, "arguments": arguments})
        except (NothingFoundError, RefusedError, ProcessError) as error:
            # Not a failure of the call: the program may catch what a look-up says.
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return pb.InvokeResponse(**{"return": struct_of(found)})

    def Cancel(self, request: Any, context: Any) -> Any:
        """The engine wants to end. What is under way takes seconds here and is let finish, so that it gets written."""
        return empty_pb2.Empty()

    def _types(self, context: Any) -> Mapping[str, list[str]]:
        if self._replaced_by is None:
            try:
                self._replaced_by = self._control.get("/types")
            except (RefusedError, ProcessError) as error:
                context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return self._replaced_by or {}

    def _adopted(self, key: Key, inputs: Properties) -> StoredResource | None:
        document = {**_body(key), "inputs": plain(without_elided_files(inputs))}
        answer = self._control.post("/resources/adopt", document, seconds=_VERB_SECONDS)
        return None if answer is None else StoredResource.from_json(answer)

    def _send(self, verb: str, key: Key, inputs: Properties, *, depends_on: list[Key]) -> StoredResource:
        document = {
            **_body(key),
            "inputs": {name: value for name, value in plain(dict(inputs)).items() if name[:2] != "__"},
            "dependsOn": [[other.type, other.name] for other in depends_on],
        }
        return StoredResource.from_json(self._control.post(verb, document, seconds=_VERB_SECONDS))

    @contextlib.contextmanager
    def _doing(
        self, verb: str, token: str, name: str, context: Any, *, changed: tuple[str, ...] = ()
    ) -> Iterator[None]:
        """A verb that changes something: recorded, and held where a test asked for that."""
        began = time.monotonic()
        error: str | None = None
        with _refusing(context), self._holds.passing(verb=verb, key=f"{token} {name}", alive=context.is_active):
            try:
                with self._alone(token, name):
                    yield
            except _REFUSALS as refused:
                error = str(refused)
                raise
            finally:
                seconds = round(time.monotonic() - began, 2)
                self._record(Operation(verb=verb, type=token, name=name, seconds=seconds, changed=changed, error=error))

    @contextlib.contextmanager
    def _alone(self, token: str, name: str) -> Iterator[None]:
        """One verb at a time on a resource: one that a killed run left under way is waited for."""
        with self._locks_lock:
            lock = self._locks.setdefault((token, name), threading.Lock())
        if not lock.acquire(timeout=_VERB_SECONDS):
            raise ProcessError(f"{token} {name} is still being changed by an earlier run after {_VERB_SECONDS:g} s")
        try:
            yield
        finally:
            lock.release()


@contextlib.contextmanager
def _refusing(context: Any) -> Iterator[None]:
    """What the platform refuses is the engine's error."""
    try:
        yield
    except (*_REFUSALS, EngineGoneError) as refused:
        context.abort(grpc.StatusCode.UNKNOWN, str(refused))


def _auto_name(name: str, *, old: Properties, seed: bytes) -> dict[str, Any]:
    """The name that the provider makes up where the program gives none, and its note that it did. A resource that is
    there keeps its name."""
    kept = old.get("name") if "name" in old.get("__defaults", ()) else None
    return {"name": kept or f"{name}-{hashlib.sha256(seed).hexdigest()[:7]}", "__defaults": ["name"]}


def _token_and_name(urn: str) -> tuple[str, str]:
    _, _, qualified, name = urn.split("::", 3)
    return qualified.rpartition("$")[2], name


def _body(key: Key) -> dict[str, str]:
    return {"type": key.type, "name": key.name}


def _with_default_tags(tags: Any, defaults: Mapping[str, str]) -> Any:
    """The program's tags count over the default ones. Tags that are not known yet, or secret, stay whole."""
    if tags is None:
        return dict(defaults)
    if tags == UNKNOWN:
        return tags
    own = unwrapped(tags)
    merged = {**defaults, **own}
    return merged if own == tags else secret(merged)


def _detailed(found: Change) -> dict[str, Any]:
    return {
        key: pb.PropertyDiff(
            kind=pb.PropertyDiff.UPDATE_REPLACE if key in found.replacing else pb.PropertyDiff.UPDATE, inputDiff=True
        )
        for key in found.changed
    }
