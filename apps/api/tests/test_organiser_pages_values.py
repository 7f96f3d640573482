"""What organisers write and see: rows of a hall, amounts, the plot of sales."""

import csv
import io
import re
import string
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minitickets_api.pages.organiser import sales_plot
from minitickets_api.pages.organiser.amounts import amount_input, read_amount
from minitickets_api.pages.organiser.bookings_csv import defused
from minitickets_api.pages.organiser.seat_rows import RowsProblem, read_rows, rows_of, rows_text
from minitickets_api.services.seat_rows import SeatRow

pytestmark = pytest.mark.unit


def row(label: str, seats: int, *aisles: int) -> SeatRow:
    return SeatRow(label=label, seats=seats, aisle_after=aisles)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("A 20", [row("A", 20)]),
        ("a 20 | 5, 15", [row("A", 20, 5, 15)]),
        ("A: 20|15 5 5", [row("A", 20, 5, 15)]),
        ("\n  A-C  3 \r\n\nVIP 1\n", [row("A", 3), row("B", 3), row("C", 3), row("VIP", 1)]),
        ("9-11 2", [row("9", 2), row("10", 2), row("11", 2)]),
        ("A - B 7", [row("A", 7), row("B", 7)]),
        ("B 1\nA 1", [row("B", 1), row("A", 1)]),
        ("A\t\u00a0  4  |   2 ,  3", [row("A", 4, 2, 3)]),
    ],
)
def test_rows_are_read_as_people_write_them(text: str, rows: list[SeatRow]) -> None:
    assert read_rows(text) == rows


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "at least one row"),
        ("  \n ", "at least one row"),
        ("A 20\nB", "Line 2 cannot be read"),
        ("A twenty", "Line 1 cannot be read"),
        ("A20", "Line 1 cannot be read"),
        ("Å 20", "Line 1 cannot be read"),
        ("ß 20", "Line 1 cannot be read"),
        ("A ²", "Line 1 cannot be read"),
        ("A 20 |", "Line 1 cannot be read"),
        ("A 0", "1 to 100 seats"),
        ("A 101", "1 to 100 seats"),
        ("1-60 100", "6,000 seats"),
        ("A 20 | 20", "one of the seats 1 to 19"),
        ("A 20 | 0", "one of the seats 1 to 19"),
        ("A 1\nB 2\nA 3", "Row A is there twice"),
        ("C-A 5", "C comes after A"),
        ("A-12 5", "no run of letters or numbers"),
        ("AA-AC 5", "no run of letters or numbers"),
        ("1-9999 5", "9999 rows"),
        ("BALCONY 5", "at most 4 letters"),
        ("1-60 5\n61-120 5", "120 rows"),
    ],
)
def test_rows_that_make_no_hall_are_refused_with_their_line(text: str, problem: str) -> None:
    with pytest.raises(RowsProblem, match=problem):
        read_rows(text)


@pytest.mark.parametrize(
    "text",
    [
        "A" + " " * 16_000 + "X",
        "A" + "\t" * 8_000 + "-" + " " * 8_000 + "B" + " " * 8_000 + "X",
        "A 20 |" + " " * 16_000 + "X",
        "A 20 | 1" + " ," * 8_000 + "X",
        "A 20 | 1" + " 1" * 8_000 + "X",
        "A" * 30_000 + "-" + "B" * 30_000,
        "1-100 1\n" * 8_000,
        "A 1\n" * 12_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_no_text_that_fits_into_a_form_keeps_the_process_from_its_other_requests(text: str) -> None:
    started = time.process_time()
    with pytest.raises(RowsProblem):
        read_rows(text)
    assert time.process_time() - started < 0.5


_LABELS = st.one_of(
    st.sampled_from(string.ascii_uppercase),
    st.integers(0, 150).map(str),
    st.text(string.ascii_uppercase + string.digits, min_size=1, max_size=4),
)


@st.composite
def _halls(draw: st.DrawFn) -> list[SeatRow]:
    rows = []
    for label in draw(st.lists(_LABELS, unique=True, min_size=1, max_size=50)):
        seats = draw(st.integers(1, 100))
        aisles = draw(st.sets(st.integers(1, seats - 1), max_size=3)) if seats > 1 else set()
        rows.append(row(label, seats, *sorted(aisles)))
    return rows


@given(_halls())
def test_what_is_shown_of_a_hall_is_read_as_the_same_hall(rows: list[SeatRow]) -> None:
    assert read_rows(rows_text(rows)) == rows


def test_rows_alike_share_a_line() -> None:
    rows = [row("A", 5), row("B", 5), row("C", 6), row("9", 5), row("10", 5), row("12", 5), row("VIP", 5)]
    assert rows_text(rows) == "A-B 5\nC 6\n9-10 5\n12 5\nVIP 5"


@dataclass(frozen=True)
class _Seat:
    row: str
    number: str
    aisle_after: bool = False


def test_a_hall_that_exists_is_shown_as_it_would_be_written() -> None:
    seats = [_Seat("A", "1"), _Seat("A", "2", aisle_after=True), _Seat("A", "3"), _Seat("B", "1")]
    assert rows_of(seats) == [row("A", 3, 2), row("B", 1)]


@pytest.mark.parametrize(
    "seats",
    [
        [_Seat("A", "1"), _Seat("A", "3")],
        [_Seat("A", "2")],
        [_Seat("A", "X")],
        [_Seat("", "1")],
        [_Seat("A", "1"), _Seat("B", "1"), _Seat("A", "2")],
        [_Seat("A-B", "1")],
    ],
)
def test_a_hall_that_cannot_be_written_so_is_not_shown_so(seats: list[_Seat]) -> None:
    assert rows_of(seats) is None


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("25", "EUR", 2500),
        ("25.5", "EUR", 2550),
        (" 25,50 ", "EUR", 2550),
        ("0", "EUR", 0),
        ("0.", "EUR", 0),
        ("1500", "JPY", 1500),
        ("1.234", "KWD", 1234),
        ("1.2345", "UYW", 12345),
        ("999999999", "EUR", 99999999900),
    ],
)
def test_amounts_are_read_in_the_currencys_own_digits(text: str, currency: str, minor: int) -> None:
    assert read_amount(text, currency) == minor
    assert read_amount(amount_input(minor, currency), currency) == minor


