"""Bad input over real HTTP: the right code, never a 500, and nothing changed."""

import base64
import hashlib
import json
from collections.abc import Callable
from uuid import uuid4

import httpx
import pytest

from minitickets_api import cursors
from minitickets_api.app import registry
from minitickets_api.trpc.registry import Kind
from tests.fixtures.running_api import Person, RunningApi

pytestmark = pytest.mark.integration

JSON = {"content-type": "application/json"}


class Stage:
    """An event with free seats, one past, one draft, and a customer who wants seats."""

    def __init__(self, api: RunningApi) -> None:
        organiser = api.organiser()
        self.event_id = api.event(organiser)
        self.past = api.event(organiser, starts="-1 hour")
        self.draft = api.event(organiser, published=False)
        self.customer = api.customer()

    def wish(self, **changes: object) -> dict[str, object]:
        return {"eventId": self.event_id, "seats": ["A-1"], "idempotencyKey": str(uuid4()), **changes}

    def post(self, content: bytes, **headers: str) -> httpx.Response:
        return self.customer.http.post("/trpc/bookings.create", content=content, headers={**JSON, **headers})


Attempt = Callable[[Stage], httpx.Response]


def _book(**changes: object) -> Attempt:
    return lambda stage: stage.customer.mutate("bookings.create", stage.wish(**changes))


def _raw(content: bytes) -> Attempt:
    return lambda stage: stage.post(content)


def _with_seat_json(text: str) -> Attempt:
    """A wish whose seat is spelt in JSON as ``text``."""

    def attempt(stage: Stage) -> httpx.Response:
        document = json.dumps(stage.wish(seats=["SEAT"])).replace('"SEAT"', text)
        return stage.post(document.encode())

    return attempt


def _cursor(time: str) -> Attempt:
    """A cursor that a stranger made up: its check is no signature."""
    made_up = cursors.encode(query="events.upcoming", owner="", position=[time, str(uuid4())])
    return lambda stage: stage.customer.query("events.list", {"cursor": made_up})


def _forged_cursor(payload: bytes) -> Attempt:
    """A cursor whose check is right and whose position is ``payload``: anybody can work the check out."""
    bound = json.dumps(["events.upcoming", ""]).encode()
    check = hashlib.sha256(bound + b"\n" + payload).digest()[:12]
    forged = base64.urlsafe_b64encode(check + payload).rstrip(b"=").decode()
    return lambda stage: stage.customer.query("events.list", {"cursor": forged})


def test_a_forged_cursor_is_looked_into_and_not_just_refused_by_its_check(api: RunningApi) -> None:
    right = json.dumps(["2020-01-01T00:00:00+00:00", str(uuid4())]).encode()

    assert _forged_cursor(right)(Stage(api)).status_code == 200


