"""JSON as strangers send it: whatever could hurt what comes after is refused here, with a sentence that says why."""

import json
import math
import re
from typing import NoReturn

from minitickets_api.refusals import Code, Refusal

MAX_DEPTH = 32  # our deepest input has three levels
# A string need not end: if it had to, each quote of one that does not would begin the search for its end anew, and
# 64 KB of them would hold the event loop for half a minute.
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def parse(document: bytes) -> object:
    """The value in ``document`` (UTF-8).

    Raises Refusal: PARSE_ERROR for what is not JSON (NaN and Infinity are not) or is nested more than MAX_DEPTH
    deep; BAD_REQUEST for a field that comes twice, for numbers out of range, and for NUL characters and lone
    surrogates, which PostgreSQL cannot keep.
    """
    # Counting first keeps the slower scan away from every ordinary document.
    if document.count(b"[") + document.count(b"{") > MAX_DEPTH:
        _refuse_deep(document)
    try:
        value = json.loads(
            document.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except UnicodeDecodeError:
        raise Refusal(Code.PARSE_ERROR, "The input is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise Refusal(Code.PARSE_ERROR, f"The input is not JSON: {error.msg} at character {error.pos}.") from None
    # A NUL or a lone surrogate can only come as an escape: raw ones are invalid in JSON or in UTF-8.
    if b"\\u" in document:
        _refuse_unstorable(value)
    return value


def _refuse_deep(document: bytes) -> None:
    depth = 0
    for token in _BRACKETS.finditer(document):
        mark = token.group()
        if mark in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise Refusal(Code.PARSE_ERROR, f"The input is nested more than {MAX_DEPTH} levels deep.")
        elif mark in (b"]", b"}"):
            depth -= 1


def _refuse_constant(name: str) -> NoReturn:
    raise Refusal(Code.PARSE_ERROR, f"The input is not JSON: {name} is no JSON number.")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        # Which of the two counts is each reader's own opinion, so what looked at it before us may have seen another.
        raise Refusal(Code.BAD_REQUEST, "The input holds an object that names a field twice.")
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise Refusal(Code.BAD_REQUEST, "The input holds a number that is out of range.")
    return number


def _integer(digits: str) -> int:
    # 64 bits are what every column and every client can hold; longer ones are also slow to convert.
    if len(digits) > 19 or not -(2**63) <= int(digits) < 2**63:
        raise Refusal(Code.BAD_REQUEST, "The input holds a number that is out of range.")
    return int(digits)


def _refuse_unstorable(value: object) -> None:
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, str):
            if "\x00" in found or any("\ud800" <= character <= "\udfff" for character in found):
                raise Refusal(Code.BAD_REQUEST, "The input holds a NUL character or a lone surrogate.")
        elif isinstance(found, dict):
            pending += found.keys()
            pending += found.values()
        elif isinstance(found, list):
            pending += found
