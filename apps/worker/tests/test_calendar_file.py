"""The calendar file of a booking: one entry that later files replace, on the date that the mail names."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.worker.tests.mail_reader import calendar_bytes, calendar_of, calendar_start, entry_of, shown_start, twins
from apps.worker.tests.worker_under_test import (
    BOOKING_ID,
    NOWHERE,
    SENDER,
    SITE,
    booking,
    cancelled,
    moved,
    requested,
)
from minitickets_contracts.keys import event_date
from minitickets_worker.booking_mails import (
    compose_cancellation,
    compose_confirmation,
    compose_move,
    compose_repetition,
)
from minitickets_worker.mail import Mail

pytestmark = pytest.mark.unit


def life() -> list[Mail]:
    """The mails of one booking, in the order in which things happened."""
    of = booking()
    return [
        compose_confirmation(of, site=SITE),
        compose_repetition(requested(of), site=SITE),
        compose_move(moved(of, sequence=1), site=SITE),
        compose_move(moved(of, sequence=2), site=SITE),
        compose_cancellation(cancelled(of, sequence=2), site=SITE),
    ]


def test_the_entry_tells_event_venue_seats_and_booking() -> None:
    entry = entry_of(compose_confirmation(booking(), site=SITE))
    assert str(entry["SUMMARY"]) == "Night of Strings"
    assert str(entry["LOCATION"]) == "Hall One"
    assert str(entry["DESCRIPTION"]) == f"Seats: A-1, A-2, B-12\nBooking {BOOKING_ID}"
    assert str(entry["URL"]) == f"https://tickets.example.org/bookings/{BOOKING_ID}"
    assert str(entry["ORGANIZER"]) == f"mailto:{SENDER}"
    assert datetime.fromisoformat("2026-12-31T20:00:00-08:00") == entry.DTSTART


def test_nobody_is_asked_for_an_answer_and_the_customers_address_is_not_in_the_file() -> None:
    for mail in life():
        content = calendar_bytes(mail)
        assert b"ATTENDEE" not in content
        assert b"ada@" not in content


def test_without_a_public_address_the_file_links_nowhere() -> None:
    assert "URL" not in entry_of(compose_confirmation(booking(), site=NOWHERE))


def test_all_files_of_a_booking_are_about_one_entry() -> None:
    assert {str(entry_of(mail)["UID"]) for mail in life()} == {f"{BOOKING_ID}@minitickets"}


def test_each_move_and_the_cancellation_outrank_what_was_sent_before() -> None:
    sequences = [entry_of(mail).sequence for mail in life()]
    assert sequences == [0, 0, 1, 2, 3]


def test_a_cancellation_of_an_event_that_never_moved_outranks_its_confirmation() -> None:
    assert entry_of(compose_cancellation(cancelled(booking()), site=SITE)).sequence == 1


def test_the_type_of_the_file_repeats_its_method() -> None:
    for mail in life():
        method = str(calendar_of(mail)["METHOD"])
        assert mail.attachments[0].content_type == f"text/calendar; method={method}; charset=utf-8"
    assert [str(calendar_of(mail)["METHOD"]) for mail in life()] == ["PUBLISH"] * 4 + ["CANCEL"]
    assert [str(entry_of(mail)["STATUS"]) for mail in life()] == ["CONFIRMED"] * 4 + ["CANCELLED"]


def test_the_file_is_dated_by_what_happened_not_by_the_clock() -> None:
    for mail in life():
        assert datetime(2026, 11, 29, 12, tzinfo=UTC) == entry_of(mail).DTSTAMP


def test_the_file_is_called_booking_ics() -> None:
    assert {mail.attachments[0].file_name for mail in life()} == {"booking.ics"}


DATES = [
    pytest.param("America/Los_Angeles", "2026-12-31T20:00:00-08:00", id="New Year is begun in UTC"),
    pytest.param("Pacific/Kiritimati", "2027-01-01T00:00:00+14:00", id="New Year is not begun in UTC"),
    pytest.param("Europe/Berlin", "2027-01-01T00:00:00+01:00", id="midnight of New Year"),
    pytest.param("Europe/Berlin", "2026-03-29T03:30:00+02:00", id="just after the gap of spring"),
    pytest.param("Europe/Berlin", "2026-03-29T01:59:59+01:00", id="just before the gap of spring"),
    pytest.param("Europe/Berlin", "2026-03-29T02:30:00+01:00", id="in the gap of spring"),
    pytest.param("Europe/Berlin", "2026-10-25T02:30:00+02:00", id="the first of two equal times"),
    pytest.param("Europe/Berlin", "2026-10-25T02:30:00+01:00", id="the second of two equal times"),
    pytest.param("Australia/Lord_Howe", "2026-10-04T02:45:00+11:00", id="a gap of half an hour"),
    pytest.param("Asia/Kathmandu", "2026-06-01T00:10:00+05:45", id="three quarters of an hour"),
    pytest.param("UTC", "2026-12-31T23:59:59+00:00", id="UTC"),
    pytest.param("Mars/Olympus_Mons", "2026-12-31T23:30:00-03:30", id="an unknown zone"),
    pytest.param("Europe/Berlin", "2026-06-01T23:00:00+09:00", id="a rule that changed since"),
]


@pytest.mark.parametrize(("time_zone", "starts_at"), DATES)
def test_text_page_and_calendar_show_one_date_one_time_and_one_moment(time_zone: str, starts_at: str) -> None:
    mail = compose_confirmation(booking(time_zone=time_zone, starts_at=starts_at), site=SITE)
    start = datetime.fromisoformat(starts_at)
    date = datetime.fromisoformat(event_date(starts_at))
    for text in twins(mail):
        assert f"{date:%A}, {date.day} {date:%B} {date.year}, {starts_at[11:16]} " in text
        assert f" ({time_zone}, UTC{starts_at[-6:]})" in text
    entry = entry_of(mail)
    value = entry["DTSTART"]
    assert shown_start(mail) == f"{start:%Y%m%dT%H%M%S}"
    # In UTC: Python calls no time equal that its zone has twice, or not at all.
    assert calendar_start(mail).astimezone(UTC) == start.astimezone(UTC)
    named = [str(zone["TZID"]) for zone in calendar_of(mail).timezones]
    assert named == ([] if time_zone == "UTC" else [value.params["TZID"]])


@settings(deadline=None)
@given(
    st.datetimes(),
    st.integers(min_value=-14 * 60, max_value=14 * 60),
    st.sampled_from(["Europe/Berlin", "UTC", "Nowhere/Land", "Europe", "America/Argentina/Ushuaia"]),
)
def test_no_start_that_a_message_may_carry_is_poison(start: datetime, offset_minutes: int, time_zone: str) -> None:
    hours, minutes = divmod(abs(offset_minutes), 60)
    sign = "-" if offset_minutes < 0 else "+"
    starts_at = f"{start.replace(microsecond=0).isoformat()}{sign}{hours:02}:{minutes:02}"
    mail = compose_confirmation(booking(starts_at=starts_at, time_zone=time_zone), site=SITE)
    assert shown_start(mail) == starts_at[:19].replace("-", "").replace(":", "")


texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=200).filter(
    lambda text: text.strip() != ""
)


@settings(deadline=None)
@given(texts, texts)
def test_any_title_and_venue_arrive_whole_on_lines_that_calendars_can_read(title: str, venue: str) -> None:
    mail = compose_move(moved(booking(title=title, venue=venue)), site=SITE)
    content = calendar_bytes(mail)
    entry = entry_of(mail)
    assert str(entry["SUMMARY"]) == title
    assert str(entry["LOCATION"]) == venue
    for line in content.split(b"\r\n"):
        assert len(line) <= 75
        assert b"\n" not in line
        assert b"\r" not in line
        line.decode()  # no character is cut in two
    assert content.endswith(b"END:VCALENDAR\r\n")


def test_the_rules_stand_before_the_entry_that_needs_them() -> None:
    for mail in life():
        content = calendar_bytes(mail)
        parts = [content.index(part) for part in (b"BEGIN:VTIMEZONE", b"END:VTIMEZONE", b"BEGIN:VEVENT")]
        assert all(one < other for one, other in pairwise(parts))