@pytest.mark.parametrize(
    ("text", "currency", "problem"),
    [
        ("", "EUR", "such as 25.00"),
        ("free", "EUR", "0 is free"),
        ("-1", "EUR", "such as 25.00"),
        ("1e3", "EUR", "such as 25.00"),
        ("1,234.50", "EUR", "such as 25.00"),
        ("٢٥", "EUR", "such as 25.00"),
        ("25.505", "EUR", "EUR has 2 digits"),
        ("25.5", "JPY", "JPY has no digits.*such as 25"),
        ("1" * 12, "EUR", "such as 25.00"),
    ],
)
def test_amounts_that_are_none_say_how_to_write_one(text: str, currency: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_amount(text, currency)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "  =1", "\uff1d1"])
def test_a_cell_that_would_be_a_formula_is_text(cell: str) -> None:
    assert defused(cell) == f"'{cell}"


@given(st.text(";|,\"' =+-@\uff1d1a", max_size=12))
@example("a;=1+1;b")
@example('a"; "=1')
def test_no_cell_is_a_formula_whichever_separator_a_spreadsheet_parts_the_line_at(name: str) -> None:
    line = io.StringIO()
    csv.writer(line).writerow(["1", defused(name), "2"])

    for separator in ",;|":
        for cells in (line.getvalue().split(separator), *csv.reader([line.getvalue()], delimiter=separator)):
            # Programs drop what stands around a cell before they look at it.
            assert not [cell for cell in cells if cell.strip(' \r\n"').startswith(tuple("=+-@\uff1d"))], cells


@pytest.mark.parametrize(
    "cell", ["", "Ada", "O'Neil", "a=1", "1-2", "ada@example.org", "2026-12-31T20:00:00Z", "Ada; Bo", "a|b"]
)
def test_any_other_cell_stays_as_it_is(cell: str) -> None:
    assert defused(cell) == cell


_FIRST = date(2026, 3, 1)


@given(st.dictionaries(st.integers(0, 500), st.integers(1, 1000), min_size=1))
def test_the_bars_of_a_plot_hold_each_sold_seat_once_and_no_day_is_left_out(sold: dict[int, int]) -> None:
    days = [(_FIRST + timedelta(days=offset), seats) for offset, seats in sorted(sold.items())]

    steps = sales_plot.bars(days)

    assert sum(seats for *_, seats in steps) == sum(sold.values())
    assert len(steps) <= sales_plot.MAX_BARS
    assert steps[-1][1] == days[-1][0]
    assert steps[0][0] <= days[0][0]
    for (_, last, _), (first, _, _) in pairwise(steps):
        assert first == last + timedelta(days=1)


@pytest.mark.parametrize("size", [sales_plot.WIDE, sales_plot.NARROW])
@pytest.mark.parametrize("sold", [[], [(_FIRST, 1)], [(_FIRST + timedelta(days=n), n * n) for n in range(400)]])
def test_a_plot_is_a_picture_that_runs_loads_and_betrays_nothing(
    sold: list[tuple[date, int]], size: sales_plot.Size
) -> None:
    picture = sales_plot.draw(sold, size=size)

    ElementTree.fromstring(picture)  # noqa: S314 - our own
    assert b"<script" not in picture
    assert b"<!--" not in picture
    assert not re.search(rb"(href|src)\s*=|url\(|@import|onclick", picture)
    assert picture == sales_plot.draw(sold, size=size)
    assert f'viewBox="0 0 {size.width} {size.height}"'.encode() in picture
    assert len(picture) < 40_000


def test_the_scale_of_a_plot_counts_in_whole_seats() -> None:
    picture = sales_plot.draw([(_FIRST, 3)]).decode()
    assert re.findall(r">([0-9.,]+)<", picture)[:4] == ["0", "1", "2", "3"]


def test_after_drawing_modules_and_distributions_are_found_as_before() -> None:
    program = """
import importlib.metadata
import sys
from datetime import date
from minitickets_api.pages.organiser import sales_plot
assert sales_plot.draw([(date(2026, 3, 1), 4)]).startswith(b"<?xml")
assert not [finder for finder in sys.meta_path if "pygal" in type(finder).__module__], sys.meta_path
import wave  # a module that is not there yet: an old finder would be warned of
assert importlib.metadata.version("asyncpg")
"""
    # A process of its own: here it may have been imported before.
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
