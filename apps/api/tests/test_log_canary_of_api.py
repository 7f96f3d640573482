"""Every procedure and every page, used as people use them: no line of the log holds what is theirs or opens something.

A procedure or a page that is not used here fails the test: nobody would know what it logs.
"""

import io
import re
from typing import Any
from uuid import uuid4

import httpx
import pytest

from apps.api.tests.pictures import png
from apps.api.tests.site_paths import page_paths
from local.processes import wait_until
from minitickets_api.app import registry
from minitickets_contracts import keys
from minitickets_contracts.messages import PasswordResetRequested
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import ASSETS_BUCKET, TICKETS_TABLE, Person, RunningApi

pytestmark = pytest.mark.integration

CANARY = "canary-93b1"  # in every name, address, password, search and key that somebody types
QR_TEXT = "mt1.Zm9yLW9uZS1zZWF0.bm8tcmVhbC1tYWM"
_SECONDS = 20.0


class Walk:
    """People who use the API, what was answered to them, and what no log may hold of it."""

    def __init__(self, api: RunningApi) -> None:
        self._api = api
        self.answered: set[tuple[str, str]] = set()
        self.secrets: dict[str, str] = {"what people typed": CANARY, "a QR code's text": QR_TEXT, "a URL's": "x-amz-"}
        self.secrets["where images are"] = ASSETS_BUCKET

    def somebody(self) -> Person:
        person = self._api.stranger()
        person.http.event_hooks["response"].append(self._see)
        return person

    def _see(self, reply: httpx.Response) -> None:
        if reply.status_code < 400:
            self.answered.add((reply.request.method, reply.url.path))
        for token in re.findall(r"session=([\w-]{43})", reply.headers.get("set-cookie", "")):
            self.secrets[f"session {len(self.secrets)}"] = token

    def unused(self) -> list[tuple[str, str]]:
        """The procedures and pages that nobody has used."""
        procedures = [(procedure.kind.value, f"/trpc/{procedure.name}") for procedure in registry()]
        pages = [(method, path) for method in ("GET", "POST") for path in page_paths(method)]
        return [(method, path) for method, path in [*procedures, *pages] if not self._is_used(method, path)]

    def _is_used(self, method: str, path: str) -> bool:
        shape = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))
        return any(method == used and shape.fullmatch(found) for used, found in self.answered)


def _key() -> str:
    return f"{CANARY}-{uuid4()}"


def _data(reply: httpx.Response) -> Any:
    assert reply.status_code == 200, reply.text
    return reply.json()["result"]["data"]


def _customer(walk: Walk, name: str) -> Person:
    """Registers, fails to, and logs in: by procedure."""
    person = walk.somebody()
    given = {"email": f"{name}-{CANARY}@example.org", "name": f"{name} {CANARY}", "password": f"{CANARY} password"}
    person.user_id = _data(person.mutate("auth.register", given))["user"]["userId"]
    assert person.mutate("auth.register", given).status_code == 409
    _data(person.mutate("auth.logout"))
    wrong = {"email": given["email"], "password": f"{CANARY} wrong"}
    assert person.mutate("auth.login", wrong).status_code == 401
    assert person.mutate("auth.login", {**wrong, CANARY: CANARY}).status_code == 400
    _data(person.mutate("auth.login", {"email": given["email"], "password": given["password"]}))
    assert _data(person.query("auth.me"))["user"]["email"] == given["email"]
    return person


def _keep_reset_messages(api: RunningApi) -> None:
    """In a table of the test's own: from the outbox they go as soon as they are sent."""
    api.sql("create table seen_resets (body text)")
    api.sql(
        "create function see_reset() returns trigger language plpgsql as"
        " $$ begin insert into seen_resets values (new.body); return null; end $$"
    )
    api.sql(
        "create trigger see_reset after insert on outbox for each row when (new.is_secret) execute function see_reset()"
    )


def _mailed_token(walk: Walk, api: RunningApi) -> str:
    [row] = api.sql("with seen as (delete from seen_resets returning body) select body from seen")
    token = PasswordResetRequested.from_json(row["body"]).token
    walk.secrets[f"reset token {len(walk.secrets)}"] = token
    return token


def _make_tickets(emulator: RunningEmulator, owner: Person, booking: dict[str, Any]) -> None:
    """What the tickets function leaves behind."""
    for seat in booking["seats"]:
        key = keys.ticket_image_key(booking["eventId"], booking["bookingId"], seat)
        emulator.aws("s3").put_object(Bucket=ASSETS_BUCKET, Key=key, Body=png())
        item = {
            "userId": owner.user_id,
            "ticketId": f"{booking['bookingId']}:{seat}",
            "status": "ready",
            "qrToken": QR_TEXT,
        }
        emulator.aws("dynamodb").put_item(
            TableName=TICKETS_TABLE, Item={name: {"S": value} for name, value in item.items()}
        )


