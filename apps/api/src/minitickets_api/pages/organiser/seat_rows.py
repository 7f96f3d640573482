"""A hall as an organiser writes it down: a line a row, or a line for several rows alike.

``A 20`` is row A with seats 1 to 20; ``B-F 24 | 6 18`` are five rows of 24 seats with an aisle after seat 6 and after
seat 18.
"""

import re
import string
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from minitickets_api.services.seat_rows import MAX_ROWS, MAX_SEATS, MAX_SEATS_PER_ROW, SeatRow

_MAX_LABEL_CHARACTERS = 4  # of the procedure, so that a seat's name with its number has at most 8
# Of a line whose spaces are single: over a run of them, neighbours that both take spaces would try every division.
_LINE = re.compile(
    r"(?P<first>[A-Z0-9]+)(?: ?[-\u2013] ?(?P<last>[A-Z0-9]+))? ?[ :,] ?(?P<seats>[0-9]{1,4})"
    r"(?: ?\| ?(?P<aisles>[0-9]{1,4}(?:[ ,]+[0-9]{1,4})*))?"
)
# Not str.upper, which makes two letters of some.
_CAPITALS = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


class RowsProblem(ValueError):  # noqa: N818 - it is a finding
    """What is wrong with the text, and in which line."""


class PlacedSeat(Protocol):
    """A seat as ``events.byId`` shows it."""

    @property
    def row(self) -> str: ...
    @property
    def number(self) -> str: ...
    @property
    def aisle_after(self) -> bool: ...


def read_rows(text: str) -> list[SeatRow]:
    """The rows that a text describes, in its order. Raises RowsProblem, which names the line."""
    rows: list[SeatRow] = []
    for number, line in enumerate(text.translate(_CAPITALS).splitlines(), start=1):
        written = " ".join(line.split())
        if not written:
            continue
        found = _LINE.fullmatch(written)
        if found is None:
            raise RowsProblem(f"Line {number} cannot be read: write a row and how many seats it has, such as A 20.")
        seats = int(found["seats"])
        aisles = tuple(sorted({int(aisle) for aisle in re.findall(r"[0-9]+", found["aisles"] or "")}))
        if not 1 <= seats <= MAX_SEATS_PER_ROW:
            raise RowsProblem(f"Line {number}: a row has 1 to {MAX_SEATS_PER_ROW} seats.")
        if aisles and not (aisles[0] >= 1 and aisles[-1] < seats):
            raise RowsProblem(f"Line {number}: an aisle is after one of the seats 1 to {seats - 1}.")
        labels = _labels(found["first"], found["last"], line=number)
        rows += [SeatRow(label=label, seats=seats, aisle_after=aisles) for label in labels]
        # At once: a short line makes many rows.
        if len(rows) > MAX_ROWS:
            raise RowsProblem(f"These are {len(rows)} rows by line {number}; a hall has at most {MAX_ROWS}.")
    if not rows:
        raise RowsProblem("Write at least one row, such as A 20.")
    seen: set[str] = set()
    for row in rows:
        if row.label in seen:
            raise RowsProblem(f"Row {row.label} is there twice.")
        seen.add(row.label)
    if (seats := sum(row.seats for row in rows)) > MAX_SEATS:
        raise RowsProblem(f"These are {seats:,} seats; a hall has at most {MAX_SEATS:,}.")
    return rows


def rows_text(rows: Sequence[SeatRow]) -> str:
    """The text that ``read_rows`` reads as ``rows``, in as few lines as that takes."""
    lines: list[str] = []
    # Neighbours alike share a line: a label minus its place is the same for all of a run.
    numbered = list(enumerate(rows))
    for _, group in groupby(numbered, key=lambda entry: _run(entry[0], entry[1])):
        run = [row for _, row in group]
        labels = run[0].label if len(run) == 1 else f"{run[0].label}-{run[-1].label}"
        aisles = f" | {' '.join(map(str, run[0].aisle_after))}" if run[0].aisle_after else ""
        lines.append(f"{labels} {run[0].seats}{aisles}")
    return "\n".join(lines)


def rows_of(seats: Sequence[PlacedSeat]) -> list[SeatRow] | None:
    """The rows of a hall that exists; None if its seats are not numbered from 1 in each row, as a loaded hall's may."""
    rows: list[SeatRow] = []
    for label, group in groupby(seats, key=lambda seat: seat.row):
        placed = list(group)
        if [seat.number for seat in placed] != [str(number) for number in range(1, len(placed) + 1)]:
            return None
        aisles = tuple(int(seat.number) for seat in placed if seat.aisle_after)
        rows.append(SeatRow(label=label, seats=len(placed), aisle_after=aisles))
    try:
        return rows if read_rows(rows_text(rows)) == rows else None
    except RowsProblem:
        return None


def _labels(first: str, last: str | None, *, line: int) -> list[str]:
    if len(first) > _MAX_LABEL_CHARACTERS:
        raise RowsProblem(f"Line {line}: a row's name has at most {_MAX_LABEL_CHARACTERS} letters and figures.")
    if last is None:
        return [first]
    start, end = _place(first), _place(last)
    if start is None or end is None or start[0] != end[0]:
        raise RowsProblem(f"Line {line}: {first} to {last} is no run of letters or numbers, such as A-F or 1-12.")
    places = range(start[1], end[1] + 1)
    if not places:
        raise RowsProblem(f"Line {line}: {first} comes after {last}.")
    if len(places) > MAX_ROWS:
        raise RowsProblem(f"Line {line} has {len(places)} rows; a hall has at most {MAX_ROWS}.")
    return [chr(place) if start[0] == "letters" else str(place) for place in places]


def _place(label: str) -> tuple[str, int] | None:
    """The place of a label among its kind; None for one that has no neighbours."""
    if re.fullmatch(r"[A-Z]", label):
        return "letters", ord(label)
    if re.fullmatch(r"0|[1-9][0-9]{0,3}", label):
        return "numbers", int(label)
    return None


def _run(index: int, row: SeatRow) -> tuple[object, ...]:
    place = _place(row.label)
    return (row.seats, row.aisle_after, *((place[0], place[1] - index) if place else (row.label,)))
