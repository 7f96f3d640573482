"""From the program's shapes to AWS's: names, whole numbers, capital letters, tags."""

import secrets
from collections.abc import Mapping
from typing import Any

from local.handlers.handler import Inputs

_SUFFIX_LETTERS = 7  # Pulumi's own auto-naming


def physical_name(inputs: Inputs, name: str, *, key: str = "name", limit: int = 255) -> str:
    """The name that ``inputs`` fix, or one made of the prefix or the Pulumi name, at most ``limit`` characters."""
    if fixed := inputs.get(key):
        return str(fixed)
    prefix = inputs.get(f"{key}Prefix") or f"{name}-"
    suffix = secrets.token_hex(4)[:_SUFFIX_LETTERS]
    return f"{str(prefix)[: limit - len(suffix)]}{suffix}"


def plain(value: Any) -> Any:
    """The same value with whole floats as integers: the engine's numbers are floats, AWS's are not."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


def capitalised(value: Any) -> Any:
    """The same value as AWS's query and JSON services spell it: ``maxAgeSeconds`` → ``MaxAgeSeconds``."""
    if isinstance(value, Mapping):
        return {key[:1].upper() + key[1:]: capitalised(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [capitalised(entry) for entry in value]
    return plain(value)


def chosen(inputs: Inputs, names: Mapping[str, str]) -> dict[str, Any]:
    """The inputs that are there, under AWS's names: ``{"timeout": "Timeout"}``."""
    return {theirs: plain(inputs[ours]) for ours, theirs in names.items() if inputs.get(ours) is not None}


def attribute_text(value: Any) -> str:
    """A value of an attribute map, where AWS takes strings only."""
    value = plain(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def tags_of(inputs: Inputs) -> dict[str, str]:
    """The tags, the provider's default ones included where the driver merged them in."""
    return {key: str(value) for key, value in (inputs.get("tagsAll") or inputs.get("tags") or {}).items()}


def tag_list(inputs: Inputs) -> list[dict[str, str]]:
    """The tags as most services take them."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags_of(inputs).items())]


def tags_gone(old: Inputs, new: Inputs) -> list[str]:
    """Keys of tags that an update takes away."""
    return sorted(tags_of(old).keys() - tags_of(new).keys())
