"""What the customer reads."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.worker.tests.mail_reader import Page, twins
from apps.worker.tests.worker_under_test import BOOKING_ID, NOWHERE, SITE, booking
from minitickets_contracts.keys import event_date
from minitickets_contracts.wording import amount_text, instant_text, start_text
from minitickets_worker.booking_mails import compose_confirmation

pytestmark = pytest.mark.unit


def test_both_twins_say_event_venue_every_seat_start_with_zone_total_and_booking() -> None:
    mail = compose_confirmation(booking(), site=NOWHERE)
    for text in twins(mail):
        for fact in (
            "Ada Canary",
            "Night of Strings",
            "Hall One",
            "A-1, A-2, B-12",
            "Thursday, 31 December 2026, 20:00 (America/Los_Angeles, UTC-08:00)",
            "USD 177.00",
            BOOKING_ID,
        ):
            assert fact in text


def test_with_a_public_address_both_twins_link_to_the_tickets() -> None:
    mail = compose_confirmation(booking(), site=SITE)
    for text in twins(mail):
        assert "Your tickets are at https://tickets.example.org/tickets\n" in text
    assert Page(mail.html).links == ["https://tickets.example.org/tickets"]


def test_without_a_public_address_the_mail_says_where_to_look_and_links_nowhere() -> None:
    mail = compose_confirmation(booking(), site=NOWHERE)
    assert "http" not in mail.text
    assert Page(mail.html).links == []
    for text in twins(mail):
        assert "You find your tickets where you booked." in text


def test_markup_in_names_titles_and_venues_is_text() -> None:
    plain = Page(compose_confirmation(booking(), site=NOWHERE).html).tags
    evil = "<img src=x onerror=alert(1)>\"'&{subject}"
    page = Page(compose_confirmation(booking(name=evil, title=evil, venue=evil), site=NOWHERE).html)
    assert page.tags == plain
    assert page.text.count(evil) == 4  # the page's title, the greeting, the heading, the venue


@pytest.mark.parametrize("title", ["=?utf-8?q?=0D=0ABcc:_eve=40evil.example?=", "Strings\u3000Night", "  Strings  "])
def test_a_subject_is_one_line_that_nothing_decodes_any_further(title: str) -> None:
    subject = compose_confirmation(booking(title=title), site=NOWHERE).subject
    assert "=?" not in subject
    assert subject == " ".join(subject.split())


def test_names_in_any_script_arrive_as_they_are() -> None:
    mail = compose_confirmation(booking(name="Łukasz 山田 عمر", title="Ночь 🎻"), site=NOWHERE)
    assert mail.subject == "Your booking: Ночь 🎻"
    assert "Łukasz 山田 عمر" in mail.text
    assert "Łukasz 山田 عمر" in Page(mail.html).text


def test_a_mail_does_not_show_itself_in_logs_or_tracebacks() -> None:
    assert "ada" not in repr(compose_confirmation(booking(), site=NOWHERE)).lower()


@settings(deadline=None)
@given(
    zone=st.sampled_from(
        ["America/Los_Angeles", "Asia/Kathmandu", "Pacific/Apia", "Europe/Berlin", "Pacific/Kiritimati"]
    ),
    moment=st.datetimes(
        min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(ZoneInfo("UTC"))
    ),
)
def test_the_mails_date_is_the_date_on_the_door_in_every_zone(zone: str, moment: datetime) -> None:
    local = moment.replace(microsecond=0).astimezone(ZoneInfo(zone))
    starts_at = local.isoformat()
    date = datetime.fromisoformat(event_date(starts_at))
    assert f"{date:%A}, {date.day} {date:%B} {date.year}, {local:%H:%M} ({zone}, UTC{starts_at[-6:]})" == start_text(
        starts_at, zone
    )


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        ("2026-11-29T12:00:00Z", "29 November 2026, 12:00 UTC"),
        ("2026-12-31T20:00:00.999999-08:00", "1 January 2027, 04:00 UTC"),
    ],
)
def test_what_was_done_somewhere_is_told_in_utc(instant: str, text: str) -> None:
    assert instant_text(instant) == text


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (0, "USD", "USD 0.00"),
        (5, "EUR", "EUR 0.05"),
        (123450, "USD", "USD 1,234.50"),
        (1500, "JPY", "JPY 1,500"),
        (1500, "KWD", "KWD 1.500"),
        (10**12, "USD", "USD 10,000,000,000.00"),
    ],
)
def test_a_total_has_the_digits_of_its_currency(minor: int, currency: str, text: str) -> None:
    assert amount_text(minor, currency) == text
