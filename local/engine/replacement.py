"""Whether a change replaces a resource, and whether the old one must go before the new one comes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from local.drivers.diff import difference
from local.engine.values import Properties, comparable

# The input that fixes a resource's name in AWS, where it is not `name`.
_NAME_INPUTS: Mapping[str, str] = {
    "aws:elasticache/replicationGroup:ReplicationGroup": "replicationGroupId",
    "aws:rds/instance:Instance": "identifier",
    "aws:s3/bucket:Bucket": "bucket",
}


@dataclass(frozen=True, kw_only=True)
class Change:
    """What differs between a resource and its declaration: names of inputs, sorted."""

    changed: tuple[str, ...]
    replacing: tuple[str, ...]
    deletes_first: bool


def change(
    token: str, *, old: Properties, new: Properties, ignored: Collection[str], replaced_by: Collection[str]
) -> Change:
    """Compare a resource's inputs with those that are declared now.

    As the AWS provider does, a resource whose name the program fixes is deleted before its successor is created, which
    would meet that name otherwise. With another name, or one that the provider makes up, the successor comes first.
    """
    was, wanted = _comparable(old), _comparable(new)
    found = difference(old=was, new=wanted, ignored=ignored, replaced_by=replaced_by)
    name = _NAME_INPUTS.get(token, "name")
    keeps_name = name in wanted and was.get(name) == wanted[name] and name not in old.get("__defaults", ())
    return Change(
        changed=tuple(sorted(found.changed)),
        replacing=tuple(sorted(found.replacing)),
        deletes_first=bool(found.replacing) and keeps_name,
    )


def _comparable(properties: Properties) -> dict[str, Any]:
    # `__defaults` and the like are the engine's own notes.
    return {key: comparable(value) for key, value in properties.items() if value is not None and key[:2] != "__"}
