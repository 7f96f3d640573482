"""The program under the Pulumi SDK's mock hook: each resource goes to a small engine instead of being pretended.

The hook is meant for tests. What it lacks is added here: resource options reach the engine, secrets arrive unwrapped,
archives arrive by their bytes' hash, outputs of the stack are collected.
"""

import asyncio
import hashlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import empty_pb2
from pulumi.runtime import mocks, rpc, settings
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import run_in_stack

from local.drivers.aws_schema import takes_tags
from local.drivers.small_engine import Options, RegistrationError, SmallEngine
from local.resource_store import Key

# Enough that resources which wait for slow ones (a database, a service) do not hold up the others.
_THREADS = 24


class ProgramError(RuntimeError):
    """The program refused to go on (its message is for the person), or failed."""


def run_program(
    engine: SmallEngine, *, root: Path, project: str, stage: str, config: Mapping[str, str]
) -> dict[str, Any]:
    """Run ``infra/__main__.py`` and have the engine make what it declares; returns the stack's outputs.

    ProgramError if the program itself refuses or fails; what the engine could not do stands in its summary's failures.
    """
    # The SDK binds futures to the loop that is set when its parts are made.
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(max_workers=_THREADS, initializer=_set_loop))
    asyncio.set_event_loop(loop)
    monitor = _Monitor(engine, program=root / "infra", default_tags=_default_tags(config))
    mocks.set_mocks(monitor.mocks, project=project, stack=stage, preview=False, monitor=monitor)
    # set_mocks leaves a finished stack behind; the program's outputs belong to one of its own.
    settings.set_root_resource(None)  # type: ignore[arg-type]  # Pulumi's own way to forget the last root
    pulumi.runtime.set_all_config(dict(config))
    os.chdir(root / "infra")
    sys.path.insert(0, str(root / "infra"))
    try:
        loop.run_until_complete(run_in_stack(lambda: _run_main(root / "infra" / "__main__.py")))
    except Exception as error:
        if engine.summary.failures:
            return {}
        raise ProgramError(_explanation(error)) from error
    finally:
        # A failure of one resource ends the program's run, not the verbs that are under way for others.
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    return monitor.outputs


def _run_main(program: Path) -> None:
    runpy.run_path(str(program), run_name="__main__")


def _explanation(error: Exception) -> str:
    """What a program says when it refuses is its message; anything else is a fault, and wants its traceback."""
    is_refusal = isinstance(error, pulumi.RunError | RegistrationError) or type(error).__module__.startswith("src.")
    return str(error) if is_refusal else "".join(traceback.format_exception(error))


class _Monitor(mocks.MockMonitor):
    """The mock hook's monitor; the whole request reaches the engine, resource options included."""

    def __init__(self, engine: SmallEngine, *, program: Path, default_tags: Mapping[str, str]) -> None:
        super().__init__(_LookUps(engine))
        self.outputs: dict[str, Any] = {}
        self._engine = engine
        self._program = program
        self._default_tags = default_tags

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the SDK's name
        urn = self.make_urn(request.parent, request.type, request.name)
        if not request.custom or request.type.startswith("pulumi:"):
            return resource_pb2.RegisterResourceResponse(urn=urn, id=request.name, object=request.object)
        raw = rpc.deserialize_properties(request.object)
        inputs = {key: self._plain(value) for key, value in raw.items() if value is not None}
        if self._default_tags and takes_tags(request.type):
            inputs["tags"] = {**self._default_tags, **inputs.get("tags", {})}
        options = Options(
            depends_on=tuple(sorted({_key_of(needed) for needed in request.dependencies}, key=str)),
            ignore_changes=tuple(request.ignoreChanges),
            replace_on_changes=tuple(request.replaceOnChanges),
            protect=request.protect,
            retain_on_delete=request.retainOnDelete,
        )
        resource = self._engine.register(Key(type=request.type, name=request.name), inputs, options)
        assets = {key: value for key, value in raw.items() if isinstance(value, pulumi.Asset | pulumi.Archive)}
        state = {**resource.outputs, **assets}
        self.resources[urn] = mocks.MockMonitor.ResourceRegistration(urn, resource.id, state)
        return resource_pb2.RegisterResourceResponse(
            urn=urn, id=resource.id, object=asyncio.get_event_loop().run_until_complete(_serialized(state))
        )

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802 - the SDK's name
        self.outputs.update(_unwrapped(rpc.deserialize_properties(request.outputs)))
        return empty_pb2.Empty()

    def ReadResource(self, request: Any) -> Any:  # noqa: N802 - the SDK's name
        raise RegistrationError(f"{request.type} {request.name}: reading an existing resource is not supported here")

    def _plain(self, value: Any) -> Any:
        """A value as JSON has it: secrets unwrapped, archives and assets by path and hash, nothing for None."""
        value = _unwrapped(value)
        if isinstance(value, pulumi.FileArchive | pulumi.FileAsset):
            return self._hashed(Path(value.path))
        if isinstance(value, pulumi.Asset | pulumi.Archive):
            raise RegistrationError(
                f"only file archives and file assets are supported here, not {type(value).__name__}"
            )
        if isinstance(value, dict):
            return {key: self._plain(item) for key, item in value.items() if item is not None}
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        return value

    def _hashed(self, path: Path) -> dict[str, str]:
        # Relative paths count from the program's folder, as for the engine.
        file = (self._program / path).resolve()
        if not file.is_file():
            raise RegistrationError(f"{file.name} is missing: `make build` makes it")
        return {"path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def _default_tags(config: Mapping[str, str]) -> dict[str, str]:
    """The AWS provider's own setting: it, not the program, puts these on all that takes tags."""
    tags: dict[str, str] = json.loads(config.get("aws:defaultTags", "{}")).get("tags", {})
    return tags


class _LookUps(mocks.Mocks):
    def __init__(self, engine: SmallEngine) -> None:
        self._engine = engine

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        # An exception here would end the program, even one that catches it; a failure reaches it as its own error.
        result, reason = self._engine.invoke(args.token, _unwrapped(args.args))
        return result, [] if reason is None else [("", reason)]

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        raise NotImplementedError("the monitor registers resources itself")


async def _serialized(state: dict[str, Any]) -> Any:
    return await rpc.serialize_properties(state, {})


def _set_loop() -> None:
    """The SDK serialises with the loop of the calling thread, and threads have none of their own."""
    asyncio.set_event_loop(asyncio.new_event_loop())


def _unwrapped(value: Any) -> Any:
    if rpc.is_rpc_secret(value):
        return _unwrapped(rpc.unwrap_rpc_secret(value))
    if isinstance(value, dict):
        return {key: _unwrapped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unwrapped(item) for item in value]
    return value


def _key_of(urn: str) -> Key:
    _, _, rest = urn.partition("urn:pulumi:")
    _, _, qualified_type, name = rest.split("::", 3)
    return Key(type=qualified_type.rpartition("$")[2], name=name)
