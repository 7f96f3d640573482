"""A hall as its organiser describes it: rows of numbered seats, with aisles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_ROWS = 100
MAX_SEATS_PER_ROW = 100
MAX_SEATS = 5_000


@dataclass(frozen=True, kw_only=True)
class SeatRow:
    """``seats`` seats, numbered from 1: row ``A`` has ``A-1``, ``A-2`` and so on. ``aisle_after`` are numbers of seats
    after which people walk."""

    label: str
    seats: int
    aisle_after: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not all(1 <= number < self.seats for number in self.aisle_after):
            raise ValueError(f"aisleAfter: row {self.label} has room for an aisle after seats 1 to {self.seats - 1}")

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        """Each seat's name, and whether an aisle comes after it."""
        aisles = frozenset(self.aisle_after)
        return ((f"{self.label}-{number}", number in aisles) for number in range(1, self.seats + 1))


def check_rows(rows: Sequence[SeatRow]) -> None:
    """Raises ValueError for rows that are no hall together."""
    seen: set[str] = set()
    for row in rows:
        if row.label in seen:
            raise ValueError(f"must not have row {row.label} twice")
        seen.add(row.label)
    if sum(row.seats for row in rows) > MAX_SEATS:
        raise ValueError(f"must have at most {MAX_SEATS} seats together")


def seats_of(rows: Sequence[SeatRow]) -> list[tuple[str, bool]]:
    """All seats in the order in which people read them: each one's name, and whether an aisle comes after it."""
    return [seat for row in rows for seat in row]
