"""Which font draws which character.

DejaVu Sans is embedded: Latin, Greek, Cyrillic, Hebrew, Arabic, Armenian, Georgian and more. Chinese, Japanese and
Korean name fonts that readers of PDF bring along: to embed one would cost megabytes a ticket. What neither has stands
as a square (scripts of India and South East Asia, most emoji); the page then says so.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont

from minitickets_api.services.ticket_pdf.writing import join_arabic

REGULAR = "DejaVuSans"
BOLD = "DejaVuSans-Bold"
REPLACEMENT = "\u25a1"  # a square
_FONTS = Path(__file__).parent / "fonts"
# The font of each language's readers, and a codec of the characters that it holds. A text takes the first font that
# has all of it, because a Chinese and a Japanese drawing of one character differ.
_READERS_FONTS = (("HeiseiKakuGo-W5", "cp932"), ("STSong-Light", "gbk"), ("HYGothic-Medium", "cp949"))
_EAST_ASIAN_FROM = 0x2E80
# Combining grapheme joiner, Hangul fillers, variation selectors: nothing to see. Skin tones: nothing without a face.
_INVISIBLE = frozenset(
    map(chr, (0x34F, 0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400)))
)
_NOT_TEXT = frozenset({"Cc", "Cf", "Cs"})  # controls (of direction too), joiners, halves of characters


@dataclass(frozen=True, kw_only=True)
class Drawable:
    """Characters in the order of reading, all of which can be drawn, and the font of each.

    ``lacks_some`` says that a square stands for at least one of the text's own characters.
    """

    text: str
    fonts: tuple[str, ...]
    lacks_some: bool

    @property
    def needs_readers_fonts(self) -> bool:
        """Whether some of it is seen only where the reader brings a font for it."""
        return not {REGULAR, BOLD}.issuperset(self.fonts)


def drawable(text: str, *, is_bold: bool) -> Drawable:
    """``text`` on one line, as it can be drawn."""
    faces = _faces()
    main = BOLD if is_bold else REGULAR
    known = faces[main]
    normal = " ".join(unicodedata.normalize("NFC", text).split())
    visible = [each for each in normal if each not in _INVISIBLE and unicodedata.category(each) not in _NOT_TEXT]
    east_asian = _east_asian(each for each in visible if each not in known)
    characters: list[str] = []
    fonts: list[str] = []
    lacks_some = False
    for character in join_arabic("".join(visible)):
        font = main if character in known else east_asian.get(character)
        plain = unicodedata.normalize("NFKC", character)
        if font is not None:
            drawn = character
        elif plain and set(plain) <= known:
            drawn, font = plain, main
        elif unicodedata.category(character).startswith("M"):
            lacks_some = True  # a mark of a letter that is a square already
            continue
        else:
            drawn, font = REPLACEMENT, main
            lacks_some = True
        characters += drawn
        fonts += [font] * len(drawn)
    return Drawable(text="".join(characters), fonts=tuple(fonts), lacks_some=lacks_some)


def width(character: str, font: str) -> float:
    """Of one character, in units of the font's size."""
    return float(pdfmetrics.stringWidth(character, font, 1000)) / 1000


def _east_asian(characters: Iterable[str]) -> dict[str, str]:
    """Character → font, of those that one of the fonts has."""
    wanted = [each for each in characters if ord(each) >= _EAST_ASIAN_FROM]
    has = {font: {each for each in wanted if _can_encode(each, codec)} for font, codec in _READERS_FONTS}
    # The one that has most comes first, then the rest fill its gaps.
    order = sorted(has, key=lambda font: -len(has[font]))
    return {each: font for font in reversed(order) for each in has[font]}


def _can_encode(character: str, codec: str) -> bool:
    try:
        character.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


@cache
def _faces() -> dict[str, frozenset[str]]:
    """Register the fonts, once a process; the characters of each embedded one."""
    faces = {}
    for name in (REGULAR, BOLD):
        font: Any = TTFont(name, str(_FONTS / f"{name}.ttf"))
        pdfmetrics.registerFont(font)
        # The PDF's own table of what its glyphs mean, by which text is copied, holds 16 bits a character here.
        faces[name] = frozenset(chr(code) for code in font.face.charToGlyph if code <= 0xFFFF)
    for name, _ in _READERS_FONTS:
        pdfmetrics.registerFont(UnicodeCIDFont(name))
    return faces
