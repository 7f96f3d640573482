"""What protects a stage from ``destroy``: settings under which AWS would refuse half of it, or keep names blocked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ops.deploy.plan import DATABASE
from ops.stage_file import DELETION_PROTECTION


@dataclass(frozen=True, kw_only=True)
class _Guard:
    """An input that must have one value before its resource can go, and the stage's setting that it comes from."""

    kind: str
    name: str
    needed: bool | int
    absent: bool | int
    setting: str


# What counts is what the last ``up`` gave to the provider, so it is read from the state. ``absent`` is the provider's
# own default.
_GUARDS = (
    _Guard(kind=DATABASE, name="deletionProtection", needed=False, absent=False, setting=DELETION_PROTECTION),
    _Guard(
        kind="aws:dynamodb/table:Table",
        name="deletionProtectionEnabled",
        needed=False,
        absent=False,
        setting=DELETION_PROTECTION,
    ),
    _Guard(kind="aws:s3/bucket:Bucket", name="forceDestroy", needed=True, absent=False, setting="forceDestroy"),
    _Guard(kind="aws:backup/vault:Vault", name="forceDestroy", needed=True, absent=False, setting="forceDestroy"),
    _Guard(kind="aws:ecr/repository:Repository", name="forceDelete", needed=True, absent=False, setting="forceDestroy"),
    _Guard(
        kind="aws:secretsmanager/secret:Secret",
        name="recoveryWindowInDays",
        needed=0,
        absent=30,
        setting="secretRecoveryDays",
    ),
)


def needed_settings(deployment: Mapping[str, Any]) -> Mapping[str, bool | int]:
    """The settings that an ``up`` must have applied before a ``destroy`` leaves nothing; empty where it would."""
    return {
        guard.setting: guard.needed
        for resource in deployment.get("resources") or []
        for guard in _GUARDS
        if resource.get("type") == guard.kind
        and (resource.get("inputs") or {}).get(guard.name, guard.absent) != guard.needed
    }


def protected_by_engine(deployment: Mapping[str, Any]) -> list[str]:
    """Names of the resources that Pulumi itself protects."""
    return [
        str(found["urn"]).rpartition("::")[2] for found in deployment.get("resources") or [] if found.get("protect")
    ]
