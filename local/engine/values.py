"""Values as the engine's protocol carries them: secrets wrapped, archives with their hash, what is not known yet.

The marks are those of Pulumi's wire format (sdk/go/common/resource/properties.go); the Python SDK keeps them private.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import struct_pb2
from google.protobuf.json_format import MessageToDict

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a mark of the format
_ASSET = "c44067f5952c0a294b673a41bacd8c17"
_ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"

# A shorter secret would be found by chance in other outputs.
_TELLING_LENGTH = 12

Properties = Mapping[str, Any]


class UnusableValueError(ValueError):
    """A value that nothing on this machine can take; the message says which is wanted."""


def properties_of(struct: Any) -> dict[str, Any]:
    """A message's properties, marks included."""
    properties: dict[str, Any] = MessageToDict(struct)
    return properties


def struct_of(properties: Properties) -> Any:
    """A message of properties."""
    struct = struct_pb2.Struct()
    struct.update(properties)
    return struct


def secret(value: Any) -> dict[str, Any]:
    """A value marked as a secret."""
    return value if _is_marked(value, _SECRET) else {_SIGNATURE: _SECRET, "value": value}


def unwrapped(value: Any) -> Any:
    """A value without the marks of secrets, wherever they are in it."""
    if _is_marked(value, _SECRET):
        return unwrapped(value["value"])
    if isinstance(value, dict):
        return {key: unwrapped(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [unwrapped(entry) for entry in value]
    return value


def plain(value: Any) -> Any:
    """A value as handlers take it: no secret's mark, files by path and hash, nothing for what is absent.

    UnusableValueError for an asset that is no file of this machine.
    """
    if _is_marked(value, _SECRET):
        return plain(value["value"])
    if _is_file(value):
        if not value.get("path"):
            raise UnusableValueError("only files are supported here as archives and assets: use pulumi.FileArchive")
        return {"path": str(Path(value["path"])), "sha256": value["hash"]}
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value


def without_elided_files(inputs: Properties) -> dict[str, Any]:
    """Inputs but for files of which only the hash is told, as the engine does where it reads a resource."""
    return {key: value for key, value in inputs.items() if not _is_file(value) or value.get("path")}


def comparable(value: Any) -> Any:
    """A value in which two that mean the same are equal: a file counts by its bytes, wherever it lies."""
    if _is_marked(value, _SECRET):
        return comparable(value["value"])
    if _is_file(value):
        return {"sha256": value.get("hash")}
    if isinstance(value, dict):
        return {key: comparable(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [comparable(entry) for entry in value]
    return value


def as_it_came(outputs: Properties, inputs: Properties) -> dict[str, Any]:
    """Outputs of a handler on their way back: secret where the input was, files as they were given.

    An output of another name that holds a secret input's text is a secret as well.
    """
    texts = set(_secret_texts(inputs, inside=False))
    marked: dict[str, Any] = {}
    for key, value in outputs.items():
        given = inputs.get(key)
        if _has_file(given):
            marked[key] = given
        elif _has_secret(given) or _holds(value, texts):
            marked[key] = secret(value)
        else:
            marked[key] = value
    return marked


def with_drift(inputs: Properties, *, known: Properties, live: Properties) -> dict[str, Any]:
    """The inputs that would make a resource as it is now: what somebody changed behind the engine's back is in them.

    That is what differs between its ``known`` outputs and the ``live`` ones; a port, say, that this machine gave out in
    place of the declared one was known before. Files are left out: what is live is known by its bytes, not by a path.
    """
    drifted = dict(inputs)
    for key, value in inputs.items():
        if key in known and key in live and not _has_file(value) and plain(known[key]) != plain(live[key]):
            drifted[key] = secret(live[key]) if _has_secret(value) else live[key]
    return drifted


def _is_marked(value: Any, mark: str) -> bool:
    return isinstance(value, dict) and value.get(_SIGNATURE) == mark


def _is_file(value: Any) -> bool:
    return _is_marked(value, _ARCHIVE) or _is_marked(value, _ASSET)


def _entries(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _has_secret(value: Any) -> bool:
    return _is_marked(value, _SECRET) or any(_has_secret(entry) for entry in _entries(value))


def _has_file(value: Any) -> bool:
    return _is_file(value) or any(_has_file(entry) for entry in _entries(value))


def _secret_texts(value: Any, *, inside: bool) -> list[str]:
    inside = inside or _is_marked(value, _SECRET)
    if isinstance(value, str):
        return [value] if inside and len(value) >= _TELLING_LENGTH and value != _SECRET else []
    return [text for entry in _entries(value) for text in _secret_texts(entry, inside=inside)]


def _holds(value: Any, texts: set[str]) -> bool:
    if isinstance(value, str):
        return value != UNKNOWN and value in texts
    return any(_holds(entry, texts) for entry in _entries(value))
