"""What an ``up`` would do, read from Pulumi's preview, and which of it must not happen."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ops.stage_file import StageSettings

DATABASE = "aws:rds/instance:Instance"
SERVICE = "aws:ecs/service:Service"

# What nobody can make again: data, messages on their way, keys that tickets are signed with, the memory of the
# database's snapshot, the image that the service runs, a mail identity's verification.
_LASTING: Mapping[str, str] = {
    DATABASE: "database",
    "aws:rds/cluster:Cluster": "database",
    "aws:dynamodb/table:Table": "table",
    "aws:s3/bucket:Bucket": "bucket",
    "aws:s3/bucketV2:BucketV2": "bucket",
    "aws:secretsmanager/secret:Secret": "secret",
    "aws:sqs/queue:Queue": "queue",
    "aws:ssm/parameter:Parameter": "memory",
    "aws:ecr/repository:Repository": "image repository",
    "aws:sesv2/emailIdentity:EmailIdentity": "mail identity",
    "aws:kms/key:Key": "key",
    "aws:backup/vault:Vault": "backup vault",
    "aws:elasticache/replicationGroup:ReplicationGroup": "cache",
}

# What switching data off takes away, by type and name in the program; infra/src/data declares them.
_GOES_WITH_DATA = frozenset(
    {
        (DATABASE, "db"),
        ("aws:elasticache/replicationGroup:ReplicationGroup", "redis"),
        ("aws:secretsmanager/secret:Secret", "redis-token"),
    }
)

_SLOW_TO_GO = frozenset(
    {
        DATABASE,
        SERVICE,
        "aws:elasticache/replicationGroup:ReplicationGroup",
        "aws:lb/loadBalancer:LoadBalancer",
        "aws:ec2/natGateway:NatGateway",
    }
)

_LOSES = frozenset({"delete", "replace", "delete-replaced", "create-replacement", "import-replacement"})
_SIGNS: Mapping[str, str] = {"create": "+", "update": "~", "delete": "-", "replace": "!", "import": "="}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One resource that the run would touch. ``replaced_for`` and ``changed`` are names of its inputs."""

    operation: str
    urn: str
    kind: str
    name: str
    replaced_for: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def label(self) -> str:
        """Type and name, as Pulumi shows them (``aws:sqs:Queue jobs``)."""
        package, _, rest = self.kind.partition(":")
        return f"{package}:{rest.partition('/')[0]}:{self.kind.rpartition(':')[2]} {self.name}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The steps of an ``up``, in the engine's order, and what was said while they were found."""

    steps: tuple[Step, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def deletes_database(self) -> bool:
        """Whether the database would go, in a flip or not."""
        return any(step.kind == DATABASE and step.operation in _LOSES for step in self.steps)

    @property
    def deletes_slowly(self) -> bool:
        """Whether something goes that takes AWS minutes: it drains first, or writes a snapshot."""
        return any(step.kind in _SLOW_TO_GO and step.operation in _LOSES for step in self.steps)

    def lines(self) -> list[str]:
        """A line a resource that changes, with the inputs that change, and a count; for a person to decide on."""
        shown = [
            f"  {_SIGNS.get(step.operation, '?')} {step.label}"
            + (f" ({', '.join(step.replaced_for or step.changed)})" if step.replaced_for or step.changed else "")
            for step in self.steps
        ]
        return [*shown, f"  {self.summary()}"]

    def summary(self) -> str:
        """How many resources are created, changed, replaced, deleted."""
        counts = {
            word: sum(step.operation == operation for step in self.steps)
            for operation, word in (
                ("create", "to create"),
                ("update", "to change"),
                ("replace", "to replace"),
                ("delete", "to delete"),
            )
        }
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "nothing to change"


def read_plan(document: str) -> Plan:
    """The plan in the JSON of ``pulumi preview --json``. ValueError if it is none."""
    digest = json.loads(document)
    if not isinstance(digest, dict):
        raise ValueError("not a preview")  # noqa: TRY004 - to the caller a list is as unreadable as a broken document
    steps: dict[str, Step] = {}
    for entry in digest.get("steps") or []:
        step = _step(entry)
        # A replacement comes as up to three steps of one resource; they are one thing that happens to it.
        if step is not None and (step.urn not in steps or step.operation == "replace"):
            steps[step.urn] = step
    said = digest.get("diagnostics") or []
    return Plan(steps=tuple(steps.values()), errors=_messages(said, "error"), warnings=_messages(said, "warning"))


def losses(plan: Plan, settings: StageSettings) -> list[str]:
    """A sentence for each thing in the plan that would lose what nobody can make again; empty where all is well.

    In a flip, that is with the database's switch off in the stage file, what goes with the data may be deleted, for
    its final snapshot keeps it. Nothing may ever be replaced.
    """
    refused = []
    for step in plan.steps:
        what = _LASTING.get(step.kind)
        if step.operation in _LOSES and what is not None:
            deleted = step.operation == "delete"
            if deleted and not settings.keeps_data and (step.kind, step.name) in _GOES_WITH_DATA:
                continue
            cause = "the program no longer declares it" if deleted else _because(step)
            refused.append(f"{'delete' if deleted else 'replace'} the {what} {step.label}: {cause}")
        elif step.operation == "delete" and step.kind == SERVICE and settings.computes:
            refused.append(
                f"delete the running service {step.label}: "
                + (
                    "the program no longer declares it"
                    if settings.image
                    else f"{settings.file} names no image, which make push does"
                )
            )
    return refused


def _because(step: Step) -> str:
    inputs = ", ".join(step.replaced_for)
    return f"a change of {inputs} does that" if inputs else "its provider gives no reason"


def _step(entry: Mapping[str, Any]) -> Step | None:
    operation = str(entry.get("op"))
    urn = str(entry.get("urn"))
    if operation in ("same", "read", "refresh", "read-replacement", "discard", "discard-replaced"):
        return None
    # urn:pulumi:<stack>::<project>::<parent's type$type>::<name>
    parts = urn.split("::", 3)
    if len(parts) != 4 or parts[2].endswith("pulumi:pulumi:Stack"):
        return None
    if operation in ("create-replacement", "delete-replaced", "import-replacement"):
        operation = "replace"
    detail = entry.get("detailedDiff") or {}
    reasons = entry.get("replaceReasons") or [key for key, diff in detail.items() if "replace" in str(diff.get("kind"))]
    changed = entry.get("diffReasons") or list(detail)
    return Step(
        operation=operation,
        urn=urn,
        kind=parts[2].split("$")[-1],
        name=parts[3],
        replaced_for=tuple(str(reason) for reason in reasons),
        changed=tuple(str(key) for key in changed),
    )


def _messages(diagnostics: Sequence[Mapping[str, Any]], severity: str) -> tuple[str, ...]:
    return tuple(
        str(said.get("message", "")).strip().removeprefix(f"{severity}:").strip()
        for said in diagnostics
        if said.get("severity") == severity
    )
