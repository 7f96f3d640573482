"""How a start and an amount read to a person: the same in a mail, on a page and on a printed ticket."""

from datetime import UTC, datetime

# Digits after the point where they are not two: ISO 4217, list one.
_NO_DIGITS = ("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF", 0)
_THREE_DIGITS = ("BHD IQD JOD KWD LYD OMR TND", 3)
_FOUR_DIGITS = ("CLF UYW", 4)
_MINOR_DIGITS = {code: digits for codes, digits in (_NO_DIGITS, _THREE_DIGITS, _FOUR_DIGITS) for code in codes.split()}


def start_text(starts_at: str, time_zone: str) -> str:
    """``Thursday, 31 December 2026, 20:00 (America/Los_Angeles, UTC-08:00)``."""
    return f"{day_text(starts_at)}, {clock_text(starts_at)} ({zone_text(starts_at, time_zone)})"


def day_text(starts_at: str) -> str:
    """``Thursday, 31 December 2026``: the venue's own date.

    ``starts_at`` is local time there and carries the offset that holds then, so no zone data is needed.
    """
    start = datetime.fromisoformat(starts_at)
    return f"{start:%A}, {start.day} {start:%B} {start.year}"


def clock_text(starts_at: str) -> str:
    """``20:00``, as clocks at the venue show it."""
    return f"{datetime.fromisoformat(starts_at):%H:%M}"


def zone_text(starts_at: str, time_zone: str) -> str:
    """``America/Los_Angeles, UTC-08:00``: which clocks are meant."""
    return f"{time_zone}, UTC{starts_at[-6:]}"


def instant_text(instant: str) -> str:
    """``29 November 2026, 12:00 UTC``, from ISO 8601 with an offset: when something was done, wherever that was."""
    moment = datetime.fromisoformat(instant).astimezone(UTC)
    return f"{moment.day} {moment:%B} {moment.year}, {moment:%H:%M} UTC"


def minor_digits(currency: str) -> int:
    """How many digits of an amount in minor units stand after the point."""
    return _MINOR_DIGITS.get(currency, 2)


def amount_text(minor: int, currency: str) -> str:
    """``USD 1,234.50``, from minor units and an ISO 4217 code."""
    digits = minor_digits(currency)
    whole, rest = divmod(minor, 10**digits)
    return f"{currency} {whole:,}" + (f".{rest:0{digits}}" if digits else "")
