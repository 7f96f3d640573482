"""The JSON around a message: objects of at most 200 KiB, read field by field."""

import json
from collections.abc import Mapping

from minitickets_contracts import fields
from minitickets_contracts.fields import ContractError

MAX_MESSAGE_BYTES = 200 * 1024


def message_document(body: str) -> Mapping[str, object]:
    """The JSON object in ``body``, whatever its type. Raises ContractError for anything else."""
    _check_size(body)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise ContractError("message", "must be JSON") from None
    return fields.mapping("message", document)


def document_of(type_name: str, version: int, body: str) -> Mapping[str, object]:
    """The JSON object in ``body`` if it is of that type and version. Raises ContractError for anything else."""
    document = message_document(body)
    if fields.required("", document, "type") != type_name:
        raise ContractError("type", f"must be {type_name}")
    found = fields.required("", document, "version")
    if isinstance(found, bool) or found != version:
        raise ContractError("version", f"must be {version}; a newer producer needs a newer consumer")
    return document


def string(path: str, document: Mapping[str, object], name: str) -> str:
    """The string ``document[name]``; ``path`` is what an error puts before the name."""
    value = fields.required(path, document, name)
    if not isinstance(value, str):
        raise ContractError(f"{path}{name}", "must be a string")
    return value


def message_body(document: Mapping[str, object]) -> str:
    """``document`` as a body. Raises ContractError if it would be larger than a message may be."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    _check_size(body)
    return body


def _check_size(body: str) -> None:
    try:
        size = len(body.encode())
    except UnicodeEncodeError:
        raise ContractError("message", "must be encodable as UTF-8") from None
    if size > MAX_MESSAGE_BYTES:
        raise ContractError("message", f"must have at most {MAX_MESSAGE_BYTES} bytes, has {size}")
