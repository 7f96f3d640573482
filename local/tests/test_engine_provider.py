"""The platform as a provider: what the engine is told, over real gRPC, with a platform that only remembers."""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import re
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from local.control_client import NothingFoundError, RefusedError
from local.engine.holds import Hold, Holds, Moment
from local.engine.operations import CREATE, Operation
from local.engine.provider import EngineProvider
from local.engine.values import UNKNOWN, properties_of, secret, struct_of
from local.processes import wait_until

pytestmark = pytest.mark.integration

GROUP = "aws:lb/targetGroup:TargetGroup"
QUEUE = "aws:sqs/queue:Queue"
TASK = "aws:ecs/taskDefinition:TaskDefinition"
CLOSED = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
POLICY = "aws:sqs/queuePolicy:QueuePolicy"
PARAMETER = "aws:ssm/parameter:Parameter"


class RememberingPlatform:
    """A control API that makes whatever it is asked for, and answers with ``made`` beside the inputs."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], dict[str, Any]] = {}
        self.made: dict[str, Any] = {"arn": "arn:made"}
        self.refusal: Exception | None = None
        self.sent: list[tuple[str, Any]] = []
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.begun = threading.Event()

    def get(self, path: str, **query: str) -> Any:
        if path == "/types":
            return {
                POLICY: [],
                GROUP: ["port"],
                QUEUE: ["name", "region"],
                TASK: ["containerDefinitions"],
                PARAMETER: ["name", "type"],
            }
        if path == "/resources/keys":
            return [list(key) for key in self.stored]
        return [stored for (token, _), stored in self.stored.items() if query.get("type") in (None, token)]

    def post(self, path: str, document: Any, *, seconds: float = 120) -> Any:
        self.sent.append((path, document))
        if self.refusal is not None:
            raise self.refusal
        key = (document.get("type"), document.get("name"))
        match path:
            case "/resources/create" | "/resources/update":
                self.begun.set()
                assert self.goes_on.wait(10)
                outputs = {**document["inputs"], **self.made}
                self.stored[key] = {
                    "type": key[0],
                    "name": key[1],
                    "id": document["inputs"].get("name") or document["inputs"].get("family") or "made",
                    "order": len(self.stored) + 1,
                    "protect": False,
                    "dependsOn": document["dependsOn"],
                    "inputs": document["inputs"],
                    "outputs": outputs,
                }
                return self.stored[key]
            case "/resources/delete":
                del self.stored[key]
                return None
            case "/resources/read":
                return self.stored.get(key)
            case "/resources/adopt":
                return None
        return {"found": True}


class Engine:
    """The calls that the engine makes, over a connection of its own."""

    def __init__(self, port: int, platform: RememberingPlatform, operations: list[Operation], holds: Holds) -> None:
        self.platform = platform
        self.operations = operations
        self.holds = holds
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.calls = provider_pb2_grpc.ResourceProviderStub(self.channel)

    def create(self, token: str, name: str, inputs: dict[str, Any], *, preview: bool = False) -> Any:
        request = pb.CreateRequest(urn=_urn(token, name), properties=struct_of(inputs), preview=preview)
        return self.calls.Create(request, timeout=20)

    def check(
        self, token: str, news: dict[str, Any], *, olds: dict[str, Any] | None = None, seed: bytes = b""
    ) -> dict[str, Any]:
        request = pb.CheckRequest(
            urn=_urn(token, "one"), news=struct_of(news), olds=struct_of(olds or {}), randomSeed=seed
        )
        return properties_of(self.calls.Check(request, timeout=20).inputs)

    def diff(self, token: str, old: dict[str, Any], new: dict[str, Any], *, ignored: tuple[str, ...] = ()) -> Any:
        request = pb.DiffRequest(
            urn=_urn(token, "one"), old_inputs=struct_of(old), news=struct_of(new), ignoreChanges=ignored
        )
        return self.calls.Diff(request, timeout=20)

    def read(self, token: str, name: str, *, id: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
        request = pb.ReadRequest(urn=_urn(token, name), id=id, inputs=struct_of(inputs), properties=struct_of(outputs))
        return self.calls.Read(request, timeout=20)


def _urn(token: str, name: str) -> str:
    return f"urn:pulumi:dev::minitickets::{token}::{name}"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    platform, operations, holds = RememberingPlatform(), list[Operation](), Holds(tmp_path)
    server = grpc.server(futures.ThreadPoolExecutor(8))
    servicer = EngineProvider(platform, version="7.0.0", record=operations.append, holds=holds)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    connected = Engine(server.add_insecure_port("127.0.0.1:0"), platform, operations, holds)
    server.start()
    yield connected
    connected.channel.close()
    server.stop(None).wait(10)


def test_a_type_that_nobody_handles_fails_its_check_by_name(engine: Engine) -> None:
    request = pb.CheckRequest(urn=_urn("aws:kms/key:Key", "signing"), news=struct_of({}))
    [failure] = engine.calls.Check(request, timeout=20).failures
    assert "aws:kms/key:Key (signing)" in failure.reason


def test_default_tags_are_inputs_of_what_takes_tags_and_the_program_s_own_count_over_them(engine: Engine) -> None:
    tags = '{"tags":{"Stage":"dev","Project":"minitickets"}}'
    engine.calls.Configure(pb.ConfigureRequest(args=struct_of({"defaultTags": tags})), timeout=20)
    assert engine.check(QUEUE, {"tags": {"Stage": "own"}}) == {"tags": {"Stage": "own", "Project": "minitickets"}}
    assert engine.check(POLICY, {}) == {}


def test_a_preview_makes_nothing_and_leaves_unknown_what_only_aws_would_tell(engine: Engine) -> None:
    previewed = properties_of(engine.create(QUEUE, "jobs", {"name": "jobs"}, preview=True).properties)
    assert previewed["name"] == "jobs"
    assert previewed["arn"] == previewed["url"] == UNKNOWN
    assert engine.platform.sent == []
    assert engine.operations == []


def test_a_secret_input_reaches_the_handler_plain_and_comes_back_wrapped(engine: Engine) -> None:
    text = "correct horse battery"
    engine.platform.made = {"value": text, "arn": "arn:made"}
    made = properties_of(engine.create(PARAMETER, "p", {"name": "/p", "insecureValue": secret(text)}).properties)
    assert engine.platform.sent[-1][1]["inputs"]["insecureValue"] == text
    assert made["insecureValue"] == secret(text)
    assert made["value"] == secret(text), "another output with the same text is as secret"
    assert made["arn"] == "arn:made"


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ({"a": {"b": 1, "c": None}}, {"a": {"b": 1.0}}, []),
        ({"a": secret("x")}, {"a": "x"}, []),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ["a"]),
        ({"a": None}, {}, []),
        ({"a": 1}, {}, ["a"]),
        ({"a": 1}, {"a": UNKNOWN}, ["a"]),
        ({"__defaults": []}, {}, []),
    ],
)
def test_only_what_means_something_else_is_a_change(
    engine: Engine, old: dict[str, Any], new: dict[str, Any], changed: list[str]
) -> None:
    told = engine.diff(QUEUE, old, new)
    assert list(told.diffs) == changed
    assert told.changes == (pb.DiffResponse.DIFF_SOME if changed else pb.DiffResponse.DIFF_NONE)


def test_a_file_counts_by_its_bytes_not_by_its_path(engine: Engine) -> None:
    def archive(path: str, hashed: str) -> dict[str, Any]:
        mark = {"4dabf18193072939515e22adb298388d": "0def7320c3a5731c473e5ecbe6d01bc7"}
        return {"code": {**mark, "path": path, "hash": hashed}}

    assert not engine.diff(QUEUE, archive("/a.zip", "1"), archive("/b.zip", "1")).diffs
    assert list(engine.diff(QUEUE, archive("/a.zip", "1"), archive("/a.zip", "2")).diffs) == ["code"]


def test_what_is_ignored_is_no_change(engine: Engine) -> None:
    assert not engine.diff(QUEUE, {"name": "a"}, {"name": "b"}, ignored=("name",)).diffs


def test_a_fixed_name_is_freed_before_its_successor_takes_it(engine: Engine) -> None:
    kept = engine.diff(QUEUE, {"name": "a", "region": "x"}, {"name": "a", "region": "y"})
    assert (list(kept.replaces), kept.deleteBeforeReplace) == (["region"], True)
    renamed = engine.diff(QUEUE, {"name": "a"}, {"name": "b"})
    assert (list(renamed.replaces), renamed.deleteBeforeReplace) == (["name"], False)
    auto_named = engine.diff(QUEUE, {"region": "x"}, {"region": "y"})
    assert (list(auto_named.replaces), auto_named.deleteBeforeReplace) == (["region"], False)


def test_a_successor_and_its_predecessor_live_side_by_side_and_the_right_one_goes(engine: Engine) -> None:
    for revision in (1, 2):
        engine.platform.made = {"arn": f"arn:task:{revision}"}
        engine.create(TASK, "api", {"family": "api", "containerDefinitions": str(revision)})
    assert {name for _, name in engine.platform.stored} == {"api", "api-2"}
    old = pb.DeleteRequest(urn=_urn(TASK, "api"), id="api", properties=struct_of({"arn": "arn:task:1"}))
    engine.calls.Delete(old, timeout=20)
    assert [found["outputs"]["arn"] for found in engine.platform.stored.values()] == ["arn:task:2"]


def test_what_aws_refuses_is_the_engine_s_error_word_for_word(engine: Engine) -> None:
    engine.platform.refusal = RefusedError("ResourceInUseException: Table already exists: tickets")
    with pytest.raises(grpc.RpcError) as refused:
        engine.create(QUEUE, "jobs", {"name": "jobs"})
    assert refused.value.details() == "ResourceInUseException: Table already exists: tickets"
    assert [operation.error for operation in engine.operations] == [refused.value.details()]


def test_a_look_up_that_finds_nothing_says_so_as_the_provider_does(engine: Engine) -> None:
    engine.platform.refusal = NothingFoundError("Your query returned no results.")
    with pytest.raises(grpc.RpcError) as nothing:
        engine.calls.Invoke(pb.InvokeRequest(tok="aws:rds/getSnapshot:getSnapshot", args=struct_of({})), timeout=20)
    assert nothing.value.details() == "Your query returned no results."


def test_deleting_what_is_gone_already_is_no_error(engine: Engine) -> None:
    engine.calls.Delete(pb.DeleteRequest(urn=_urn(QUEUE, "jobs"), id="gone"), timeout=20)
    assert engine.platform.sent == []


def test_a_change_behind_the_engine_s_back_is_in_the_inputs_that_it_reads(engine: Engine) -> None:
    inputs = {"name": "jobs", "port": 5432}
    engine.platform.made = {"port": 20001}
    outputs = properties_of(engine.create(QUEUE, "jobs", inputs).properties)
    read = engine.read(QUEUE, "jobs", id="jobs", inputs=inputs, outputs=outputs)
    assert properties_of(read.inputs) == inputs, "a port of this machine is no change"
    engine.platform.stored[QUEUE, "jobs"]["outputs"]["port"] = 1
    assert properties_of(engine.read(QUEUE, "jobs", id="jobs", inputs=inputs, outputs=outputs).inputs)["port"] == 1


def test_what_a_killed_run_made_is_found_by_its_name_once_it_is_made(engine: Engine) -> None:
    engine.platform.goes_on.clear()
    killed = engine.calls.Create.future(
        pb.CreateRequest(urn=_urn(QUEUE, "jobs"), properties=struct_of({"name": "jobs"}))
    )
    assert engine.platform.begun.wait(10)
    killed.cancel()
    request = pb.ReadRequest(urn=_urn(QUEUE, "jobs"), id="https://sqs.us-east-1.amazonaws.com/1/jobs")
    read = engine.calls.Read.future(request)
    with pytest.raises(grpc.FutureTimeoutError):
        read.result(timeout=0.2)  # it waits for what is under way
    engine.platform.goes_on.set()
    assert read.result(timeout=20).id == "jobs"


def test_a_name_that_the_program_leaves_open_is_made_once_and_anew_for_a_successor(engine: Engine) -> None:
    first = engine.check(GROUP, {"port": 80}, seed=b"1")
    assert re.fullmatch(r"one-[0-9a-f]{7}", first["name"])
    assert engine.check(GROUP, {"port": 80}, olds=first, seed=b"2")["name"] == first["name"]
    assert engine.check(GROUP, {"port": 81}, seed=b"2")["name"] != first["name"]
    assert engine.check(GROUP, {"name": "mine"}, olds=first) == {"name": "mine"}
    change = engine.diff(GROUP, first, {**first, "port": 81})
    assert (list(change.replaces), change.deleteBeforeReplace) == (["port"], False)


def test_an_import_by_an_id_that_aws_made_up_finds_that_one_only(engine: Engine) -> None:
    engine.create(GROUP, "api", {"name": "api-1"})
    for wanted, found in (("api-1", "api-1"), ("arn:made", "api-1"), ("api-2", "")):
        assert engine.read(GROUP, "api", id=wanted, inputs={}, outputs={}).id == found


def test_what_comes_with_its_vpc_is_taken_over_and_not_made_a_second_time(engine: Engine) -> None:
    for tags in ({}, {"Name": "closed"}):
        engine.create(CLOSED, "default", {"vpcId": "vpc-1", "tags": tags})
    assert engine.platform.stored.keys() == {(CLOSED, "default")}
    assert engine.platform.stored[CLOSED, "default"]["inputs"]["tags"] == {"Name": "closed"}
    engine.create(CLOSED, "default", {"vpcId": "vpc-2"})
    assert engine.platform.stored.keys() == {(CLOSED, "default"), (CLOSED, "default-2")}, "another VPC's, its successor"


def test_a_verb_held_before_it_begins_never_happens_once_its_engine_is_gone(engine: Engine) -> None:
    engine.holds.place(Hold(verb=CREATE, moments={f"{QUEUE} jobs": Moment.BEFORE}))
    engine.create(QUEUE, "others", {"name": "others"})
    killed = _create_in_vain(engine)
    assert [name for _, name in engine.platform.stored] == ["others"]
    killed.cancel()
    wait_until("it lets go", lambda: engine.holds.held() == set(), seconds=10)
    assert [name for _, name in engine.platform.stored] == ["others"]
    assert [operation.name for operation in engine.operations] == ["others"]


def test_a_verb_held_while_it_happens_is_done_though_nobody_hears_of_it(engine: Engine) -> None:
    engine.holds.place(Hold(verb=CREATE, otherwise=Moment.DURING))
    killed = _create_in_vain(engine)
    assert (QUEUE, "jobs") in engine.platform.stored
    killed.cancel()
    wait_until("it lets go", lambda: engine.holds.held() == set(), seconds=10)
    assert engine.read(QUEUE, "jobs", id="jobs", inputs={}, outputs={}).id == "jobs", "the next run is not held up"


def test_a_released_verb_goes_on(engine: Engine) -> None:
    for moment in Moment:
        engine.holds.place(Hold(verb=CREATE, otherwise=moment))
        going = _create_in_vain(engine, name=moment)
        engine.holds.release()
        assert going.result(timeout=20).id == moment


def _create_in_vain(engine: Engine, name: str = "jobs") -> Any:
    """A create that is held now."""
    request = pb.CreateRequest(urn=_urn(QUEUE, name), properties=struct_of({"name": name}))
    called = engine.calls.Create.future(request)
    wait_until("it is held", lambda: engine.holds.held() == {f"{QUEUE} {name}"}, seconds=10)
    return called
