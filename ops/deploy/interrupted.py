"""A run that was killed in the middle: found by what it left in the state, and brought to a clean end."""

import copy
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ops.pulumi_cli import LockOwner, PulumiCli, StackLocked
from ops.refusal import Failure, Refusal

Inputs = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the stage's resources are; ARNs and URLs are made of it."""

    account: str
    region: str


class Finder(Protocol):
    """What finds, by its name, a resource whose id AWS makes up."""

    def secret_arn(self, name: str) -> str | None: ...
    def security_group_id(self, name: str, vpc_id: str) -> str | None: ...


# The id that the provider imports a resource of a fixed name by, from the inputs that its creation was sent with
# (each resource's page in the provider's registry documentation, section "Import"). A create that was cut off may
# have made the resource: created again it would be refused, for its name is taken.
_IMPORT_IDS: Mapping[str, Callable[[Inputs, Place], str]] = {
    "aws:cloudwatch/logGroup:LogGroup": lambda own, _: str(own["name"]),
    "aws:cloudwatch/metricAlarm:MetricAlarm": lambda own, _: str(own["name"]),
    "aws:dynamodb/table:Table": lambda own, _: str(own["name"]),
    "aws:ecr/repository:Repository": lambda own, _: str(own["name"]),
    "aws:ecs/cluster:Cluster": lambda own, _: str(own["name"]),
    "aws:ecs/service:Service": lambda own, _: f"{str(own['cluster']).rpartition('/')[2]}/{own['name']}",
    "aws:elasticache/replicationGroup:ReplicationGroup": lambda own, _: str(own["replicationGroupId"]),
    "aws:elasticache/subnetGroup:SubnetGroup": lambda own, _: str(own["name"]),
    "aws:iam/role:Role": lambda own, _: str(own["name"]),
    "aws:iam/rolePolicy:RolePolicy": lambda own, _: f"{own['role']}:{own['name']}",
    "aws:lambda/function:Function": lambda own, _: str(own["name"]),
    "aws:rds/instance:Instance": lambda own, _: str(own["identifier"]),
    "aws:rds/parameterGroup:ParameterGroup": lambda own, _: str(own["name"]),
    "aws:rds/subnetGroup:SubnetGroup": lambda own, _: str(own["name"]),
    "aws:s3/bucket:Bucket": lambda own, _: str(own["bucket"]),
    "aws:sesv2/configurationSet:ConfigurationSet": lambda own, _: str(own["configurationSetName"]),
    "aws:sesv2/emailIdentity:EmailIdentity": lambda own, _: str(own["emailIdentity"]),
    "aws:sns/topic:Topic": lambda own, at: f"arn:aws:sns:{at.region}:{at.account}:{own['name']}",
    "aws:sqs/queue:Queue": lambda own, at: f"https://sqs.{at.region}.amazonaws.com/{at.account}/{own['name']}",
    "aws:ssm/parameter:Parameter": lambda own, _: str(own["name"]),
}
_SECRET = "aws:secretsmanager/secret:Secret"  # noqa: S105 - a type, not a secret
_SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """A state without unfinished operations, and what became of each: ``looked_for`` are read by their id at the
    next refresh, ``unknown`` have names that AWS makes up, and may be left over."""

    deployment: Mapping[str, Any]
    looked_for: tuple[str, ...]
    unknown: tuple[str, ...]


def unfinished(deployment: Mapping[str, Any] | None) -> list[str]:
    """What a killed run was doing, a phrase each (``creating aws:rds/instance:Instance db``); empty if none was."""
    operations = (deployment or {}).get("pending_operations") or []
    return [f"{operation['type']} {_label(operation['resource'])}" for operation in operations]


