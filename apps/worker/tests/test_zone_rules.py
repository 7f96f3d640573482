"""The rules of a zone as a calendar file carries them: those of the zone, to the second."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icalendar import TimezoneDaylight, TimezoneStandard

from minitickets_worker.zone_rules import zone_name, zone_of, zone_rules

pytestmark = pytest.mark.unit

Observance = TimezoneStandard | TimezoneDaylight


def observances(zone: tzinfo, year: int) -> list[Observance]:
    rules = zone_rules(zone, year=year)
    found: list[Observance] = [*rules.standard, *rules.daylight]
    return sorted(found, key=lambda observance: observance.DTSTART)


def offset_by_the_rules(found: list[Observance], moment: datetime) -> timedelta:
    """As RFC 5545 has it: the observance whose onset, a local time by the offset before it, was the last."""
    offset: timedelta | None = None
    for observance in found:
        if observance.DTSTART.replace(tzinfo=timezone(observance.TZOFFSETFROM)) <= moment:
            offset = observance.TZOFFSETTO
    assert offset is not None, "no rule covers the moment"
    return offset


# Every kind: northern, southern, half-hour changes, none, negative daylight time, a month of Ramadan.
ZONES = [
    "Africa/Casablanca",
    "America/Los_Angeles",
    "America/Santiago",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Kiritimati",
]


@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(ZONES),
    st.datetimes(min_value=datetime(1975, 1, 1), max_value=datetime(2090, 1, 1), timezones=st.just(UTC)),
    st.integers(min_value=-300, max_value=300),
)
def test_at_every_moment_of_the_year_before_to_the_year_after_the_rules_give_the_zones_own_offset(
    name: str, event: datetime, days: int
) -> None:
    zone = ZoneInfo(name)
    moment = event + timedelta(days=days)
    found = observances(zone, event.astimezone(zone).year)
    assert offset_by_the_rules(found, moment) == moment.astimezone(zone).utcoffset()


@pytest.mark.parametrize("name", ZONES)
def test_around_each_change_the_rules_are_right_to_the_second(name: str) -> None:
    zone = ZoneInfo(name)
    found = observances(zone, 2026)
    for observance in found[1:]:
        onset = observance.DTSTART.replace(tzinfo=timezone(observance.TZOFFSETFROM))
        for moment in (onset - timedelta(seconds=1), onset):
            assert offset_by_the_rules(found, moment) == moment.astimezone(zone).utcoffset()


def test_a_change_is_told_by_the_local_time_before_it() -> None:
    """As in the example of RFC 5545, section 3.6.5."""
    spring, autumn = [found for found in observances(ZoneInfo("America/New_York"), 2007) if found.DTSTART.year == 2007]
    assert (spring.name, spring.DTSTART) == ("DAYLIGHT", datetime(2007, 3, 11, 2))
    assert (timedelta(hours=-5), timedelta(hours=-4)) == (spring.TZOFFSETFROM, spring.TZOFFSETTO)
    assert (autumn.name, autumn.DTSTART) == ("STANDARD", datetime(2007, 11, 4, 2))
    assert str(autumn["TZNAME"]) == "EST"


@pytest.mark.parametrize(
    ("name", "starts_at"),
    [
        ("America/Los_Angeles", "2026-12-31T20:00:00-08:00"),
        ("Europe/Berlin", "2026-03-29T03:30:00+02:00"),  # the first hour after the gap
        ("Europe/Berlin", "2026-03-29T02:30:00+01:00"),  # in the gap: as calendars read it
        ("Europe/Berlin", "2026-10-25T02:30:00+02:00"),  # the first of two
        ("Asia/Kathmandu", "2026-06-01T19:00:00+05:45"),
        ("Africa/Abidjan", "2026-06-01T19:00:00+00:00"),
    ],
)
def test_a_known_zone_that_agrees_with_the_message_is_used(name: str, starts_at: str) -> None:
    assert zone_of(name, datetime.fromisoformat(starts_at)) == ZoneInfo(name)


@pytest.mark.parametrize("name", ["UTC", "Etc/UTC", "Etc/Zulu"])
def test_utc_is_utc_under_each_of_its_names(name: str) -> None:
    assert zone_of(name, datetime.fromisoformat("2026-06-01T19:00:00+00:00")) is UTC


@pytest.mark.parametrize(
    ("name", "starts_at", "fallback"),
    [
        ("Mars/Olympus_Mons", "2026-06-01T19:00:00+01:30", "UTC+0130"),
        ("Europe", "2026-06-01T19:00:00+02:00", "UTC+0200"),  # a folder of zones
        ("europe/berlin", "2026-06-01T19:00:00+03:00", "UTC+0300"),
        ("Europe/Berlin", "2026-06-01T19:00:00+05:00", "UTC+0500"),  # another rule than this machine's
        ("Europe/Berlin", "2026-10-25T02:30:00+01:00", "UTC+0100"),  # the second of two equal times
        ("UTC", "2026-06-01T19:00:00-08:00", "UTC-0800"),
        ("Europe/Berlin", "0001-01-01T00:00:00+00:53", "UTC+0053"),
        ("Europe/Berlin", "9999-12-31T23:59:59+01:00", "UTC+0100"),
    ],
)
def test_where_the_zone_cannot_say_what_the_message_says_its_plain_offset_is_used(
    name: str, starts_at: str, fallback: str
) -> None:
    start = datetime.fromisoformat(starts_at)
    zone = zone_of(name, start)
    assert zone_name(zone) == fallback
    [observance] = observances(zone, start.year)
    assert observance.TZOFFSETFROM == observance.TZOFFSETTO == start.utcoffset()
    assert start.replace(tzinfo=None) >= observance.DTSTART


def test_the_rules_of_every_zone_can_be_written() -> None:
    start = datetime(2026, 7, 1, 20, tzinfo=UTC)
    for name in sorted(available_timezones()):
        zone = zone_of(name, start.astimezone(ZoneInfo(name)))
        rules = zone_rules(zone, year=2026)
        assert len(rules.to_ical().decode("ascii")) < 3_000, name