def _organise(host: Person) -> str:
    """An event of the host's, made and published: by procedure."""
    wanted = {
        "title": "Night of Engines",
        "venue": "Old Mill",
        "startsAt": "2030-06-01T20:00",
        "timeZone": "Europe/Berlin",
        "rows": [{"label": "A", "seats": 20}],
        "priceMinor": 100,
        "currency": "EUR",
        "idempotencyKey": _key(),
    }
    event_id: str = _data(host.mutate("events.create", wanted))["eventId"]
    _data(host.mutate("events.publish", {"eventId": event_id, "idempotencyKey": _key()}))
    assert event_id in [event["eventId"] for event in _data(host.query("events.mine"))["events"]]
    return event_id


def _by_procedures(walk: Walk, api: RunningApi, emulator: RunningEmulator, ada: Person, host: Person) -> None:
    event_id = _organise(host)
    assert _data(ada.query("events.list"))["events"]
    assert _data(ada.query("events.byId", {"eventId": event_id}))["seats"]
    kept, given_up = (_data(ada.book(event_id, seat, key=_key())) for seat in ("A-1", "A-2"))
    assert ada.book(event_id, "A-1", key=_key()).status_code == 409
    again = _key()
    assert _data(ada.book(event_id, "A-3", key=again)) == _data(ada.book(event_id, "A-3", key=again))
    assert ada.book(event_id, "A-4", key=again).status_code == 409
    _make_tickets(emulator, ada, kept)
    assert "X-Amz-Signature" in _data(ada.query("tickets.mine"))["tickets"][0]["imageUrl"]
    its = {"bookingId": kept["bookingId"]}
    assert _data(ada.query("bookings.byId", its))["ticketsReady"] == 1
    assert len(_data(ada.query("bookings.mine"))["bookings"]) == 3
    first = _data(ada.query("bookings.mine", {"limit": 1}))
    assert len(_data(ada.query("bookings.mine", {"limit": 1, "cursor": first["nextCursor"]}))["bookings"]) == 1
    for person in (ada, host):
        _data(person.mutate("bookings.resendMail", {**its, "idempotencyKey": _key()}))
    _data(ada.mutate("bookings.cancel", {"bookingId": given_up["bookingId"], "idempotencyKey": _key()}))
    for search in (f"ada-{CANARY}@example.org", f"ada {CANARY}"):
        found = _data(host.query("events.bookings", {"eventId": event_id, "search": search}))
        assert len(found["bookings"]) == 3
    assert host.query("events.bookings", {"eventId": event_id, "search": CANARY * 20}).status_code == 400
    assert _data(host.query("events.sales", {"eventId": event_id}))["sold"] == 2
    move = {"eventId": event_id, "venue": "New Mill", "idempotencyKey": _key()}
    assert _data(host.mutate("events.update", move))["toldBookings"] == 2
    wanted = {"eventId": event_id, "contentType": "image/png", "idempotencyKey": _key()}
    upload = _data(host.mutate("posters.requestUpload", wanted))["uploadId"]
    emulator.aws("s3").put_object(
        Bucket=ASSETS_BUCKET,
        Key=f"{keys.POSTER_UPLOADS_PREFIX}{event_id}/{upload}",
        Body=png(),
        ContentType="image/png",
    )
    _data(host.mutate("posters.publish", {"eventId": event_id, "uploadId": upload, "idempotencyKey": _key()}))
    _data(ada.mutate("auth.requestPasswordReset", {"email": f"ada-{CANARY}@example.org"}))
    given = {"token": _mailed_token(walk, api), "password": f"{CANARY} second"}
    _data(ada.mutate("auth.resetPassword", given))
    assert ada.mutate("auth.resetPassword", given).status_code == 400
    _data(ada.mutate("auth.login", {"email": f"ada-{CANARY}@example.org", "password": f"{CANARY} second"}))


def _post(person: Person, path: str, status: int = 303, /, **fields: str) -> httpx.Response:
    reply = person.http.post(path, data={"idempotencyKey": _key(), **fields})
    assert reply.status_code == status, (path, reply.status_code, reply.text)
    return reply


def _accounts_by_pages(walk: Walk, api: RunningApi) -> Person:
    """Somebody who registers, forgets the password, sets another, logs out and in."""
    grace = walk.somebody()
    given = {"email": f"grace-{CANARY}@example.org", "name": f"Grace {CANARY}", "password": f"{CANARY} password"}
    for path in ("/register", "/login", "/forgot-password", f"/login?next=/events/{CANARY}"):
        assert grace.http.get(path).status_code == 200
    assert grace.http.get(f"/bookings?cursor={CANARY}").headers["location"].startswith("/login?next=")
    _post(grace, "/register", 400, **{**given, "password": "x"})
    _post(grace, "/register", **given)
    assert grace.http.get("/logout").status_code == 200
    _post(grace, "/logout")
    _post(grace, "/login", 401, email=given["email"], password=f"{CANARY} wrong")
    _post(grace, "/forgot-password", email=given["email"])
    token = _mailed_token(walk, api)
    assert token in grace.http.get("/reset-password", params={"token": token}).text
    _post(grace, "/reset-password", 400, token=token, password="x")
    _post(grace, "/reset-password", token=token, password=f"{CANARY} third")
    _post(grace, "/login", email=given["email"], password=f"{CANARY} third")
    grace.user_id = _data(grace.query("auth.me"))["user"]["userId"]
    return grace


