"""User by other user by every page: another's page is the page of what is not there, and one's own shows nobody else's.

The pages come from the site itself, so a new one is asked for too.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

import httpx
import pytest

from apps.api.tests.site_paths import page_paths
from minitickets_contracts import keys
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import ASSETS_BUCKET, TICKETS_TABLE, Person, RunningApi

pytestmark = pytest.mark.integration

SEAT = "A-1"
# What forms send, each to whoever asks for it.
_FORM = {
    "title": "Mine now",
    "venue": "Old Mill",
    "startsAt": "2030-06-01T20:00",
    "timeZone": "Europe/Berlin",
    "rows": "A 20",
    "price": "1.00",
    "currency": "EUR",
    "seat": SEAT,
}


def _names_a_thing(path: str) -> bool:
    return "{bookingId}" in path or "{eventId}" in path


@dataclass(frozen=True, kw_only=True)
class Things:
    """What is somebody's: a published event, a draft, a booking whose ticket is ready, an upload."""

    event: str
    draft: str
    booking: str
    upload: str

    @classmethod
    def nowhere(cls) -> "Things":
        return cls(event=str(uuid4()), draft=str(uuid4()), booking=str(uuid4()), upload=str(uuid4()))

    def fill(self, path: str) -> str:
        """The page's path. Everybody may open a published event's own page: there a draft stands for what is not."""
        event = self.event if path.startswith("/organiser") else self.draft
        names = {"eventId": event, "bookingId": self.booking, "uploadId": self.upload, "seat": SEAT}
        return re.sub(r"\{(\w+)\}", lambda name: names[name[1]], path)

    def hidden_in(self, text: str) -> str:
        """``text`` without the names that whoever asks has given, and what is new in every reply."""
        for name in (self.event, self.draft, self.booking, self.upload):
            text = text.replace(name, "ID")
        return re.sub(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "NEW", text)


class World:
    """Two organisers who have booked a seat too, and somebody who has nothing."""

    def __init__(self, api: RunningApi, emulator: RunningEmulator) -> None:
        self.api, self._emulator = api, emulator
        self.owner_email = f"owner-{uuid4().hex}@example.org"
        self.owner, self.organiser = api.customer(self.owner_email), api.organiser()
        api.sql("update users set is_organiser = true where user_id = $1", self.owner.user_id)
        self.others: Mapping[str, Person] = {"customer": api.customer(), "organiser": self.organiser}
        self.owners, self.own = self._things(self.owner), self._things(self.organiser)

    def _things(self, owner: Person) -> Things:
        event, draft, upload = self.api.event(owner), self.api.event(owner, published=False), str(uuid4())
        reply = owner.book(event, SEAT)
        assert reply.status_code == 200, reply.text
        booking = reply.json()["result"]["data"]["bookingId"]
        s3 = self._emulator.aws("s3")
        s3.put_object(Bucket=ASSETS_BUCKET, Key=keys.ticket_image_key(event, booking, SEAT), Body=b"a picture")
        s3.put_object(Bucket=ASSETS_BUCKET, Key=f"{keys.POSTER_UPLOADS_PREFIX}{event}/{upload}", Body=b"no image")
        item = {
            "userId": owner.user_id,
            "ticketId": f"{booking}:{SEAT}",
            "status": "ready",
            "qrToken": f"mt1.{booking}.mac",
        }
        self._emulator.aws("dynamodb").put_item(
            TableName=TICKETS_TABLE, Item={name: {"S": value} for name, value in item.items()}
        )
        return Things(event=event, draft=draft, booking=booking, upload=upload)

    def state(self) -> dict[str, str]:
        """A digest of each table that a request could change. Of the outbox which messages there are: they are sent
        meanwhile."""
        tables = {name: f"{name}::text" for name in ("events", "seats", "bookings", "booked_seats", "users")}
        tables |= {"idempotency_keys": "idempotency_keys::text", "outbox": "outbox_id::text"}
        digests = " union all ".join(
            f"select '{name}', md5(coalesce(string_agg({row}, '' order by {row}), '')) from {name}"  # noqa: S608 - names of ours, no input
            for name, row in tables.items()
        )
        return dict(self.api.sql(digests))


@pytest.fixture
def world(api_on_aws: RunningApi, emulator: RunningEmulator) -> World:
    return World(api_on_aws, emulator)