TABLE: dict[str, tuple[Attempt, int, str]] = {
    "unknown procedure": (lambda stage: stage.customer.mutate("bookings.steal", {}), 404, "NOT_FOUND"),
    "a query's method": (lambda stage: stage.customer.query("bookings.create", {}), 405, "METHOD_NOT_SUPPORTED"),
    "no JSON": (_raw(b"seats=A-1"), 400, "PARSE_ERROR"),
    "20,000-deep JSON": (_raw(b"[" * 20_000 + b"]" * 20_000), 400, "PARSE_ERROR"),
    "20,000-deep JSON objects": (_raw(b'{"a":' * 12_000 + b"}" * 3_000), 400, "PARSE_ERROR"),
    "2 MB": (_raw(b'{"seats":"' + b"A" * 2 * 1024 * 1024 + b'"}'), 413, "PAYLOAD_TOO_LARGE"),
    "NaN": (_with_seat_json("NaN"), 400, "PARSE_ERROR"),
    "a NUL": (_with_seat_json('"A-\\u0000"'), 400, "BAD_REQUEST"),
    "a NUL in an id": (_book(eventId="\x00"), 400, "BAD_REQUEST"),
    "a lone surrogate": (_with_seat_json('"\\ud800"'), 400, "BAD_REQUEST"),
    "a huge number": (_with_seat_json("1e400"), 400, "BAD_REQUEST"),
    "a long number": (_with_seat_json("9" * 5000), 400, "BAD_REQUEST"),
    "an array": (_raw(b"[]"), 400, "BAD_REQUEST"),
    "a string": (_raw(b'"A-1"'), 400, "BAD_REQUEST"),
    "nothing": (_raw(b""), 400, "BAD_REQUEST"),
    "no seats field": (_raw(b"{}"), 400, "BAD_REQUEST"),
    "seats that are text": (_book(seats="A-1"), 400, "BAD_REQUEST"),
    "seats that are numbers": (_book(seats=[1]), 400, "BAD_REQUEST"),
    "empty seats": (_book(seats=[]), 400, "BAD_REQUEST"),
    "eleven seats": (_book(seats=[f"A-{n}" for n in range(1, 12)]), 400, "BAD_REQUEST"),
    "200 seats": (_book(seats=[f"A-{n}" for n in range(200)]), 400, "BAD_REQUEST"),
    "a seat twice": (_book(seats=["A-1", "A-1"]), 400, "BAD_REQUEST"),
    "a seat in small letters": (_book(seats=["a-1"]), 400, "BAD_REQUEST"),
    "a seat with a separator": (_book(seats=["A/../1"]), 400, "BAD_REQUEST"),
    "unknown seat": (_book(seats=["Z-99"]), 400, "BAD_REQUEST"),
    "one unknown seat among good ones": (_book(seats=["A-1", "Z-99"]), 400, "BAD_REQUEST"),
    "an id that is none": (_book(eventId="1"), 400, "BAD_REQUEST"),
    "an id in capitals": (lambda s: s.customer.book(s.event_id.upper(), "A-1"), 400, "BAD_REQUEST"),
    "unknown event": (_book(eventId=str(uuid4())), 404, "NOT_FOUND"),
    "past event": (lambda stage: stage.customer.book(stage.past, "A-1"), 400, "BAD_REQUEST"),
    "a draft": (lambda stage: stage.customer.book(stage.draft, "A-1"), 404, "NOT_FOUND"),
    "no idempotency key": (
        lambda s: s.customer.mutate("bookings.create", {"eventId": s.event_id, "seats": ["A-1"]}),
        400,
        "BAD_REQUEST",
    ),
    "an empty idempotency key": (_book(idempotencyKey=""), 400, "BAD_REQUEST"),
    "an endless idempotency key": (_book(idempotencyKey="k" * 129), 400, "BAD_REQUEST"),
    "a key with a line break": (_book(idempotencyKey="k\n"), 400, "BAD_REQUEST"),
    "somebody else's user id": (_book(userId=str(uuid4())), 400, "BAD_REQUEST"),
    "a price of one's own": (_book(totalMinor=1), 400, "BAD_REQUEST"),
    "wrong Origin": (lambda stage: stage.post(b"{}", origin="http://evil.test"), 403, "FORBIDDEN"),
    "a foreign page without Origin": (lambda s: s.post(b"{}", **{"sec-fetch-site": "cross-site"}), 403, "FORBIDDEN"),
    "a form": (
        lambda stage: stage.customer.http.post("/trpc/bookings.create", data={"seats": "A-1"}),
        415,
        "UNSUPPORTED_MEDIA_TYPE",
    ),
    "eleven calls at once": (
        lambda s: s.customer.http.post(f"/trpc/{','.join(['bookings.create'] * 11)}?batch=1", json={"0": s.wish()}),
        400,
        "BAD_REQUEST",
    ),
    "a cursor before all years": (_cursor("0001-01-01T00:00:00+23:59"), 400, "BAD_REQUEST"),
    "a cursor after all years": (_cursor("9999-12-31T23:59:59-23:59"), 400, "BAD_REQUEST"),
    "a forged cursor without a zone": (_cursor("2020-01-01T00:00:00"), 400, "BAD_REQUEST"),
    "a forged cursor with a NUL": (_cursor("\x00"), 400, "BAD_REQUEST"),
    "a forged cursor of one part": (_forged_cursor(b'["2020-01-01T00:00:00+00:00"]'), 400, "BAD_REQUEST"),
    "a forged cursor of an object": (_forged_cursor(b'{"0":"a","1":"b"}'), 400, "BAD_REQUEST"),
    "a forged cursor of numbers": (_forged_cursor(b"[1,2]"), 400, "BAD_REQUEST"),
    "a forged cursor that is no JSON": (_forged_cursor(b"\xff["), 400, "BAD_REQUEST"),
    "a forged cursor with an id that is none": (
        _forged_cursor(b'["2020-01-01T00:00:00+00:00","1 or 1=1"]'),
        400,
        "BAD_REQUEST",
    ),
    "a cursor that is none": (lambda s: s.customer.query("bookings.mine", {"cursor": "AAAA"}), 400, "BAD_REQUEST"),
    "a page of none": (lambda s: s.customer.query("events.list", {"limit": 0}), 400, "BAD_REQUEST"),
    "a page of a million": (lambda s: s.customer.query("events.list", {"limit": 10**6}), 400, "BAD_REQUEST"),
    "a page of half": (lambda s: s.customer.query("events.list", {"limit": 1.5}), 400, "BAD_REQUEST"),
    "a cancelled booking that never was": (
        lambda s: s.customer.mutate("bookings.cancel", {"bookingId": str(uuid4()), "idempotencyKey": "k"}),
        404,
        "NOT_FOUND",
    ),
}


