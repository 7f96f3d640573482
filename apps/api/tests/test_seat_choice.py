"""Which of the seats that somebody chose are still to be had."""

import time

import pytest

from minitickets_api.pages.events import still_free
from minitickets_api.procedures.events import Seat

pytestmark = pytest.mark.unit


def hall(seats: int, *, sold: frozenset[int]) -> list[Seat]:
    return [
        Seat(name=f"A-{number}", row="A", number=str(number), is_taken=number in sold, aisle_after=False)
        for number in range(1, seats + 1)
    ]


def test_a_choice_is_told_apart_into_what_is_free_and_what_was_sold_in_the_order_of_the_hall() -> None:
    seats = hall(6, sold=frozenset({2, 5}))

    assert still_free(seats, ["A-5", "A-3", "A-1", "A-3", "A-2", "Z-1", ""]) == (["A-1", "A-3"], ["A-2", "A-5"])
    assert still_free(seats, []) == ([], [])


def test_a_form_that_chooses_thousands_of_sold_seats_does_not_keep_the_process_from_its_other_requests() -> None:
    seats = hall(5_000, sold=frozenset(range(1, 5_001)))
    chosen = [f"A-{number}" for number in range(1, 6_001)]

    started = time.process_time()
    kept, lost = still_free(seats, chosen)

    assert time.process_time() - started < 0.25
    assert (kept, len(lost)) == ([], 5_000)
