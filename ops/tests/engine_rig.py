"""A program of a few resources and a provider that keeps them in a file, for the real engine to deploy.

``python engine_rig.py <folder>`` serves both, writes ``<folder>/ports.json`` and stays. The provider answers as the AWS
one does where it matters here: a name in use is refused, what is gone is read as gone, a changed user name replaces a
database. A create waits while ``<folder>/hold`` is there, after it has made the resource.
"""
# ruff: noqa: N802 - the names are those of the protocol

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from concurrent import futures
from pathlib import Path
from typing import Any

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import pulumi
from google.protobuf import empty_pb2, struct_pb2
from google.protobuf.json_format import MessageToDict
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc as rpc

_NAME_INPUT = {
    "aws:rds/instance:Instance": "identifier",
    "aws:dynamodb/table:Table": "name",
    "aws:ecs/service:Service": "name",
}
_REPLACED_BY = {"aws:rds/instance:Instance": {"username"}, "aws:dynamodb/table:Table": {"hashKey"}}


def program() -> None:
    """The stage in small: a table always, a database while data is on, a service while compute is."""
    config = pulumi.Config("minitickets")
    if reason := config.get("fails"):
        raise pulumi.RunError(reason)
    name = f"minitickets-{pulumi.get_stack()}"
    _declare(
        "aws:dynamodb/table:Table", "tickets", {"name": f"{name}-tickets", "hashKey": config.get("hashKey") or "u"}
    )
    if config.require_bool("dataEnabled"):
        inputs = {"identifier": f"{name}-db", "username": config.get("username") or "minitickets"}
        _declare("aws:rds/instance:Instance", "db", inputs)
    if config.require_bool("computeEnabled") and config.get("image"):
        _declare("aws:ecs/service:Service", "api", {"name": f"{name}-api", "image": config.get("image")})
    pulumi.export("stage", pulumi.get_stack())


def _declare(kind: str, name: str, inputs: Mapping[str, Any]) -> None:
    pulumi.CustomResource(kind, name, dict(inputs))


class _Provider(rpc.ResourceProviderServicer):
    def __init__(self, folder: Path) -> None:
        self._store = folder / "cloud.json"
        self._hold = folder / "hold"
        self._one_at_a_time = threading.Lock()

    def _cloud(self) -> dict[str, Any]:
        cloud: dict[str, Any] = json.loads(self._store.read_text()) if self._store.exists() else {}
        return cloud

    def _keep(self, cloud: Mapping[str, Any]) -> None:
        written = self._store.with_suffix(".new")
        written.write_text(json.dumps(cloud))
        written.rename(self._store)

    def Attach(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Handshake(self, request: Any, context: Any) -> Any:
        return pb.ProviderHandshakeResponse(accept_secrets=True, accept_resources=True, accept_outputs=True)

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version="7.51.1")

    def GetSchema(self, request: Any, context: Any) -> Any:
        return pb.GetSchemaResponse(schema="{}")

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return pb.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return pb.DiffResponse(changes=pb.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        return pb.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=True, acceptOutputs=True)

    def Check(self, request: Any, context: Any) -> Any:
        return pb.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:
        old, new = MessageToDict(request.old_inputs), MessageToDict(request.news)
        changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        replaced = [key for key in changed if key in _REPLACED_BY.get(_kind(request.urn), set())]
        detail = {
            key: pb.PropertyDiff(kind=pb.PropertyDiff.UPDATE_REPLACE if key in replaced else pb.PropertyDiff.UPDATE)
            for key in changed
        }
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if changed else pb.DiffResponse.DIFF_NONE,
            diffs=changed,
            replaces=replaced,
            deleteBeforeReplace=bool(replaced),
            detailedDiff=detail,
            hasDetailedDiff=True,
        )

    def Create(self, request: Any, context: Any) -> Any:
        inputs = MessageToDict(request.properties)
        if request.preview:
            return pb.CreateResponse(properties=_struct(inputs))
        name = str(inputs[_NAME_INPUT[_kind(request.urn)]])
        with self._one_at_a_time:
            cloud = self._cloud()
            if name in cloud:
                context.abort(grpc.StatusCode.ALREADY_EXISTS, f"{name} already exists")
            self._keep({**cloud, name: inputs})
        while self._hold.exists():
            time.sleep(0.01)
        return pb.CreateResponse(id=name, properties=_struct(inputs))

    def Update(self, request: Any, context: Any) -> Any:
        with self._one_at_a_time:
            self._keep({**self._cloud(), request.id: MessageToDict(request.news)})
        return pb.UpdateResponse(properties=request.news)

    def Delete(self, request: Any, context: Any) -> Any:
        with self._one_at_a_time:
            self._keep({key: value for key, value in self._cloud().items() if key != request.id})
        return empty_pb2.Empty()

    def Read(self, request: Any, context: Any) -> Any:
        found = self._cloud().get(request.id)
        if found is None:
            return pb.ReadResponse()
        return pb.ReadResponse(id=request.id, properties=_struct(found), inputs=_struct(found))

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()


def _kind(urn: str) -> str:
    return urn.split("::")[2].split("$")[-1]


def _struct(values: Mapping[str, Any]) -> Any:
    struct = struct_pb2.Struct()
    struct.update(values)
    return struct


def _serve(folder: Path) -> None:
    provider = grpc.server(futures.ThreadPoolExecutor(8))
    rpc.add_ResourceProviderServicer_to_server(_Provider(folder), provider)
    language = grpc.server(futures.ThreadPoolExecutor(4))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageServer(program), language)
    ports = {
        "provider": provider.add_insecure_port("127.0.0.1:0"),
        "language": language.add_insecure_port("127.0.0.1:0"),
    }
    provider.start()
    language.start()
    written = folder / "ports.json.new"
    written.write_text(json.dumps(ports))
    written.rename(folder / "ports.json")
    provider.wait_for_termination()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