def test_every_bad_input_is_refused_with_its_code_and_changes_nothing(api: RunningApi) -> None:
    stage = Stage(api)
    before = api.footprint()
    wrong = {}

    for name, (attempt, status, code) in TABLE.items():
        reply = attempt(stage)
        error = reply.json()["error"]
        told = (reply.status_code, error["data"]["code"], bool(error["message"]))
        if told != (status, code, True) or api.footprint() != before:
            wrong[name] = (reply.text, api.footprint())

    assert wrong == {}
    assert stage.customer.book(stage.event_id, "A-1").status_code == 200  # nothing of it was the stage's fault


def test_without_a_session_nothing_of_a_person_is_reached(api: RunningApi) -> None:
    some_id = str(uuid4())
    mutations = {
        "bookings.create": {"eventId": some_id, "seats": ["A-1"], "idempotencyKey": "k"},
        "bookings.cancel": {"bookingId": some_id, "idempotencyKey": "k"},
        "posters.requestUpload": {"eventId": some_id, "contentType": "image/png", "idempotencyKey": "k"},
        "posters.publish": {"eventId": some_id, "uploadId": some_id, "idempotencyKey": "k"},
    }
    cookies = ["", "session=", "session=" + "A" * 43, "session=x; session=y", "__Host-session=" + "A" * 43]
    let_in = []
    for cookie in cookies:
        stranger = api.stranger()
        stranger.http.headers["cookie"] = cookie
        replies = {name: stranger.mutate(name, input_) for name, input_ in mutations.items()}
        replies |= {name: stranger.query(name) for name in ("bookings.mine", "tickets.mine")}
        for name, reply in replies.items():
            if (reply.status_code, reply.json()["error"]["data"]["code"]) != (401, "UNAUTHORIZED"):
                let_in.append((cookie, name, reply.text))

    assert let_in == []


def test_a_past_event_says_why_it_cannot_be_booked(api: RunningApi) -> None:
    stage = Stage(api)

    message = stage.customer.book(stage.past, "A-1").json()["error"]["message"]

    assert "begun" in message


def test_every_reply_tells_browsers_to_be_strict(api: RunningApi) -> None:
    for path in ("/", "/openapi.json", "/healthz", "/readyz", "/nowhere", "/trpc", "/trpc/auth.me", "/trpc/no"):
        headers = api.stranger().http.get(path).headers

        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["x-frame-options"] == "DENY", path
        # Pages post forms, whose origin browsers hide where there is no referrer at all.
        assert headers["referrer-policy"] in ("no-referrer", "same-origin"), path
        assert headers["x-correlation-id"], path
        assert "server" not in headers, path


def test_no_path_sends_a_visitor_to_the_host_that_a_request_names(api: RunningApi) -> None:
    for path in ("/healthz/", "//elsewhere.example/healthz/", "/openapi.json/", "/trpc"):
        reply = api.stranger().http.get(path, headers={"host": "elsewhere.example"})

        assert (reply.status_code, reply.headers.get("location")) == (404, None)


