"""What has to happen to a resource so that it becomes what the program declares."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The inputs that changed, those of them that replace the resource, and the inputs that it is to have."""

    changed: frozenset[str]
    replacing: frozenset[str]
    inputs: Mapping[str, Any] = field(default_factory=dict)


def difference(
    *, old: Mapping[str, Any], new: Mapping[str, Any], ignored: Collection[str], replaced_by: Collection[str]
) -> Difference:
    """Compare inputs. What ``ignored`` names, an input or a part of one (``a.b``), keeps its old value."""
    wanted = dict(new)
    for path in ignored:
        _keep_old(wanted, old, path.replace("[", ".").replace("]", "").split("."))
    changed = frozenset(key for key in {*old, *wanted} if old.get(key, _ABSENT) != wanted.get(key, _ABSENT))
    return Difference(changed=changed, replacing=changed & frozenset(replaced_by), inputs=wanted)


_ABSENT = object()


def _keep_old(wanted: dict[str, Any], old: Mapping[str, Any], path: list[str]) -> None:
    key, rest = path[0], path[1:]
    if rest and isinstance(wanted.get(key), dict) and isinstance(old.get(key), dict):
        wanted[key] = dict(wanted[key])
        _keep_old(wanted[key], old[key], rest)
    elif key in old:
        wanted[key] = old[key]
    else:
        wanted.pop(key, None)
