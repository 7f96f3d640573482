"""Checks of single fields, each of which names the field in its error."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

SEAT_PATTERN = re.compile(r"[A-Z0-9-]{1,8}")
MAX_SEATS_PER_BOOKING = 10
_CORRELATION_ID = re.compile(r"[A-Za-z0-9._:/=+-]{1,128}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_TIME_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
_STARTS_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d", re.ASCII)
_RESET_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,128}")
_SPACE = re.compile(r"\s")
# C0 and C1 controls would let a name add a mail header or a log line; lone surrogates cannot be encoded.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class ContractError(ValueError):
    """A message, key or token does not keep its contract.

    ``field`` is the JSON path of what is wrong (``customer.email``), ``problem`` says what is expected of it.
    Neither holds the offending value: it may be personal data, and this text is logged.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def text(field: str, value: object, *, longest: int) -> str:
    """``value`` if it is a printable, non-blank string of at most ``longest`` characters."""
    if not isinstance(value, str):
        raise ContractError(field, "must be a string")
    if not value.strip():
        raise ContractError(field, "must not be blank")
    if len(value) > longest:
        raise ContractError(field, f"must have at most {longest} characters")
    if _UNPRINTABLE.search(value):
        raise ContractError(field, "must not contain control characters or lone surrogates")
    return value


def email(field: str, value: object) -> str:
    """``value`` if it has the form of a mail address; whether it exists, only mail can tell."""
    candidate = text(field, value, longest=254)
    local_part, _, domain = candidate.rpartition("@")
    if not local_part or not domain or _SPACE.search(candidate):
        raise ContractError(field, "must be a mail address")
    return candidate


def uuid(field: str, value: object) -> str:
    """``value`` if it is a UUID in its canonical lower-case form."""
    candidate = text(field, value, longest=36)
    try:
        canonical = str(UUID(candidate))
    except ValueError:
        canonical = ""
    if canonical != candidate:
        raise ContractError(field, "must be a UUID in lower case with hyphens")
    return candidate


def integer(field: str, value: object, *, least: int, most: int) -> int:
    """``value`` if it is a whole number from ``least`` to ``most`` (``True`` is not a number)."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ContractError(field, "must be a whole number")
    if not least <= value <= most:
        raise ContractError(field, f"must be from {least} to {most}")
    return value


def seat(field: str, value: object) -> str:
    """``value`` if it is a seat's name: 1 to 8 of ``A-Z 0-9 -``, so that no key can be forged through it."""
    if not isinstance(value, str) or not SEAT_PATTERN.fullmatch(value):
        raise ContractError(field, "must be 1 to 8 characters of A-Z, 0-9 and -")
    return value


def seats(field: str, value: object) -> tuple[str, ...]:
    """``value`` as a tuple if it is 1 to 10 different seat names."""
    if not isinstance(value, list | tuple):
        raise ContractError(field, "must be a list of seat names")
    if not 1 <= len(value) <= MAX_SEATS_PER_BOOKING:
        raise ContractError(field, f"must hold 1 to {MAX_SEATS_PER_BOOKING} seats")
    names = tuple(seat(f"{field}[{position}]", name) for position, name in enumerate(value))
    if len(set(names)) != len(names):
        raise ContractError(field, "must not name a seat twice")
    return names


def correlation_id(field: str, value: object) -> str:
    """``value`` if it is 1 to 128 letters, digits and ``._:/=+-``: it is logged, so no mail address may pass as one."""
    if not isinstance(value, str) or not _CORRELATION_ID.fullmatch(value):
        raise ContractError(field, "must be 1 to 128 characters of A-Z, a-z, 0-9 and . _ : / = + -")
    return value


def currency(field: str, value: object) -> str:
    """``value`` if it has the form of an ISO 4217 code."""
    if not isinstance(value, str) or not _CURRENCY.fullmatch(value):
        raise ContractError(field, "must be three capital letters (ISO 4217)")
    return value


def time_zone(field: str, value: object) -> str:
    """``value`` if it has the form of an IANA zone name (``America/Los_Angeles``)."""
    candidate = text(field, value, longest=64)
    if not _TIME_ZONE.fullmatch(candidate):
        raise ContractError(field, "must be an IANA time zone name")
    return candidate


def starts_at(field: str, value: object) -> str:
    """``value`` if it is local time with its UTC offset, to the second: ``2026-12-31T20:00:00-08:00``.

    ``Z``, ``-00:00`` and fractions are refused: the first ten characters must be the date on the door, and one
    moment must have one spelling, because it is part of a key.
    """
    candidate = text(field, value, longest=25)
    if not _STARTS_AT.fullmatch(candidate):
        raise ContractError(field, "must look like 2026-12-31T20:00:00-08:00")
    try:
        canonical = datetime.fromisoformat(candidate).isoformat()
    except ValueError:
        canonical = ""
    if canonical != candidate:
        raise ContractError(field, "must be a date, a time and an offset that exist")
    return candidate


def instant(field: str, value: object) -> str:
    """``value`` if it is an ISO 8601 time with an offset (``Z`` allowed), so a moment that UTC has a name for."""
    candidate = text(field, value, longest=40)
    try:
        moment = datetime.fromisoformat(candidate)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ContractError(field, "must be an ISO 8601 time with its UTC offset")
    return candidate


def reset_token(field: str, value: object) -> str:
    """``value`` if it is 32 to 128 characters of base64url: it stands in a link as it is, and cannot be guessed."""
    if not isinstance(value, str) or not _RESET_TOKEN.fullmatch(value):
        raise ContractError(field, "must be 32 to 128 characters of A-Z, a-z, 0-9, - and _")
    return value


def mapping(field: str, value: object) -> Mapping[str, object]:
    """``value`` if it is a JSON object."""
    if not isinstance(value, dict):
        raise ContractError(field, "must be an object")
    return value


def required(path: str, fields: Mapping[str, object], name: str) -> object:
    """``fields[name]``, or an error with its whole path; unknown other fields are none of our business."""
    if name not in fields:
        raise ContractError(f"{path}{name}", "is missing")
    return fields[name]