def test_only_a_well_formed_correlation_id_is_taken_over(api: RunningApi) -> None:
    kept = [str(uuid4()), "0123456789abcdef", "0" * 128]
    replaced = ["0" * 129, "abc", "ada@example.org", "0123456789abcdef; x=1", ""]

    for given in kept + replaced:
        answered = api.stranger().http.get("/healthz", headers={"x-correlation-id": given}).headers["x-correlation-id"]
        assert (answered == given) == (given in kept)
        assert len(answered) >= 16


def test_the_load_balancers_trace_id_is_taken_when_the_client_gives_none(api: RunningApi) -> None:
    trace = "1-67891233-abcdef012345678912345678"
    headers = {"x-amzn-trace-id": f"Self=1-67891234-12456789abcdef012345678;Root={trace}"}

    assert api.stranger().http.get("/healthz", headers=headers).headers["x-correlation-id"] == trace


def _everybody_else(api: RunningApi) -> list[Person]:
    return [api.customer(), api.organiser()]


def test_nobody_reaches_what_is_somebody_elses(api: RunningApi) -> None:
    owner = api.organiser()
    event_id = api.event(owner)
    draft = api.event(owner, published=False)
    booking = owner.book(event_id, "A-1").json()["result"]["data"]
    [owner.book(event_id, seat) for seat in ("A-2", "A-3")]
    cursor = owner.query("bookings.mine", {"limit": 1}).json()["result"]["data"]["nextCursor"]
    before = api.footprint()

    def key() -> str:
        return str(uuid4())

    for other in _everybody_else(api):
        before = api.footprint()
        outcomes = {
            "cancel": other.mutate("bookings.cancel", {"bookingId": booking["bookingId"], "idempotencyKey": key()}),
            "draft": other.query("events.byId", {"eventId": draft}),
            "book a draft": other.book(draft, "A-1"),
            "upload": other.mutate(
                "posters.requestUpload", {"eventId": event_id, "contentType": "image/png", "idempotencyKey": key()}
            ),
            "publish": other.mutate(
                "posters.publish", {"eventId": event_id, "uploadId": str(uuid4()), "idempotencyKey": key()}
            ),
        }
        codes = {name: reply.json()["error"]["data"]["code"] for name, reply in outcomes.items()}
        is_organiser = other.query("auth.me").json()["result"]["data"]["user"]["isOrganiser"]
        posters = "NOT_FOUND" if is_organiser else "FORBIDDEN"
        assert codes == {
            "cancel": "NOT_FOUND",
            "draft": "NOT_FOUND",
            "book a draft": "NOT_FOUND",
            "upload": posters,
            "publish": posters,
        }
        assert other.query("bookings.mine").json()["result"]["data"] == {"bookings": [], "nextCursor": None}
        assert other.query("bookings.mine", {"cursor": cursor}).status_code == 400
        assert api.footprint() == before

    assert owner.query("events.byId", {"eventId": draft}).status_code == 200
    assert owner.query("bookings.mine", {"cursor": cursor, "limit": 1}).status_code == 200
    assert owner.query("events.list", {"cursor": cursor}).status_code == 400


def test_a_key_of_somebody_else_is_another_key(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada, grace = api.customer(), api.customer()

    first = ada.book(event_id, "A-1", key="same").json()["result"]["data"]
    second = grace.book(event_id, "A-2", key="same").json()["result"]["data"]

    assert (first["seats"], second["seats"]) == (["A-1"], ["A-2"])


def test_the_description_lists_every_procedure_and_resolves_every_reference(api: RunningApi) -> None:
    document = api.stranger().http.get("/openapi.json").json()

    assert {(path.removeprefix("/trpc/"), *operations) for path, operations in document["paths"].items()} == {
        (procedure.name, "get" if procedure.kind is Kind.QUERY else "post") for procedure in registry()
    }
    text = json.dumps(document)
    references = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert references <= set(document["components"]["schemas"])
    create = document["components"]["schemas"]["CreateBooking"]
    assert set(create["required"]) == {"eventId", "seats", "idempotencyKey"}
    assert create["properties"]["seats"]["maxItems"] == 10
