"""Where the next page of a list begins, opaque to whoever carries it."""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from minitickets_api.refusals import Code, Refusal

_CHECK_BYTES = 12
_LONGEST = 512


def encode(*, query: str, owner: str, position: Sequence[str]) -> str:
    """A cursor of ``owner`` in the list ``query`` after ``position``.

    It carries a check, not a signature: it tells a cursor of another list or owner from this one's. What keeps one
    person's rows from another is that every query filters by the owner, whatever the cursor says.
    """
    payload = json.dumps(list(position), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_check(query, owner, payload) + payload).rstrip(b"=").decode()


def decode(cursor: str, *, query: str, owner: str, length: int) -> list[str]:
    """The ``length`` parts of the position. Raises Refusal(BAD_REQUEST) for a cursor that is not of this list and
    owner."""
    if len(cursor) > _LONGEST:
        raise _refusal()
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _refusal() from None
    payload = raw[_CHECK_BYTES:]
    if raw[:_CHECK_BYTES] != _check(query, owner, payload):
        raise _refusal()
    try:
        position = json.loads(payload)
    except ValueError:
        raise _refusal() from None
    if not isinstance(position, list) or len(position) != length or not all(isinstance(p, str) for p in position):
        raise _refusal()
    return position


def position_time(part: str) -> datetime:
    """A part of a position as a time. Raises Refusal(BAD_REQUEST): the check is no signature, so it may be forged."""
    try:
        moment = datetime.fromisoformat(part)
    except ValueError:
        raise _refusal() from None
    if moment.tzinfo is None:
        raise _refusal()
    try:
        return moment.astimezone(UTC)  # its offset may lead out of the years that there are
    except OverflowError:
        raise _refusal() from None


def position_uuid(part: str) -> UUID:
    """A part of a position as an id. Raises Refusal(BAD_REQUEST)."""
    try:
        return UUID(part)
    except ValueError:
        raise _refusal() from None


def _refusal() -> Refusal:
    return Refusal(Code.BAD_REQUEST, "cursor: not one of this list; leave it out to begin at the first page")


def _check(query: str, owner: str, payload: bytes) -> bytes:
    bound = json.dumps([query, owner]).encode()
    return hashlib.sha256(bound + b"\n" + payload).digest()[:_CHECK_BYTES]
