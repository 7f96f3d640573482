"""Text in lines that fit, each as the runs that are drawn from left to right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from minitickets_api.services.ticket_pdf.typefaces import Drawable, drawable, width
from minitickets_api.services.ticket_pdf.writing import visual_order

_ELLIPSIS = "\u2026"


@dataclass(frozen=True, kw_only=True)
class Run:
    """Characters of one font."""

    font: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """Lines of one ``size`` (points). ``lacks_some`` and ``needs_readers_fonts`` as in Drawable."""

    size: float
    lines: tuple[tuple[Run, ...], ...]
    lacks_some: bool
    needs_readers_fonts: bool


def fit(text: str, *, width_points: float, sizes: Sequence[tuple[float, int]], is_bold: bool = False) -> Block:
    """``text`` in the first of ``sizes`` (points, and how many lines may have it) in which it fits.

    In the last of them it is cut off at the end, if it must.
    """
    whole = drawable(text, is_bold=is_bold)
    for size, most in sizes:
        places = list(_broken(whole, width_points / size))
        if len(places) <= most:
            break
    else:
        places = places[:most]
        first, last = places[-1]
        ending = width(_ELLIPSIS, whole.fonts[0])
        while last > first and _width(whole, first, last) + ending > width_points / size:
            last -= 1
        cut = Drawable(
            text=whole.text[:last] + _ELLIPSIS, fonts=(*whole.fonts[:last], whole.fonts[0]), lacks_some=whole.lacks_some
        )
        whole, places[-1] = cut, (first, last + 1)
    lines = tuple(_runs(whole.text[first:last], whole.fonts[first:last]) for first, last in places)
    return Block(size=size, lines=lines, lacks_some=whole.lacks_some, needs_readers_fonts=whole.needs_readers_fonts)


def _runs(text: str, fonts: Sequence[str]) -> tuple[Run, ...]:
    seen = [(fonts[place], character) for place, character in visual_order(text)]
    return tuple(
        Run(font=font, text="".join(character for _, character in group))
        for font, group in groupby(seen, key=lambda each: each[0])
    )


def _broken(whole: Drawable, widest: float) -> Iterator[tuple[int, int]]:
    """(first, behind the last) of each line: broken at spaces, and anywhere in a word that is wider than a line."""
    first = 0
    while first < len(whole.text):
        last, break_at, used = first, 0, 0.0
        while last < len(whole.text):
            used += width(whole.text[last], whole.fonts[last])
            if used > widest and last > first:
                break
            last += 1
            if last < len(whole.text) and whole.text[last] == " ":
                break_at = last
        if last == len(whole.text) or not break_at:
            break_at = last
        yield first, break_at
        first = break_at + (break_at < len(whole.text) and whole.text[break_at] == " ")


def _width(whole: Drawable, first: int, last: int) -> float:
    return sum(width(whole.text[place], whole.fonts[place]) for place in range(first, last))
