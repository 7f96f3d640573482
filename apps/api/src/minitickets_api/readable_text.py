"""Texts that somebody typed and others read: names of people, of events and of places."""

import re
import unicodedata

from minitickets_contracts import fields

# They would turn round the words that follow: in a mail, on a page, in the name of a file.
_WRITING_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Letters and symbols to Unicode, and nothing to the eye.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def readable(text: str, *, longest: int) -> str:
    """``text``, trimmed. Raises ValueError for one that a message could not carry, or that nobody could read."""
    text = text.strip()
    try:
        fields.text("text", text, longest=longest)
    except fields.ContractError as error:
        raise ValueError(error.problem) from None
    if not any(map(_is_seen, text)):
        raise ValueError("must not be blank")
    if _WRITING_DIRECTION.search(text):
        raise ValueError("must not contain characters that change the direction of writing")
    return text


def _is_seen(character: str) -> bool:
    """Whether it leaves a mark of its own; accents and variation selectors need a letter to stand on."""
    return (
        character.isprintable()
        and not character.isspace()
        and character not in _BLANK
        and unicodedata.category(character) not in ("Mn", "Me")
    )
