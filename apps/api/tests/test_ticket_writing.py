"""Text as it is seen: joined letters, lines that run from right to left, and a font for every character."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_api.services.ticket_pdf.lines import fit
from minitickets_api.services.ticket_pdf.typefaces import BOLD, REGULAR, REPLACEMENT, drawable
from minitickets_api.services.ticket_pdf.writing import join_arabic, visual_order

pytestmark = pytest.mark.unit

# Hebrew letters: alef, bet, gimel. In the source they would be shown in an order of the editor's own.
A, B, G = "\u05d0", "\u05d1", "\u05d2"


def seen(text: str) -> str:
    return "".join(character for _, character in visual_order(text))


@pytest.mark.parametrize(
    ("read", "shown"),
    [
        ("", ""),
        ("Ada Lovelace, 12-13", "Ada Lovelace, 12-13"),
        (A + B + G, G + B + A),
        (f"Ada {A}{B} Lovelace", f"Ada {B}{A} Lovelace"),  # one word within a line from left to right
        (f"Ada {A} {B} Lovelace", f"Ada {B} {A} Lovelace"),  # two words change places
        (f"{A}{B} Ada", f"Ada {B}{A}"),  # the first letter decides where a line begins
        (f"{A} 2026", f"2026 {A}"),  # numbers keep their own order
        (f"Ada {A} 2026", f"Ada 2026 {A}"),
        (f"{A} 10.50 {B}", f"{B} 10.50 {A}"),
        (f"{A} 5% {B}", f"{B} 5% {A}"),
        (f"{A} $5 {B}", f"{B} $5 {A}"),
        (f"{A} (Ada) {B}", f"{B} (Ada) {A}"),
        (f"{A}({B})", f"({B}){A}"),  # brackets are turned with their text
        (f"{A}{B}!", f"!{B}{A}"),
        (f"Ada {A}!", f"Ada {A}!"),
        ("\u0627 12 \u0628", "\u0628 12 \u0627"),
        (f"{A}\u05b8{B}", f"{B}{A}\u05b8"),  # a vowel stays with its letter
    ],
)
def test_a_line_is_seen_in_the_order_of_its_scripts(read: str, shown: str) -> None:
    assert seen(read) == shown


@given(st.text())
def test_no_character_is_lost_or_doubled_by_the_order(text: str) -> None:
    assert sorted(place for place, _ in visual_order(text)) == list(range(len(text)))


@given(st.text(st.characters(categories=("Lu", "Ll", "Nd", "Zs", "Po"), max_codepoint=0x24F)))
def test_a_text_from_left_to_right_stays_as_it_is(text: str) -> None:
    assert seen(text) == text


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("\u0645\u062d\u0645\u062f", ["MEEM INITIAL", "HAH MEDIAL", "MEEM MEDIAL", "DAL FINAL"]),  # Muhammad
        ("\u062f\u0627\u0631", ["DAL ISOLATED", "ALEF ISOLATED", "REH ISOLATED"]),  # none joins onwards
        ("\u0633\u0644\u0627\u0645", ["SEEN INITIAL", "LIGATURE LAM WITH ALEF FINAL", "MEEM ISOLATED"]),  # salam
        ("\u0644\u0627", ["LIGATURE LAM WITH ALEF ISOLATED"]),
        ("\u0628 \u0628", ["BEH ISOLATED", "SPACE", "BEH ISOLATED"]),  # not across a space
        ("\u0628\u0640\u0628", ["BEH INITIAL", "TATWEEL", "BEH FINAL"]),
        ("\u0628\u064e\u0628", ["BEH INITIAL", "FATHA", "BEH FINAL"]),  # a vowel between does not part them
        ("\u067e\u06cc", ["PEH INITIAL", "FARSI YEH FINAL"]),  # Persian
        ("\u0627\u0644\u0645", ["ALEF ISOLATED", "LAM INITIAL", "MEEM FINAL"]),  # no other ligature than lam-alef
    ],
)
def test_arabic_letters_join_their_neighbours(word: str, forms: list[str]) -> None:
    names = [unicodedata.name(character) for character in join_arabic(word)]

    assert len(names) == len(forms)
    for name, form in zip(names, forms, strict=True):
        assert form in name


@pytest.mark.parametrize("text", ["Ada Lovelace", "\u05e2\u05d3\u05d4", "\u0939\u093f", "漢字", "\U0001f384"])
def test_what_is_not_arabic_is_not_joined(text: str) -> None:
    assert join_arabic(text) == text


@pytest.mark.parametrize(
    ("text", "fonts"),
    [
        ("Große Halle, Čeština, Ελληνικά, Київ, Հայերեն", {REGULAR}),
        ("\u05e2\u05d3\u05d4 \u0645\u062d\u0645\u062f", {REGULAR}),
        ("山田太郎コンサート", {"HeiseiKakuGo-W5"}),
        ("北京国家大剧院", {"STSong-Light"}),  # simplified characters, which Japanese fonts lack
        ("서울 예술의전당", {"HYGothic-Medium", REGULAR}),  # the space is anybody's
        ("Ada 山田", {REGULAR, "HeiseiKakuGo-W5"}),
    ],
)
def test_every_script_has_a_font(text: str, fonts: set[str]) -> None:
    found = drawable(text, is_bold=False)

    assert set(found.fonts) == fonts
    assert not found.lacks_some
    assert found.needs_readers_fonts == (not fonts <= {REGULAR, BOLD})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ada \U0001f384", f"Ada {REPLACEMENT}"),
        ("\U0001f44d\U0001f3fd", REPLACEMENT),  # one square, not one for its skin tone too
        ("\U0001f468\u200d\U0001f469", REPLACEMENT * 2),  # joined by something that is not seen
        ("\u0e2a\u0e21", REPLACEMENT * 2),  # Thai
        ("\u0939\u093f", REPLACEMENT),  # a letter of Devanagari and its vowel
    ],
)
def test_what_no_font_has_is_a_square_and_is_said(text: str, shown: str) -> None:
    found = drawable(text, is_bold=False)

    assert found.text == shown
    assert found.lacks_some


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zoe\u0308", "Zoë"),
        ("a\u200bb\ufeffc\u00add", "abcd"),
        ("\u202eevil\u202c", "evil"),  # nobody turns the print around
        ("a\u2003b\u00a0 c", "a b c"),
        ("★\ufe0f", "★"),
        ("㎏", "㎏"),
    ],
)
def test_what_is_not_seen_is_not_drawn(text: str, shown: str) -> None:
    assert drawable(text, is_bold=True).text == shown


def lines_of(text: str, *, points: float, sizes: tuple[tuple[float, int], ...] = ((10, 99),)) -> list[str]:
    block = fit(text, width_points=points, sizes=sizes)
    return ["".join(run.text for run in line) for line in block.lines]


def test_lines_break_at_spaces_and_within_a_word_only_if_they_must() -> None:
    assert lines_of("one two three", points=50) == ["one two", "three"]
    assert lines_of("one " + "x" * 20, points=50) == ["one", "xxxxxxxx", "xxxxxxxx", "xxxx"]


def test_each_line_is_turned_by_itself() -> None:
    assert lines_of(f"{A * 6} {B * 6}", points=50) == [A * 6, B * 6]


def test_the_largest_size_that_fits_is_taken_and_the_last_is_cut_off() -> None:
    sizes = ((20.0, 1), (10.0, 2))

    assert fit("short", width_points=100, sizes=sizes).size == 20
    assert fit("not so short at all", width_points=100, sizes=sizes).size == 10
    cut = lines_of("far too long " * 9, points=100, sizes=sizes)
    assert len(cut) == 2
    assert cut[-1].endswith("…")


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200), is_bold=st.booleans())
def test_any_text_stays_within_its_width_and_its_lines(text: str, is_bold: bool) -> None:
    from reportlab.pdfbase.pdfmetrics import stringWidth

    block = fit(text, width_points=100, sizes=((20, 1), (8, 3)), is_bold=is_bold)

    assert len(block.lines) <= 3
    for line in block.lines:
        assert sum(stringWidth(run.text, run.font, block.size) for run in line) <= 100.01
