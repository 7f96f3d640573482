"""tRPC's HTTP format: which calls a request makes, with which inputs, and how an outcome is written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from pydantic import BaseModel

from minitickets_api.refusals import Code, Refusal
from minitickets_api.trpc import json_documents

MAX_BATCH = 10
MAX_BYTES = 64 * 1024  # of a body
MAX_QUERY_BYTES = 16 * 1024  # what a load balancer lets a request line have
_MULTI_STATUS = 207


@dataclass(frozen=True, kw_only=True)
class Request:
    """The procedures that are called, in order, and the text that holds their inputs (None: there is none)."""

    names: tuple[str, ...]
    is_batch: bool
    query_input: bytes | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one call came to: its envelope (JSON) and the status that it alone would be answered with."""

    status: int
    envelope: bytes
    retry_after: int | None = None


def read_request(path: str, query_string: bytes) -> Request:
    """What ``/trpc/<path>?<query_string>`` asks for. Raises Refusal for a malformed or too long one."""
    if len(query_string) > MAX_QUERY_BYTES:
        raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The query string is larger than {MAX_QUERY_BYTES} bytes.")
    try:
        given = parse_qsl(query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=10)
    except ValueError:
        raise Refusal(Code.BAD_REQUEST, "The query string is malformed.") from None
    parameters = dict(given)
    if len(parameters) != len(given):
        raise Refusal(Code.BAD_REQUEST, "The query string names a parameter twice.")
    is_batch = parameters.get("batch") == "1"
    names = tuple(path.split(",")) if is_batch else (path,)
    if len(names) > MAX_BATCH:
        raise Refusal(Code.BAD_REQUEST, f"A batch holds at most {MAX_BATCH} calls.")
    text = parameters.get("input")
    return Request(names=names, is_batch=is_batch, query_input=None if text is None else text.encode())


def read_inputs(request: Request, document: bytes | None) -> Sequence[object]:
    """One input a call, None where the client gave none. A batch's document is an object keyed by position."""
    value = json_documents.parse(document) if document else None
    if not request.is_batch:
        return [value]
    if value is None:
        return [None] * len(request.names)
    positions = [str(position) for position in range(len(request.names))]
    if not isinstance(value, dict) or not value.keys() <= set(positions):
        raise Refusal(
            Code.BAD_REQUEST, 'The input of a batch must be an object with the calls\' positions: {"0": ...}.'
        )
    return [value.get(position) for position in positions]


def success(data: BaseModel) -> Outcome:
    """A call that returned ``data``."""
    return Outcome(
        status=200, envelope=b'{"result":{"data":' + data.__pydantic_serializer__.to_json(data, by_alias=True) + b"}}"
    )


def refusal(reason: Refusal, *, path: str | None, correlation_id: str) -> Outcome:
    """A call that was refused. ``path`` is the procedure's name; None: the request as a whole."""
    data: dict[str, object] = {**reason.details, "code": reason.code.name, "httpStatus": reason.code.http_status}
    if path is not None:
        data["path"] = path
    data["correlationId"] = correlation_id
    error: Mapping[str, object] = {"message": reason.message, "code": reason.code.number, "data": data}
    retry_after = reason.details.get("retryAfterSeconds")
    return Outcome(
        status=reason.code.http_status,
        envelope=json.dumps({"error": error}, separators=(",", ":")).encode(),
        retry_after=retry_after if isinstance(retry_after, int) else None,
    )


def write_outcomes(outcomes: Sequence[Outcome], *, is_batch: bool) -> tuple[int, bytes]:
    """Status and body of the reply. A batch whose calls differ in status is answered with 207."""
    if not is_batch:
        return outcomes[0].status, outcomes[0].envelope
    statuses = {outcome.status for outcome in outcomes}
    status = statuses.pop() if len(statuses) == 1 else _MULTI_STATUS
    return status, b"[" + b",".join(outcome.envelope for outcome in outcomes) + b"]"
