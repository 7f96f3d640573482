"""One date everywhere: page, mail, calendar file, printed ticket and ticket item tell the same time of the same clocks.

What is expected is written out, not computed: whatever turns a moment into a date here could be wrong there as well.
"""

import base64
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from icalendar import Calendar

from local.processes import wait_until
from local.seeding import organiser, seed
from local.visitor import ApiRefusedError
from tests.fixtures.platform import Customer, RunningPlatform
from tests.fixtures.printed_pdf import read_pdf

pytestmark = pytest.mark.e2e

_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Start:
    """What the organiser types, and what everybody reads then."""

    typed: str
    time_zone: str
    starts_at: str
    day: str
    clock: str
    offset: str

    @property
    def zone(self) -> str:
        return f"{self.time_zone}, UTC{self.offset}"


NEW_YEARS_EVE = Start(  # 2027 already for a clock that shows UTC
    typed="2026-12-31T20:00",
    time_zone="America/Los_Angeles",
    starts_at="2026-12-31T20:00:00-08:00",
    day="Thursday, 31 December 2026",
    clock="20:00",
    offset="-08:00",
)
FAR_EAST = Start(  # still 2026 for a clock that shows UTC, and fourteen hours ahead of it
    typed="2027-01-01T00:00",
    time_zone="Pacific/Kiritimati",
    starts_at="2027-01-01T00:00:00+14:00",
    day="Friday, 1 January 2027",
    clock="00:00",
    offset="+14:00",
)
AFTER_A_GAP = Start(  # 01:59 is followed by 03:00 on that night
    typed="2027-03-14T03:00",
    time_zone="America/New_York",
    starts_at="2027-03-14T03:00:00-04:00",
    day="Sunday, 14 March 2027",
    clock="03:00",
    offset="-04:00",
)
BEFORE_A_GAP = Start(  # of half an hour
    typed="2027-10-03T01:59",
    time_zone="Australia/Lord_Howe",
    starts_at="2027-10-03T01:59:00+10:30",
    day="Sunday, 3 October 2027",
    clock="01:59",
    offset="+10:30",
)
TWICE = Start(  # the clock shows it a second time an hour later
    typed="2027-10-31T02:30",
    time_zone="Europe/Berlin",
    starts_at="2027-10-31T02:30:00+02:00",
    day="Sunday, 31 October 2027",
    clock="02:30",
    offset="+02:00",
)
PAST_NOON = Start(  # a zone east of UTC+12, with its quarter of an hour
    typed="2027-01-15T12:15",
    time_zone="Pacific/Chatham",
    starts_at="2027-01-15T12:15:00+13:45",
    day="Friday, 15 January 2027",
    clock="12:15",
    offset="+13:45",
)
STARTS = {
    "New Year's Eve": NEW_YEARS_EVE,
    "far east": FAR_EAST,
    "after a gap": AFTER_A_GAP,
    "before a gap": BEFORE_A_GAP,
    "an hour that comes twice": TWICE,
    "past UTC+12": PAST_NOON,
}


class Host:
    """An organiser, who makes events and moves them."""

    def __init__(self, platform: RunningPlatform) -> None:
        account = organiser(f"organiser-{uuid.uuid4().hex}@example.org")
        seed(platform.session, {"accounts": [account], "events": []})
        self._visitor = platform.visitor()
        self._visitor.login(email=account["email"], password=account["password"])

    def make(self, start: Start) -> str:
        """A published event's id."""
        made = self._do(
            "events.create",
            title="One date",
            venue="Old Mill",
            startsAt=start.typed,
            timeZone=start.time_zone,
            rows=[{"label": "A", "seats": 4}],
            priceMinor=1200,
            currency="EUR",
        )
        self._do("events.publish", eventId=made["eventId"])
        return str(made["eventId"])

    def move(self, event_id: str, start: Start) -> None:
        self._do("events.update", eventId=event_id, startsAt=start.typed, timeZone=start.time_zone)

    def _do(self, procedure: str, **values: Any) -> dict[str, Any]:
        done: dict[str, Any] = self._visitor.mutate(procedure, {**values, "idempotencyKey": str(uuid.uuid4())})
        return done


@pytest.fixture(scope="module")
def host(platform: RunningPlatform) -> Host:
    return Host(platform)


@pytest.fixture
def browser(platform: RunningPlatform) -> Iterator[httpx.Client]:
    """Somebody's browser, without script."""
    with httpx.Client(base_url=platform.api_url, timeout=20, trust_env=False) as client:
        yield client


