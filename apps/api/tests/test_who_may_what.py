"""User by other user by every procedure: what is somebody else's cannot be told from what is not there."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from minitickets_api.app import registry
from minitickets_api.trpc.registry import Kind
from minitickets_contracts import keys
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import ASSETS_BUCKET, PASSWORD, Person, RunningApi

pytestmark = pytest.mark.integration

PROCEDURES = {procedure.name: procedure for procedure in registry()}


@dataclass(frozen=True, kw_only=True)
class Things:
    """What is somebody's: an event with a sold seat, a draft, the booking, an upload; and the owner's names."""

    event: str
    draft: str
    booking: str
    upload: str
    owner: str
    email: str

    def somewhere_else(self) -> "Things":
        """The same of nobody."""
        return Things(**dict.fromkeys(("event", "draft", "booking", "upload"), str(uuid4())), owner="", email="")

    @property
    def marks(self) -> tuple[str, ...]:
        """What no reply to anybody else may hold."""
        return (self.draft, self.booking, self.owner, self.email)


Given = Callable[[Things], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Named:
    """It takes the id of a thing, which is the owner's alone. To the owner it does not answer NOT_FOUND: ``owner`` is
    the status that she gets. ``organisers``: it is for organisers, and anybody else is told so."""

    given: Given
    owner: int = 200
    organisers: bool = False


@dataclass(frozen=True, kw_only=True)
class Mine:
    """It shows or makes what is the caller's own: nothing of another owner's is in its reply."""

    given: Given
    organisers: bool = False


@dataclass(frozen=True, kw_only=True)
class Open:
    """Everybody may call it, and nothing of a person's is in its reply."""

    given: Given


def _nothing(_: Things) -> dict[str, Any]:
    return {}


def _key() -> str:
    return str(uuid4())


_EVENT = {
    "title": "Another Night",
    "venue": "Old Mill",
    "startsAt": "2030-06-01T20:00",
    "timeZone": "Europe/Berlin",
    "rows": [{"label": "A", "seats": 2}],
    "priceMinor": 100,
    "currency": "EUR",
}

# Each procedure has its row: one that has none is one that nobody has thought about, and fails the test below.
TABLE: Mapping[str, Named | Mine | Open] = {
    "auth.register": Open(given=lambda _: {"email": f"{_key()}@example.org", "name": "Eve", "password": PASSWORD}),
    "auth.login": Open(given=lambda its: {"email": its.email or "nobody@example.org", "password": "not the password"}),
    "auth.logout": Open(given=_nothing),
    "auth.me": Mine(given=_nothing),
    "auth.requestPasswordReset": Open(given=lambda its: {"email": its.email or "nobody@example.org"}),
    "auth.resetPassword": Open(given=lambda _: {"token": "A" * 43, "password": PASSWORD}),
    "events.list": Open(given=lambda _: {"limit": 100}),
    "events.byId": Named(given=lambda its: {"eventId": its.draft}),
    "events.create": Mine(given=lambda _: {**_EVENT, "idempotencyKey": _key()}, organisers=True),
    "events.update": Named(
        given=lambda its: {"eventId": its.event, "title": "Mine now", "idempotencyKey": _key()}, organisers=True
    ),
    "events.publish": Named(given=lambda its: {"eventId": its.draft, "idempotencyKey": _key()}, organisers=True),
    "events.mine": Mine(given=lambda _: {"limit": 100}, organisers=True),
    "events.sales": Named(given=lambda its: {"eventId": its.event}, organisers=True),
    "events.bookings": Named(given=lambda its: {"eventId": its.event}, organisers=True),
    # Of somebody else's published event everybody may book seats: of a draft nobody else.
    "bookings.create": Named(
        given=lambda its: {"eventId": its.draft, "seats": ["A-1"], "idempotencyKey": _key()}, owner=404
    ),
    "bookings.byId": Named(given=lambda its: {"bookingId": its.booking}),
    "bookings.resendMail": Named(given=lambda its: {"bookingId": its.booking, "idempotencyKey": _key()}),
    "bookings.cancel": Named(given=lambda its: {"bookingId": its.booking, "idempotencyKey": _key()}),
    "bookings.mine": Mine(given=lambda _: {"limit": 100}),
    "tickets.mine": Mine(given=_nothing),
    "posters.requestUpload": Named(
        given=lambda its: {"eventId": its.event, "contentType": "image/png", "idempotencyKey": _key()}, organisers=True
    ),
    # The owner's upload is no image, which only she is told.
    "posters.publish": Named(
        given=lambda its: {"eventId": its.event, "uploadId": its.upload, "idempotencyKey": _key()},
        owner=400,
        organisers=True,
    ),
}


def ask(person: Person, name: str, given: Mapping[str, Any]) -> httpx.Response:
    call = person.query if PROCEDURES[name].kind is Kind.QUERY else person.mutate
    return call(name, dict(given))


def refusal(reply: httpx.Response) -> tuple[int, str, str]:
    """What a reply says that could tell one thing from another."""
    error = reply.json()["error"]
    return reply.status_code, error["data"]["code"], error["message"]


def test_every_procedure_has_its_row() -> None:
    assert set(TABLE) == set(PROCEDURES)
    for name, row in TABLE.items():
        assert PROCEDURES[name].session or isinstance(row, Open) or name in ("auth.me", "events.byId"), name


