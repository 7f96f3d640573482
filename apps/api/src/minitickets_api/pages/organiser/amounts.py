"""Amounts as people type them."""

import re

from minitickets_contracts.wording import minor_digits

_AMOUNT = re.compile(r"(?P<whole>[0-9]{1,9})(?:[.,](?P<rest>[0-9]*))?")


def read_amount(text: str, currency: str) -> int:
    """``25``, ``25.5`` or ``25,50`` in minor units of ``currency``. Raises ValueError with what to write instead."""
    digits = minor_digits(currency)
    example = f"25.{'0' * digits}" if digits else "25"
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"Write an amount in figures, such as {example}; 0 is free.")
    rest = found["rest"] or ""
    if len(rest) > digits:
        raise ValueError(
            f"{currency} has {digits} digits after the point: write an amount such as {example}."
            if digits
            else f"{currency} has no digits after the point: write an amount such as {example}."
        )
    return int(found["whole"] + rest.ljust(digits, "0"))


def amount_input(minor: int, currency: str) -> str:
    """What ``read_amount`` reads as ``minor``."""
    digits = minor_digits(currency)
    whole, rest = divmod(minor, 10**digits)
    return f"{whole}.{rest:0{digits}}" if digits else str(whole)