def recover(deployment: Mapping[str, Any], *, place: Place, finder: Finder) -> Recovery:
    """Settle the unfinished operations of a state: unfinished creates of a known id become resources that the next
    refresh reads, or drops where AWS has none of that id. Other operations kept their resource in the state."""
    settled = copy.deepcopy(dict(deployment))
    known = {resource["urn"] for resource in settled.get("resources") or []}
    looked_for, unknown = [], []
    for operation in settled.pop("pending_operations", None) or []:
        resource = operation["resource"]
        if operation["type"] != "creating" or resource["urn"] in known:
            continue
        identity = _import_id(resource, place, finder)
        if identity is None:
            unknown.append(_label(resource))
            continue
        # Without outputs the provider reads it as an import: from AWS alone.
        settled.setdefault("resources", []).append({**resource, "id": identity, "outputs": {}})
        known.add(resource["urn"])
        looked_for.append(_label(resource))
    return Recovery(deployment=settled, looked_for=tuple(looked_for), unknown=tuple(unknown))


def finish(
    cli: PulumiCli,
    deployment: Mapping[str, Any],
    *,
    stage: str,
    place: Place,
    finder: Finder,
    unlock: bool,
    say: Callable[[str], None],
) -> None:
    """Bring a killed run to a clean end: cancel it, write down what it may have made, read all of it from AWS.

    Refusal if that run may still be going on; ``unlock`` is the operator's word that it is not.
    """
    left = unfinished(deployment)
    say(f"An earlier run on {stage} was cut off{f' while {_and(left)}' if left else ''}: finishing it")
    recovery = recover(deployment, place=place, finder=finder)
    try:
        cli.replace_state(recovery.deployment)
    except StackLocked as locked:
        require_dead(locked.owners, stage=stage, unlock=unlock)
        say("  cancel: its process is gone, its lock is taken away")
        cli.cancel()
        cli.replace_state(recovery.deployment)
    if recovery.looked_for:
        say(f"  looking whether AWS has {_and(recovery.looked_for)}")
    for label in recovery.unknown:
        say(f"  {label} may exist without the state knowing it, as AWS names it: look for one that nothing uses")
    say("  refresh: reading every resource from AWS")
    if cli.refresh() != 0:
        raise Failure(
            f"The refresh after a killed run failed, as said above; nothing else was done. "
            f"make up STAGE={stage} tries again"
        )


def require_dead(owners: Sequence[LockOwner], *, stage: str, unlock: bool) -> None:
    """Refusal unless the run that holds the lock is known to be dead: on this machine by its process, else by word."""
    for owner in owners:
        if owner.host == socket.gethostname() and _is_pulumi(owner.process):
            raise Refusal(
                f"Another run on {stage} is going on here (process {owner.process}, since {owner.since}): "
                "wait for it, or end it with Ctrl-C where it runs"
            )
    if unlock:
        return
    elsewhere = [owner for owner in owners if owner.host != socket.gethostname()]
    if elsewhere or not owners:
        who = ", ".join(f"{owner.user} on {owner.host} since {owner.since}" for owner in elsewhere) or "someone else"
        raise Refusal(
            f"Another run on {stage} holds its lock ({who}). If you know that it is dead, "
            f"run make up STAGE={stage} UNLOCK=1; otherwise wait for it"
        )


def _is_pulumi(process: int) -> bool:
    """Whether the process runs and is Pulumi: its number may be another program's by now."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's, but it runs
    try:
        shown = subprocess.run(
            ["ps", "-o", "args=", "-p", str(process)], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return True  # cannot tell: then it may be
    return "pulumi" in shown.stdout


def _import_id(resource: Mapping[str, Any], place: Place, finder: Finder) -> str | None:
    kind, inputs = resource["type"], resource.get("inputs") or {}
    make = _IMPORT_IDS.get(kind)
    try:
        if kind == _SECRET:
            return finder.secret_arn(str(inputs["name"]))
        if kind == _SECURITY_GROUP:
            return finder.security_group_id(str(inputs["name"]), str(inputs["vpcId"]))
        return None if make is None else make(inputs, place)
    except KeyError:
        return None  # it was left to the provider to name it


def _label(resource: Mapping[str, Any]) -> str:
    return f"{resource['type']} {str(resource['urn']).rpartition('::')[2]}"


def _and(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