class _Words(HTMLParser):
    """What a person reads of a page, and the machine-readable times in it."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.times: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "time":
            self.times.append(dict(attrs)["datetime"])

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_page_shows(browser: httpx.Client, path: str, start: Start) -> None:
    reply = browser.get(path)
    assert reply.status_code == 200, reply.text
    words = _Words()
    words.feed(reply.text)
    assert f"{start.day}, {start.clock} ({start.zone})" in " ".join(words.text.split()), path
    assert start.starts_at in words.times, path


def assert_mail_says(mail: dict[str, Any], start: Start, *, sequence: int, booking_id: str) -> None:
    """The mail in both its twins, and its calendar file."""
    said = f"{start.day}, {start.clock} ({start.zone})"
    assert said in mail["text"]
    assert said in mail["html"]
    [attachment] = mail["attachments"]
    content = base64.b64decode(attachment["base64"])
    assert f"DTSTART;TZID={start.time_zone}:{start.typed.replace('-', '').replace(':', '')}00\r\n".encode() in content
    calendar = Calendar.from_ical(content)
    [entry] = calendar.events
    assert (entry["uid"], entry["sequence"]) == (f"{booking_id}@minitickets", sequence)
    begins = entry.DTSTART
    assert isinstance(begins, datetime)
    assert begins.isoformat() == start.starts_at
    # The file's own rules have the offset too, whatever the reader's calendar knows of the zone.
    [zone] = calendar.timezones
    assert zone["tzid"] == start.time_zone
    assert start.offset.replace(":", "") in {part["tzoffsetto"].to_ical() for part in (*zone.standard, *zone.daylight)}


def assert_print_says(browser: httpx.Client, booking_id: str, start: Start) -> None:
    def is_printed() -> bool:
        # A busy machine may turn the first one away, which loads the library: as it says, one tries again.
        return browser.get(f"/tickets/{booking_id}.pdf").status_code == 200

    wait_until("the ticket is printed", is_printed, seconds=_SECONDS)
    [page] = read_pdf(browser.get(f"/tickets/{booking_id}.pdf").content)
    assert f"{start.day}, {start.clock}\n{start.zone}\n" in page.text


def stored_ticket(platform: RunningPlatform, booking_id: str) -> dict[str, str]:
    """The ticket item, its numbers as text too."""
    [owner] = platform.rows("select user_id::text from bookings where booking_id = $1::text::uuid", booking_id)
    key = {"userId": {"S": owner["user_id"]}, "ticketId": {"S": f"{booking_id}:A-1"}}
    found = platform.aws("dynamodb").get_item(TableName=platform.outputs["ticketsTable"], Key=key, ConsistentRead=True)
    return {name: str(next(iter(value.values()))) for name, value in found.get("Item", {}).items()}


def wait_until_moved(platform: RunningPlatform, booking_id: str, sequence: int) -> None:
    def has_moved() -> bool:
        return stored_ticket(platform, booking_id)["eventSequence"] == str(sequence)

    wait_until(f"the ticket follows move {sequence}", has_moved, seconds=_SECONDS)


def assert_item_says(platform: RunningPlatform, booking_id: str, start: Start) -> None:
    item = stored_ticket(platform, booking_id)
    assert (item["eventStartsAt"], item["timeZone"]) == (start.starts_at, start.time_zone)
    assert item["eventDate"] == start.typed[:10]
    assert item["eventDateKey"] == f"{start.starts_at}#{booking_id}:A-1"
    found = platform.aws("dynamodb").query(
        TableName=platform.outputs["ticketsTable"],
        IndexName="by-event-date",
        KeyConditionExpression="eventDate = :date AND begins_with(eventDateKey, :start)",
        ExpressionAttributeValues={":date": {"S": start.typed[:10]}, ":start": {"S": start.starts_at}},
    )
    assert f"{booking_id}:A-1" in [each["ticketId"]["S"] for each in found["Items"]]


def log_in(browser: httpx.Client, customer: Customer) -> None:
    reply = browser.post("/login", data={"email": customer.email, "password": customer.password, "next": "/tickets"})
    assert reply.status_code == 303, reply.text


def assert_everything_says(
    platform: RunningPlatform,
    browser: httpx.Client,
    *,
    mail: dict[str, Any],
    event_id: str,
    booking_id: str,
    start: Start,
    sequence: int,
) -> None:
    for path in (f"/events/{event_id}", f"/bookings/{booking_id}", "/bookings", "/tickets"):
        assert_page_shows(browser, path, start)
    assert_mail_says(mail, start, sequence=sequence, booking_id=booking_id)
    assert_print_says(browser, booking_id, start)
    assert_item_says(platform, booking_id, start)


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_everything_shows_the_same_date_and_the_clock_at_the_venue(
    platform: RunningPlatform, host: Host, browser: httpx.Client, start: Start
) -> None:
    event_id = host.make(start)
    customer = platform.register()

    booking_id = customer.visitor.book(event_id=event_id, seats=["A-1"])["bookingId"]
    platform.wait_for_tickets(customer.visitor, count=1)
    [mail] = platform.wait_for_mails(to=customer.email)

    log_in(browser, customer)
    assert_everything_says(
        platform, browser, mail=mail, event_id=event_id, booking_id=booking_id, start=start, sequence=0
    )


def test_everything_follows_an_event_that_moves_twice_over_the_date_line(
    platform: RunningPlatform, host: Host, browser: httpx.Client
) -> None:
    event_id = host.make(NEW_YEARS_EVE)
    customer = platform.register()
    booking_id = customer.visitor.book(event_id=event_id, seats=["A-1"])["bookingId"]
    platform.wait_for_tickets(customer.visitor, count=1)
    before = stored_ticket(platform, booking_id)
    log_in(browser, customer)

    for sequence, start in ((1, FAR_EAST), (2, AFTER_A_GAP)):
        host.move(event_id, start)
        mail = platform.wait_for_mails(to=customer.email, count=1 + sequence)
        wait_until_moved(platform, booking_id, sequence)
        newest = max(mail, key=lambda each: each["acceptedAt"])
        assert_everything_says(
            platform, browser, mail=newest, event_id=event_id, booking_id=booking_id, start=start, sequence=sequence
        )

    after = stored_ticket(platform, booking_id)
    assert (after["qrToken"], after["imageKey"], after["status"]) == (before["qrToken"], before["imageKey"], "ready")


@pytest.mark.parametrize(
    ("typed", "time_zone"),
    [("2027-03-14T02:30", "America/New_York"), ("2027-10-03T02:15", "Australia/Lord_Howe")],
)
def test_a_start_that_no_clock_at_the_venue_ever_shows_is_refused(host: Host, typed: str, time_zone: str) -> None:
    never = Start(typed=typed, time_zone=time_zone, starts_at="", day="", clock="", offset="")

    with pytest.raises(ApiRefusedError, match="go forward") as refused:
        host.make(never)

    assert refused.value.code == "BAD_REQUEST"
