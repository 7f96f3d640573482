"""Run the whole program under Pulumi's mock hook, and keep what it asked for.

Nothing is made: each resource gets invented outputs, as AWS would name them. The recording shows what only the engine
sees otherwise: inputs, dependencies, ignored changes, protection, in the order of registration.
"""

import asyncio
import contextlib
import json
import runpy
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import mocks
from pulumi.runtime.stack import wait_for_rpcs

ACCOUNT = "123456789012"
REGION = "us-east-1"
INFRA = Path(__file__).resolve().parents[1]

# What a stage file must say at least.
REQUIRED = {
    "production": "false",
    "computeEnabled": "true",
    "dataEnabled": "true",
    "sender": "tickets@example.org",
    "image": "local",
}

_NO_RESULTS = "Your query returned no results. Please change your search criteria and try again."
_SECRET_KEY = "4dabf18193072939515e22adb298388d"
_SECRET_MARK = "1b47061264138c4ac30d75fd1eb44270"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One resource as the program declared it. ``inputs`` are without secret wrappers; ``secrets`` names the inputs
    that came wrapped."""

    type: str
    name: str
    inputs: dict[str, Any]
    secrets: frozenset[str]
    depends_on: frozenset[str]  # names of resources, "type name"
    ignore_changes: tuple[str, ...]
    protect: bool
    goes_first: bool  # deleted before its successor is made

    @property
    def key(self) -> str:
        return f"{self.type} {self.name}"


@dataclass(kw_only=True)
class Surroundings:
    """What the look-ups of a run find."""

    instances: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, str] = field(default_factory=dict)  # name → status
    services: dict[str, str] = field(default_factory=dict)  # "cluster/service" → status
    zones: list[str] = field(default_factory=lambda: ["us-east-1a", "us-east-1b", "us-east-1c"])
    refused: set[str] = field(default_factory=set)  # tokens of look-ups that fail


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A whole run: its resources by key, its outputs, its look-ups in order."""

    resources: dict[str, Recorded]
    outputs: dict[str, Any]
    lookups: list[tuple[str, dict[str, Any]]]

    def of(self, type_: str) -> dict[str, Recorded]:
        """Resources of a type, by their name."""
        return {r.name: r for r in self.resources.values() if r.type == type_}

    def one(self, type_: str, name: str) -> Recorded:
        return self.resources[f"{type_} {name}"]

    def types(self) -> set[str]:
        return {r.type for r in self.resources.values()}

    def policy(self, type_: str, name: str) -> dict[str, Any]:
        """The policy document that a resource carries."""
        document: dict[str, Any] = json.loads(self.one(type_, name).inputs["policy"])
        return document


class ProgramFailedError(Exception):
    """The program ended itself: its error, and what it had asked for until then."""

    def __init__(self, error: Exception, recorder: "_Recorder") -> None:
        super().__init__(str(error))
        self.error = error
        self.resources = recorder.resources
        self.lookups = recorder.lookups


def record(
    config: Mapping[str, str],
    *,
    stage: str = "dev",
    artifacts: Path,
    **found: Any,
) -> Recording:
    """Run infra/__main__.py with this configuration (keys without a namespace are the project's).

    ``found`` is what its look-ups find: the fields of Surroundings. Raises ProgramFailedError if the program does.
    """
    recorder = _Recorder(Surroundings(**found))
    tags = {"tags": {"Project": "minitickets", "Stage": stage, "ManagedBy": "pulumi"}}
    values = {"aws:region": REGION, "aws:defaultTags": json.dumps(tags), "minitickets:artifactsDir": str(artifacts)}
    values |= {key if ":" in key else f"minitickets:{key}": value for key, value in {**REQUIRED, **config}.items()}
    with _event_loop() as loop, _program_path(), _exports() as exports, warnings.catch_warnings():
        # Importing aws.s3 or aws.ec2 warns of old names that the SDK itself still defines.
        warnings.filterwarnings("ignore", r"\S+ has been deprecated in favor of", DeprecationWarning)
        mocks.set_mocks(recorder, project="minitickets", stack=stage, preview=False, monitor=_Monitor(recorder))
        pulumi.runtime.set_all_config(values)
        try:
            outputs = loop.run_until_complete(_run(exports))
        except Exception as error:
            raise ProgramFailedError(error, recorder) from error
    return Recording(resources=recorder.resources, outputs=outputs, lookups=recorder.lookups)


