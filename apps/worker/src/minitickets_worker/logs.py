"""What the worker's log lines say about a message and an error, and what they keep to themselves."""

import json
from contextlib import suppress
from pathlib import PurePath
from traceback import extract_tb

from minitickets_contracts import fields
from minitickets_contracts.fields import ContractError


def message_identity(body: object) -> dict[str, str]:
    """``correlation_id`` and ``bookingId`` of a message's body, as far as it has them; never raises."""
    try:
        document = json.loads(body) if isinstance(body, str) and len(body) <= 10**6 else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return {}
    identity = {}
    # Of a message that failed its checks nothing else is believed.
    with suppress(ContractError):
        identity["correlation_id"] = fields.correlation_id("correlationId", document.get("correlationId"))
    with suppress(ContractError):
        identity["bookingId"] = fields.uuid("bookingId", document.get("bookingId"))
    return identity


def error_facts(error: BaseException) -> dict[str, object]:
    """What an error was and where it came from, without its text: that of botocore's quotes addresses and values."""
    facts: dict[str, object] = {
        "error": type(error).__name__,
        "origin": [
            f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in extract_tb(error.__traceback__)
        ],
    }
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        facts["code"] = response.get("Error", {}).get("Code")
        facts["operation"] = getattr(error, "operation_name", None)
    elif isinstance(code := getattr(error, "code", None), str):
        facts["code"] = code
    return facts
