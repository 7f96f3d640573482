"""Scripts that run from right to left: letters in the forms in which they join, a line as it is seen.

PDF draws glyphs where it is told. No library here shapes text (the ones that do bring native code), and a Hebrew or
Arabic name drawn in the order of its letters would be read backwards. What is left out of Unicode's algorithm (UAX 9)
is what a name or a title does not hold: embeddings, isolates, paired brackets; controls for them are removed before.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

_FORMS = ("isolated", "final", "initial", "medial")
_PRESENTATION_FORMS = (range(0xFB50, 0xFE00), range(0xFE70, 0xFEFD))
_LAM = "\u0644"
_ALEFS = "\u0622\u0623\u0625\u0627"
_TATWEEL = "\u0640"  # joins on both sides, and looks always the same
_MIRRORED = str.maketrans("()[]{}<>\u00ab\u00bb\u2039\u203a", ")(][}{><\u00bb\u00ab\u203a\u2039")


def visual_order(text: str) -> list[tuple[int, str]]:
    """The characters of one line from left to right, each with its place in ``text``; brackets turned where needed."""
    levels = _levels([unicodedata.bidirectional(character) for character in text])
    order = list(range(len(text)))
    for level in range(max(levels, default=0), 0, -1):
        order = list(_reversed_runs(order, [levels[place] >= level for place in order]))
    order = list(_marks_after_letters(order, text, levels))
    return [(place, text[place].translate(_MIRRORED) if levels[place] % 2 else text[place]) for place in order]


def join_arabic(text: str) -> str:
    """``text`` with each Arabic letter in the form that its neighbours give it, and lam-alef as one."""
    letters = [place for place, character in enumerate(text) if unicodedata.category(character) != "Mn"]
    shown = list(text)
    at = 0
    while at < len(letters):
        place = letters[at]
        before = text[letters[at - 1]] if at else ""
        after = text[letters[at + 1]] if at + 1 < len(letters) else ""
        joins_before = _joins_onwards(before) and _has(text[place], "final")
        ligature = _form(text[place] + after, "final" if joins_before else "isolated") if text[place] == _LAM else None
        if ligature:
            shown[place], shown[letters[at + 1]] = ligature, ""
            at += 2
            continue
        joins_after = _joins_onwards(text[place]) and (_has(after, "final") or after == _TATWEEL)
        form = _FORMS[joins_before + 2 * joins_after]
        shown[place] = _form(text[place], form) or text[place]
        at += 1
    return "".join(shown)


def _joins_onwards(character: str) -> bool:
    return character == _TATWEEL or _has(character, "initial")


def _has(characters: str, form: str) -> bool:
    return _form(characters, form) is not None


def _form(characters: str, form: str) -> str | None:
    return _forms().get((characters, form))


@cache
def _forms() -> dict[tuple[str, str], str]:
    """(letters, form) → the character that shows them so: Unicode says it of each presentation form."""
    forms: dict[tuple[str, str], str] = {}
    for block in _PRESENTATION_FORMS:
        for code in block:
            tag, *letters = unicodedata.decomposition(chr(code)).split()[:4] or [""]
            name = tag.strip("<>")
            shown = "".join(chr(int(letter, 16)) for letter in letters)
            if name in _FORMS and (len(shown) == 1 or (len(shown) == 2 and shown[0] == _LAM and shown[1] in _ALEFS)):
                forms.setdefault((shown, name), chr(code))
    return forms


def _levels(kinds: Sequence[str]) -> list[int]:
    """How deep each character is nested: even runs to the right, odd to the left (UAX 9: P2, W1-W7, N1-N2, I1-I2)."""
    base = next((int(kind != "L") for kind in kinds if kind in ("L", "R", "AL")), 0)
    direction = "R" if base else "L"
    weak = _weak(list(kinds), direction)
    strong = _neutral(weak, direction)
    return [base + _deeper(kind, base) for kind in strong]


def _weak(kinds: list[str], direction: str) -> list[str]:
    previous = last_strong = direction
    for place, original in enumerate(kinds):
        kind = previous if original == "NSM" else original
        if kind in ("L", "R", "AL"):
            last_strong = kind
        if kind == "EN" and last_strong == "AL":
            kind = "AN"
        kinds[place] = previous = kind
    kinds = ["R" if kind == "AL" else kind for kind in kinds]
    for place in range(1, len(kinds) - 1):
        before, kind, after = kinds[place - 1 : place + 2]
        if before == after and ((kind in ("ES", "CS") and before == "EN") or (kind == "CS" and before == "AN")):
            kinds[place] = before
    for places in (range(len(kinds)), range(len(kinds) - 1, -1, -1)):  # a currency sign on either side of a number
        previous = ""
        for place in places:
            if kinds[place] == "ET" and previous == "EN":
                kinds[place] = "EN"
            previous = kinds[place]
    last_strong = direction
    for place, kind in enumerate(kinds):
        if kind in ("L", "R"):
            last_strong = kind
        elif kind == "EN" and last_strong == "L":
            kinds[place] = "L"
    return kinds


def _neutral(kinds: list[str], direction: str) -> list[str]:
    """Neutrals between two of one direction take it (numbers count as R), others that of the line."""
    place = 0
    while place < len(kinds):
        end = place
        while end < len(kinds) and kinds[end] not in ("L", "R", "EN", "AN"):
            end += 1
        if end > place:
            before = _side(kinds[place - 1]) if place else direction
            after = _side(kinds[end]) if end < len(kinds) else direction
            kinds[place:end] = [before if before == after else direction] * (end - place)
        place = end + 1
    return kinds


def _side(kind: str) -> str:
    return "L" if kind == "L" else "R"


def _deeper(kind: str, base: int) -> int:
    if base:
        return int(kind != "R")
    return {"L": 0, "R": 1}.get(kind, 2)


def _reversed_runs(order: Sequence[int], is_in: Sequence[bool]) -> Iterator[int]:
    run: list[int] = []
    for place, belongs in zip(order, is_in, strict=True):
        if belongs:
            run.append(place)
        else:
            yield from reversed(run)
            run = []
            yield place
    yield from reversed(run)


def _marks_after_letters(order: Sequence[int], text: str, levels: Sequence[int]) -> Iterator[int]:
    """In a turned run marks come before their letters; the glyph of a mark is drawn over the one before it."""
    marks: list[int] = []
    for place in order:
        if levels[place] % 2 and unicodedata.category(text[place]) == "Mn":
            marks.append(place)
        else:
            yield place
            yield from reversed(marks)
            marks = []
    yield from reversed(marks)