async def _run(exports: dict[str, Any]) -> dict[str, Any]:
    try:
        runpy.run_path(str(INFRA / "__main__.py"), run_name="__main__")
    finally:
        await wait_for_rpcs()
    return {key: await pulumi.Output.from_input(value).future() for key, value in exports.items()}


@contextlib.contextmanager
def _program_path() -> Iterator[None]:
    sys.path.insert(0, str(INFRA))
    try:
        yield
    finally:
        sys.path.remove(str(INFRA))


@contextlib.contextmanager
def _exports() -> Iterator[dict[str, Any]]:
    exports: dict[str, Any] = {}
    original = pulumi.export
    pulumi.export = lambda name, value: exports.__setitem__(name, value)  # the caller's word, kept
    try:
        yield exports
    finally:
        pulumi.export = original


class _Recorder(mocks.Mocks):
    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.resources: dict[str, Recorded] = {}
        self.lookups: list[tuple[str, dict[str, Any]]] = []
        self.request = threading.local()

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs = unwrap(args.inputs)
        request = self.request.value
        recorded = Recorded(
            type=args.typ,
            name=args.name,
            inputs=inputs,
            secrets=frozenset(key for key, value in args.inputs.items() if _is_secret(value)),
            depends_on=frozenset(_key_of(urn) for urn in request.dependencies),
            ignore_changes=tuple(request.ignoreChanges),
            protect=bool(request.protect),
            goes_first=bool(request.deleteBeforeReplace),
        )
        assert recorded.key not in self.resources, f"{recorded.key} is declared twice"
        self.resources[recorded.key] = recorded
        return invented_outputs(args.typ, args.name, inputs)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]]]:
        self.lookups.append((args.token, dict(args.args)))
        if args.token in self.surroundings.refused:
            return {}, [("", "AccessDenied: not authorized")]
        try:
            return _answer(args.token, args.args, self.surroundings), []
        except LookupError as error:  # an exception here would end the program, though it were caught there
            return {}, [("", str(error))]


class _Monitor(mocks.MockMonitor):
    """Passes on what MockResourceArgs lacks; a thread serves one request from its begin to its end."""

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        assert isinstance(self.mocks, _Recorder)
        self.mocks.request.value = request
        with _event_loop():
            return super().RegisterResource(request)  # type: ignore[no-untyped-call]  # gRPC has no types

    def Invoke(self, request: Any) -> Any:  # noqa: N802 - the engine's name
        with _event_loop():
            return super().Invoke(request)  # type: ignore[no-untyped-call]  # gRPC has no types


@contextlib.contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop of this thread's own, closed at the end. The SDK would open one and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        asyncio.set_event_loop(None)
        loop.close()


