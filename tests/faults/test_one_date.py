"""From the organiser's clock to the ticket at the door there is one date, in every zone and at every change of it."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apps.worker.tests.worker_under_test import SITE, booking
from minitickets_api.venue_time import known_zones, local_start, moment_at
from minitickets_contracts.messages import BookingConfirmed
from minitickets_contracts.token import SigningKeys
from minitickets_tickets.ticket import Ticket
from minitickets_worker.booking_mails import compose_confirmation

pytestmark = pytest.mark.faults

KEYS = SigningKeys("k1", {"k1": "key-of-one-date-" + "a" * 32})
ZONES = st.sampled_from(sorted(known_zones()))
CLOCKS = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)).map(
    lambda clock: clock.replace(second=0, microsecond=0)
)


def delivered(starts_at: str, time_zone: str) -> tuple[str, str, str]:
    """What the mail says, the ticket's date and the ticket's start, from a message that went through JSON."""
    sent = booking(starts_at=starts_at, time_zone=time_zone, seats=("A-1",))
    message = BookingConfirmed.from_json(sent.to_json())
    ticket = Ticket.of(message, "A-1", signed_with=KEYS, now=datetime(2026, 1, 1, tzinfo=UTC))
    return compose_confirmation(message, site=SITE).text, ticket.event_date, ticket.event_starts_at


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(clock=CLOCKS, zone=ZONES)
@example(clock=datetime(2026, 11, 1, 1, 30), zone="America/Los_Angeles")  # twice
@example(clock=datetime(2026, 3, 29, 2, 30), zone="Europe/Berlin")  # never
@example(clock=datetime(2011, 12, 30, 12, 0), zone="Pacific/Apia")  # a whole day that never was
@example(clock=datetime(2026, 4, 5, 1, 45), zone="Australia/Lord_Howe")  # half an hour, twice
@example(clock=datetime(2026, 12, 31, 23, 59), zone="Pacific/Kiritimati")
def test_what_the_organiser_wrote_is_what_mail_and_ticket_say(clock: datetime, zone: str) -> None:
    try:
        moment = moment_at(clock, zone)
    except ValueError:
        # Refused, and rightly: no moment shows this.
        around = (clock.replace(tzinfo=UTC) + timedelta(minutes=minutes) for minutes in range(-1_600, 1_600))
        assert all(at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) != clock for at in around)
        return
    stored = moment.astimezone(UTC)  # as Postgres keeps it
    starts_at = local_start(stored, zone)

    text, date, start = delivered(starts_at, zone)

    assert starts_at.startswith(f"{clock.date().isoformat()}T{clock.time().isoformat()}")
    assert (date, start) == (clock.date().isoformat(), starts_at)
    assert f"{clock.day} {clock:%B} {clock.year}, {clock:%H:%M}" in text
    assert zone in text
