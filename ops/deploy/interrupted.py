"""A run that was killed in the middle: found by what it left in the state, and brought to a clean end."""

import copy
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ops.deploy.import_ids import TAKEN_OVER, Finder, Place, UnidentifiedError, import_id
from ops.pulumi_cli import LockOwner, PulumiCli, StackLocked
from ops.refusal import Failure, Refusal


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """A state without unfinished operations, and what became of each create.

    ``looked_for`` are read by their id at the next refresh; ``absent`` AWS does not have; of ``unknown`` nobody can
    tell, so they may be left over.
    """

    deployment: Mapping[str, Any]
    looked_for: tuple[str, ...]
    absent: tuple[str, ...]
    unknown: tuple[str, ...]


def unfinished(deployment: Mapping[str, Any] | None) -> list[str]:
    """What a killed run was doing, a phrase each (``creating aws:rds/instance:Instance db``); empty if none was."""
    operations = (deployment or {}).get("pending_operations") or []
    return [f"{operation['type']} {_label(operation['resource'])}" for operation in operations]


def recover(deployment: Mapping[str, Any], *, place: Place, finder: Finder) -> Recovery:
    """Settle the unfinished operations of a state: what a create may have made becomes a resource that the next refresh
    reads, or drops where AWS has none of that id. Other operations kept their resource in the state."""
    settled = copy.deepcopy(dict(deployment))
    resources = settled.setdefault("resources", None) or []
    looked_for, absent, unknown = [], [], []
    for operation in settled.pop("pending_operations", None) or []:
        resource = operation["resource"]
        if operation["type"] != "creating" or resource["type"] in TAKEN_OVER:
            continue
        # A predecessor that had to go first is gone by now; the state still shows it until its successor is there.
        resources = [
            found for found in resources if found["urn"] != resource["urn"] or not found.get("pendingReplacement")
        ]
        try:
            if any(found["urn"] == resource["urn"] for found in resources):
                raise UnidentifiedError("its predecessor is still there")
            identity = import_id(
                resource["type"],
                resource.get("inputs") or {},
                place=place,
                finder=finder,
                known=_identities(resources, resource["type"]),
            )
        except UnidentifiedError as error:
            unknown.append(f"{_label(resource)} ({error})")
            continue
        if identity is None:
            absent.append(_label(resource))
            continue
        # Without outputs the provider reads it as an import: from AWS alone.
        resources.append({**resource, "id": identity, "outputs": {}})
        looked_for.append(_label(resource))
    settled["resources"] = resources
    return Recovery(deployment=settled, looked_for=tuple(looked_for), absent=tuple(absent), unknown=tuple(unknown))


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
    if recovery.absent:
        say(f"  not made, as far as AWS shows: {_and(recovery.absent)}")
    for label in recovery.unknown:
        say(f"  {label}: it may exist without the state knowing it. Look for one that nothing uses")
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
            ["ps", "-o", "stat=,args=", "-p", str(process)], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return True  # cannot tell: then it may be
    state, _, program = shown.stdout.strip().partition(" ")
    # A zombie is dead: only its parent, or who took its place, has not asked yet.
    return "pulumi" in program and not state.startswith("Z")


def _identities(resources: Sequence[Mapping[str, Any]], kind: str) -> set[str]:
    """Ids and ARNs of the resources of a type."""
    return {
        str(identity)
        for resource in resources
        if resource["type"] == kind
        for identity in (resource.get("id"), (resource.get("outputs") or {}).get("arn"))
        if identity
    }


def _label(resource: Mapping[str, Any]) -> str:
    return f"{resource['type']} {str(resource['urn']).rpartition('::')[2]}"


def _and(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