def unwrap(value: Any) -> Any:
    """A value without the wrappers of secrets; an archive is the name of its file, so that recordings compare."""
    if isinstance(value, pulumi.FileArchive):
        return Path(value.path).name
    if isinstance(value, dict):
        if _is_secret(value):
            return unwrap(value["value"])
        return {key: unwrap(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unwrap(item) for item in value]
    return value


def _is_secret(value: Any) -> bool:
    return isinstance(value, dict) and value.get(_SECRET_KEY) == _SECRET_MARK


def _key_of(urn: str) -> str:
    type_, name = urn.split("::")[2:4]
    return f"{type_.rsplit('$', 1)[-1]} {name}"


def _answer(token: str, args: Mapping[str, Any], found: Surroundings) -> dict[str, Any]:
    match token:
        case "aws:index/getCallerIdentity:getCallerIdentity":
            return {
                "accountId": ACCOUNT,
                "arn": f"arn:aws:iam::{ACCOUNT}:user/engineer",
                "userId": "AIDA",
                "id": ACCOUNT,
            }
        case "aws:ecs/getClusters:getClusters":
            clusters = sorted({name.partition("/")[0] for name in found.services})
            arns = [f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/{name}" for name in clusters]
            return {"clusterArns": arns, "id": REGION, "region": REGION}
        case "aws:ecs/getService:getService":
            name = f"{args['clusterArn']}/{args['serviceName']}"
            if name not in found.services:
                raise LookupError("no matching ECS Service found")
            return {"serviceName": args["serviceName"], "status": found.services[name], "id": name}
        case "aws:index/getRegion:getRegion":
            return {"region": REGION, "id": REGION, "endpoint": "", "description": "", "name": REGION}
        case "aws:index/getAvailabilityZones:getAvailabilityZones":
            return {"names": found.zones, "id": REGION, "zoneIds": [], "groupNames": [], "region": REGION}
        case "aws:secretsmanager/getRandomPassword:getRandomPassword":
            return {"randomPassword": "generated-by-secrets-manager", "id": REGION, "region": REGION}
        case "aws:rds/getInstances:getInstances":
            return {"instanceIdentifiers": found.instances, "instanceArns": [], "id": REGION, "region": REGION}
        case "aws:ssm/getParametersByPath:getParametersByPath":
            names = sorted(found.parameters)
            values = [found.parameters[name] for name in names]
            return {"names": names, "values": values, "arns": [], "types": [], "path": args["path"], "id": args["path"]}
        case "aws:rds/getSnapshot:getSnapshot":
            name = args["dbSnapshotIdentifier"]
            if name not in found.snapshots:
                raise LookupError(_NO_RESULTS)
            return {"dbSnapshotIdentifier": name, "status": found.snapshots[name], "id": name}
        case _:
            raise LookupError(f"the recording has no answer for {token}")


def invented_outputs(type_: str, name: str, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Id and outputs of a resource, as AWS would name it."""
    service = type_.split(":")[1].split("/")[0]
    called = inputs.get("name") or inputs.get("bucket") or inputs.get("identifier") or f"{name}-1234567"
    outputs: dict[str, Any] = {**inputs, "name": called, "arn": f"arn:aws:{service}:{REGION}:{ACCOUNT}:{called}"}
    match type_:
        case "aws:ec2/vpc:Vpc":
            outputs["defaultNetworkAclId"] = f"{name}-default-acl"
        case "aws:sqs/queue:Queue":
            outputs["url"] = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{called}"
        case "aws:s3/bucket:Bucket":
            outputs["arn"] = f"arn:aws:s3:::{called}"
        case "aws:dynamodb/table:Table":
            outputs["arn"] = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{called}"
        case "aws:cloudwatch/logGroup:LogGroup":
            outputs["arn"] = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{called}"
        case "aws:sesv2/emailIdentity:EmailIdentity":
            outputs["arn"] = f"arn:aws:ses:{REGION}:{ACCOUNT}:identity/{inputs['emailIdentity']}"
        case "aws:secretsmanager/secret:Secret":
            outputs["arn"] = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{called}-AbCdEf"
            return outputs["arn"], outputs
        case "aws:secretsmanager/secretVersion:SecretVersion":
            outputs["secretArn"] = inputs["secretId"]
            outputs["versionId"] = "v1"
        case "aws:rds/instance:Instance":
            secret = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:rds!db-1-AbCdEf"
            outputs |= {"address": "db.example.internal", "masterUserSecrets": [{"secretArn": secret}]}
        case "aws:elasticache/replicationGroup:ReplicationGroup":
            outputs["primaryEndpointAddress"] = "redis.example.internal"
        case "aws:ecr/repository:Repository":
            outputs["repositoryUrl"] = f"registry.example.internal/{called}"
        case "aws:lb/loadBalancer:LoadBalancer":
            outputs["dnsName"] = f"{called}.elb.example.internal"
            outputs["zoneId"] = "Z35SXDOTRQ7X7K"
            outputs["arnSuffix"] = f"app/{called}/1"
        case "aws:lb/targetGroup:TargetGroup":
            outputs["arnSuffix"] = f"targetgroup/{called}/1"
        case "aws:ecs/taskDefinition:TaskDefinition":
            outputs["arn"] = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/{inputs['family']}:1"
    return f"{name}-id", outputs