class World:
    """An owner with things of every kind, and others who have some of their own."""

    def __init__(self, api: RunningApi, emulator: RunningEmulator) -> None:
        self.api = api
        self.email = f"owner-{uuid4().hex}@example.org"
        self.owner = api.customer(self.email)
        api.sql("update users set is_organiser = true where user_id = $1", self.owner.user_id)
        self.customer, self.organiser = api.customer(), api.organiser()
        self.others = {"customer": self.customer, "organiser": self.organiser}
        self._s3 = emulator.aws("s3")

    def things(self) -> Things:
        """Fresh ones of the owner's."""
        return self.things_of(self.owner, email=self.email)

    def things_of(self, owner: Person, *, email: str = "") -> Things:
        """Fresh ones of any organiser's."""
        event, draft = self.api.event(owner), self.api.event(owner, published=False)
        booked = owner.book(event, "A-1")
        assert booked.status_code == 200, booked.text
        upload = str(uuid4())
        self._s3.put_object(Bucket=ASSETS_BUCKET, Key=f"{keys.POSTER_UPLOADS_PREFIX}{event}/{upload}", Body=b"no image")
        return Things(
            event=event,
            draft=draft,
            booking=booked.json()["result"]["data"]["bookingId"],
            upload=upload,
            owner=owner.user_id,
            email=email,
        )


@pytest.fixture
def world(api_on_aws: RunningApi, emulator: RunningEmulator) -> World:
    return World(api_on_aws, emulator)


def test_what_is_somebody_elses_cannot_be_told_from_what_is_not_there(world: World) -> None:
    wrong: list[tuple[object, ...]] = []
    for name, row in TABLE.items():
        if not isinstance(row, Named):
            continue
        its = world.things()
        before = world.api.footprint()
        for who, other in world.others.items():
            told = refusal(ask(other, name, row.given(its)))
            of_nothing = refusal(ask(other, name, row.given(its.somewhere_else())))
            code = "FORBIDDEN" if row.organisers and who == "customer" else "NOT_FOUND"
            if told != of_nothing or told[1] != code or world.api.footprint() != before:
                wrong.append((name, who, told, of_nothing))
        reply = ask(world.owner, name, row.given(its))
        if reply.status_code != row.owner:  # or the refusals above were about something else
            wrong.append((name, "owner", reply.status_code, reply.text))

    assert wrong == []


def test_what_is_shown_to_one_holds_nothing_of_anothers(world: World) -> None:
    its = world.things()
    leaks = []
    for name, row in TABLE.items():
        for who, other in world.others.items():
            if name == "auth.logout":
                continue  # the last of them, below
            reply = ask(other, name, row.given(its))
            allowed = (403,) if isinstance(row, Mine) and row.organisers and who == "customer" else (200,)
            if isinstance(row, Mine) and reply.status_code not in allowed:
                leaks.append((name, who, reply.text))
            # Whoever names a thing may find its name again in the reply; nothing that they did not name.
            named = json.dumps(row.given(its))
            leaks += [(name, who, mark) for mark in its.marks if mark and mark not in named and mark in reply.text]
            if name in ("auth.register", "auth.login", "auth.resetPassword"):
                world.others[who] = other = world.api.organiser() if who == "organiser" else world.api.customer()
    assert leaks == []
    assert ask(world.customer, "auth.logout", {}).status_code == 200
    # Somebody else's logout ended nothing of the owner's.
    assert world.owner.query("bookings.mine").json()["result"]["data"]["bookings"] != []


def test_what_somebody_asks_about_their_own_is_answered_with_nothing_of_anothers(world: World) -> None:
    theirs, mine = world.things(), world.things_of(world.organiser)
    leaks: list[tuple[str, str]] = []
    for name, row in TABLE.items():
        if PROCEDURES[name].kind is Kind.QUERY or isinstance(row, Named):
            reply = ask(world.organiser, name, row.given(mine))
            allowed = (200, row.owner) if isinstance(row, Named) else (200,)  # a draft can be booked once published
            assert reply.status_code in allowed, (name, reply.text)
            leaks += [(name, mark) for mark in theirs.marks if mark in reply.text]
    assert leaks == []
    # Numbers have no names in them: each of the two has sold one seat, which the other's do not add to.
    for person, event in ((world.owner, theirs.event), (world.organiser, world.things_of(world.organiser).event)):
        sales = ask(person, "events.sales", {"eventId": event}).json()["result"]["data"]
        assert (sales["sold"], sales["bookings"], sales["left"]) == (1, 1, 19)


def test_without_a_session_whoever_asks_is_told_to_log_in_before_anything_else(world: World) -> None:
    its = world.things()
    before = world.api.footprint()
    wrong = {}
    for name, procedure in PROCEDURES.items():
        if procedure.session:
            for given in (TABLE[name].given(its), {"nonsense": 1}):
                reply = ask(world.api.stranger(), name, given)
                if (reply.status_code, reply.json()["error"]["data"]["code"]) != (401, "UNAUTHORIZED"):
                    wrong[name] = reply.text
    assert wrong == {}
    assert world.api.footprint() == before


def test_nobody_says_who_they_are_but_by_their_session(world: World) -> None:
    its = world.things()
    before = world.api.footprint()
    for name, row in TABLE.items():
        for claim in (
            "userId",
            "user_id",
            "organiserId",
            "isOrganiser",
            "email" if "email" not in row.given(its) else "id",
        ):
            reply = ask(world.organiser, name, {**row.given(its), claim: its.owner})
            assert refusal(reply)[:2] == (400, "BAD_REQUEST"), (name, claim, reply.text)
    for header in ("x-user-id", "x-forwarded-user", "authorization", "x-amzn-oidc-identity"):
        world.organiser.http.headers[header] = its.owner
    assert world.organiser.query("auth.me").json()["result"]["data"]["user"]["userId"] == world.organiser.user_id
    assert world.api.footprint() == before