def _customer_by_pages(emulator: RunningEmulator, grace: Person, event_id: str) -> None:
    for path in ("/", f"/events/{event_id}", f"/events/{event_id}/book", "/bookings", "/tickets", f"/{CANARY}"):
        assert grace.http.get(path, params={"notice": CANARY}).status_code in (200, 303, 404)
    booked = []
    for seat in ("A-5", "A-6"):
        _post(grace, f"/events/{event_id}/book", seat=seat)
        booked.append(_data(grace.query("bookings.mine"))["bookings"][0])
    _post(grace, f"/events/{event_id}/book", 409, seat="A-5")
    assert grace.http.get(f"/tickets/{booked[0]['bookingId']}.pdf").status_code == 409  # still being made
    _make_tickets(emulator, grace, booked[0])
    kept, given_up = (f"/bookings/{booking['bookingId']}" for booking in booked)
    for path in (kept, f"{given_up}/cancel", f"{kept}/mail", "/tickets"):
        assert grace.http.get(path).status_code in (200, 303), path
    for path in (f"/tickets/{booked[0]['bookingId']}.pdf", f"/tickets/{booked[0]['bookingId']}/A-5.png"):
        assert grace.http.get(path).status_code == 200, path
    _post(grace, f"{kept}/mail")
    _post(grace, f"{given_up}/cancel")
    assert grace.http.get("/organiser").status_code == 403
    foreign = {"origin": f"https://{CANARY}.example"}
    assert grace.http.post(f"{kept}/mail", data={"idempotencyKey": _key()}, headers=foreign).status_code == 403


def _organiser_by_pages(emulator: RunningEmulator, host: Person, guest_booking: str, event_id: str) -> None:
    form = {
        "title": "Second Night",
        "venue": "Old Mill",
        "startsAt": "2030-06-02T20:00",
        "timeZone": "Europe/Berlin",
        "rows": "A 4",
        "price": "25.50",
        "currency": "EUR",
    }
    assert host.http.get("/organiser").status_code == host.http.get("/organiser/events/new").status_code == 200
    made = _post(host, "/organiser/events/new", **form).headers["location"].partition("?")[0]
    assert host.http.get(f"{made}/publish").status_code == 200
    _post(host, f"{made}/publish")
    _post(host, f"{made}/edit", **{**form, "venue": "New Mill"})
    page = f"/organiser/events/{event_id}"
    for path in ("", "/edit", "/poster", "/sales.svg", "/bookings", "/bookings.csv"):
        reply = host.http.get(f"{page}{path}", params={"search": f"grace-{CANARY}@example.org"})
        assert reply.status_code == 200, path
    assert f"grace-{CANARY}@example.org" in reply.text
    _post(host, f"{page}/bookings", bookingId=guest_booking, search=f"Grace {CANARY}")
    upload = str(uuid4())
    emulator.aws("s3").put_object(
        Bucket=ASSETS_BUCKET,
        Key=f"{keys.POSTER_UPLOADS_PREFIX}{event_id}/{upload}",
        Body=png(),
        ContentType="image/png",
    )
    assert host.http.get(f"{page}/poster/{upload}", params={"bucket": ASSETS_BUCKET}).status_code == 200
    _post(host, f"{page}/poster/{upload}")
    assert "X-Amz-Signature" in host.http.get(page).text


def test_nothing_that_people_do_leaves_in_a_log_what_is_theirs_or_opens_something(
    log: io.StringIO, api_on_aws: RunningApi, emulator: RunningEmulator
) -> None:
    api = api_on_aws
    walk = Walk(api)
    _keep_reset_messages(api)
    ada, host = _customer(walk, "ada"), _customer(walk, "host")
    api.sql("update users set is_organiser = true where user_id = $1", host.user_id)

    _by_procedures(walk, api, emulator, ada, host)
    [event] = _data(host.query("events.mine"))["events"]
    grace = _accounts_by_pages(walk, api)
    _customer_by_pages(emulator, grace, event["eventId"])
    guest_booking = _data(grace.query("bookings.mine"))["bookings"][1]["bookingId"]
    _organiser_by_pages(emulator, host, guest_booking, event["eventId"])
    unsent = "select count(*) from outbox where sent_at is null"
    wait_until("all messages are published", lambda: api.sql(unsent)[0][0] == 0, seconds=_SECONDS)

    assert walk.unused() == []
    lines = log.getvalue()
    assert lines.count('"message": "request"') > 80
    assert lines.count("booking event published") > 8
    assert len(walk.secrets) > 12
    assert {what for what, secret in walk.secrets.items() if secret.lower() in lines.lower()} == set()
