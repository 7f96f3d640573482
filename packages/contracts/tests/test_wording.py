"""How a start and an amount read."""

import pytest

from minitickets_contracts.wording import amount_text, start_text

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("starts_at", "zone", "text"),
    [
        (
            "2026-12-31T20:00:00-08:00",
            "America/Los_Angeles",
            "Thursday, 31 December 2026, 20:00 (America/Los_Angeles, UTC-08:00)",
        ),
        (
            "2027-01-01T00:30:00+14:00",
            "Pacific/Kiritimati",
            "Friday, 1 January 2027, 00:30 (Pacific/Kiritimati, UTC+14:00)",
        ),
    ],
)
def test_a_start_reads_as_the_venues_own_date_and_names_its_clocks(starts_at: str, zone: str, text: str) -> None:
    assert start_text(starts_at, zone) == text


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (123450, "USD", "USD 1,234.50"),
        (5, "EUR", "EUR 0.05"),
        (1234, "JPY", "JPY 1,234"),
        (1005, "KWD", "KWD 1.005"),
        (10001, "CLF", "CLF 1.0001"),
    ],
)
def test_an_amount_has_as_many_digits_as_its_currency(minor: int, currency: str, text: str) -> None:
    assert amount_text(minor, currency) == text