def _ask(person: Person, method: str, path: str, booking: str) -> httpx.Response:
    if method == "GET":
        return person.http.get(path)
    return person.http.post(path, data={**_FORM, "bookingId": booking, "idempotencyKey": str(uuid4())})


def _told(reply: httpx.Response, things: Things) -> tuple[int, str, str]:
    location = things.hidden_in(reply.headers.get("location", ""))
    return reply.status_code, location, things.hidden_in(reply.text)


def test_somebody_elses_page_cannot_be_told_from_that_of_what_is_not_there(world: World) -> None:
    wrong: list[tuple[object, ...]] = []
    asked = 0
    before = world.state()
    for method in ("GET", "POST"):
        for path in filter(_names_a_thing, page_paths(method)):
            for who, person in world.others.items():
                nowhere = Things.nowhere()
                theirs = _ask(person, method, world.owners.fill(path), world.owners.booking)
                nothing = _ask(person, method, nowhere.fill(path), nowhere.booking)
                told, of_nothing = _told(theirs, world.owners), _told(nothing, nowhere)
                asked += 1
                if told != of_nothing:
                    wrong.append((method, path, who, told, of_nothing))
                is_led_on = told[0] == 303 and method == "GET" and world.owners.fill(path) != theirs.headers["location"]
                if told[0] not in (403, 404) and not is_led_on:
                    wrong.append((method, path, who, *told))
                if world.state() != before:
                    wrong.append((method, path, who, "it has changed something"))
                    before = world.state()
    assert asked > 40
    assert wrong == []
    # Or the refusals above were about something else.
    for path in filter(_names_a_thing, page_paths("GET")):
        reply = world.owner.http.get(world.owners.fill(path))
        assert reply.status_code in (200, 303), (path, reply.text)


def _pages(things: Things) -> Iterator[str]:
    yield from (things.fill(path) for path in page_paths("GET"))
    yield f"/events/{things.event}"


# Everybody may open these; every other page is for who has logged in.
PUBLIC = {
    "/",
    "/events/{eventId}",
    "/events/{eventId}/book",
    "/register",
    "/login",
    "/logout",
    "/forgot-password",
    "/reset-password",
}


def test_a_stranger_is_led_to_the_login_from_every_page_that_is_not_for_everybody(world: World) -> None:
    before = world.state()
    let_in = []
    for method in ("GET", "POST"):
        for path in set(page_paths(method)) - PUBLIC:
            reply = _ask(world.api.stranger(), method, world.owners.fill(path), world.owners.booking)
            if reply.status_code != 303 or not reply.headers["location"].startswith("/login?next=/"):
                let_in.append((method, path, reply.status_code))
    assert let_in == []
    assert world.state() == before


def test_no_page_of_ones_own_shows_anything_of_anybody_elses(world: World) -> None:
    theirs = world.owners
    marks = (theirs.draft, theirs.booking, theirs.upload, world.owner.user_id, world.owner_email)
    seen, leaks = 0, []
    for path in _pages(world.own):
        for person in (world.organiser, world.others["customer"], world.api.stranger()):
            reply = person.http.get(path)
            seen += reply.status_code == 200
            leaks += [(path, mark) for mark in marks if mark in reply.text]
    assert seen > 25
    assert leaks == []
    # Their own marks are there, or nothing of this proves anything.
    assert world.own.booking in world.organiser.http.get(f"/organiser/events/{world.own.event}/bookings.csv").text
    assert world.owner_email in world.owner.http.get(f"/organiser/events/{theirs.event}/bookings").text


def test_who_is_no_organiser_or_none_any_more_opens_no_page_of_organisers_not_even_of_their_own_events(
    world: World,
) -> None:
    world.api.sql("update users set is_organiser = false where user_id = $1", world.organiser.user_id)
    before = world.state()
    let_in = []
    for method in ("GET", "POST"):
        for path in page_paths(method):
            if path.startswith("/organiser"):
                for who, person in world.others.items():
                    reply = _ask(person, method, world.own.fill(path), world.own.booking)
                    if reply.status_code != 403 or world.own.booking in reply.text:
                        let_in.append((method, path, who, reply.status_code))
    assert let_in == []
    assert world.state() == before
