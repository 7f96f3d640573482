"""What a customer reads when a booking's mail is asked for again, its event moves, or it is cancelled."""

import pytest

from apps.worker.tests.mail_reader import Page, twins
from apps.worker.tests.worker_under_test import BOOKING_ID, NOWHERE, SITE, booking, cancelled, moved, requested
from minitickets_worker.booking_mails import (
    compose_cancellation,
    compose_confirmation,
    compose_move,
    compose_repetition,
)

pytestmark = pytest.mark.unit

OLD = "Thursday, 31 December 2026, 20:00 (America/Los_Angeles, UTC-08:00)"
NEW = "Friday, 1 January 2027, 21:00 (America/Los_Angeles, UTC-08:00)"


def test_a_mail_asked_for_again_says_the_same_of_the_booking_and_that_it_was_asked_for() -> None:
    first, again = compose_confirmation(booking(), site=SITE), compose_repetition(requested(booking()), site=SITE)
    assert again.subject == first.subject
    for one, other in zip(twins(first), twins(again), strict=True):
        assert one.replace("your booking is confirmed.", "") == other.replace(
            "here is the mail of your booking again.", ""
        )
        assert one != other


def test_a_moved_date_is_told_beside_the_old_one_and_the_venue_stays_a_fact() -> None:
    mail = compose_move(moved(booking()), site=SITE)
    assert mail.subject == "Changed: Night of Strings"
    assert f"New date: {NEW}\nOld date: {OLD}\nWhere: Hall One\nSeats: A-1, A-2, B-12\n" in mail.text
    for text in twins(mail):
        assert "your event has another date." in text
        assert text.index(NEW) < text.index(OLD)
        assert "Your seats and your tickets stay valid." in text
        assert "venue" not in text
        assert BOOKING_ID in text


def test_a_moved_venue_is_told_beside_the_old_one_and_the_date_stays_a_fact() -> None:
    of = booking()
    mail = compose_move(moved(of, starts_at=of.event.starts_at, venue="Open Air"), site=SITE)
    assert f"When: {OLD}\nNew venue: Open Air\nOld venue: Hall One\n" in mail.text
    for text in twins(mail):
        assert "your event has another venue." in text
        assert "Old date" not in text


def test_a_moved_date_and_venue_are_both_told() -> None:
    for text in twins(compose_move(moved(booking(), venue="Open Air"), site=SITE)):
        assert "your event has another date and another venue." in text
        for fact in (NEW, OLD, "Open Air", "Hall One"):
            assert fact in text


def test_another_zone_at_the_same_time_on_the_clock_is_another_date() -> None:
    mail = compose_move(moved(booking(), starts_at="2026-12-31T20:00:00-07:00", time_zone="America/Denver"), site=SITE)
    assert "New date: Thursday, 31 December 2026, 20:00 (America/Denver, UTC-07:00)\n" in mail.text
    assert f"Old date: {OLD}\n" in mail.text


def test_of_mails_that_overtook_one_another_the_reader_can_tell_the_latest() -> None:
    for text in twins(compose_move(moved(booking()), site=SITE)):
        assert "Changed on 29 November 2026, 12:00 UTC." in text
        assert "the latest change counts" in text


@pytest.mark.parametrize(
    ("seats", "named", "told"),
    [
        (("A-1",), "Seat: A-1", "its ticket is void"),
        (("A-1", "A-2"), "Seats: A-1, A-2", "their tickets are void"),
    ],
)
def test_a_cancellation_names_the_seats_and_says_that_their_tickets_are_void(
    seats: tuple[str, ...], named: str, told: str
) -> None:
    mail = compose_cancellation(cancelled(booking(seats=seats)), site=SITE)
    assert mail.subject == "Cancelled: Night of Strings"
    assert named in mail.text
    for text in twins(mail):
        assert "your booking is cancelled." in text
        assert told in text
        assert "30 November 2026, 08:15 UTC" in text
        assert OLD in text
        assert BOOKING_ID in text


def test_a_cancellation_sends_nobody_to_tickets_that_are_void() -> None:
    mail = compose_cancellation(cancelled(booking()), site=SITE)
    assert Page(mail.html).links == []
    assert "Your tickets are at" not in mail.text


def test_without_a_public_address_no_mail_links_anywhere() -> None:
    of = booking()
    for mail in (
        compose_repetition(requested(of), site=NOWHERE),
        compose_move(moved(of), site=NOWHERE),
        compose_cancellation(cancelled(of), site=NOWHERE),
    ):
        assert "http" not in mail.text
        assert "http" not in mail.html
        assert b"http" not in mail.attachments[0].content
