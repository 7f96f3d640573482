"""What a customer does, over real HTTP, on a real database."""

from uuid import uuid4

import httpx
import pytest

from tests.fixtures.running_api import PASSWORD, RunningApi

pytestmark = pytest.mark.integration


def data(reply: httpx.Response) -> dict[str, object]:
    assert reply.status_code == 200, reply.text
    found: dict[str, object] = reply.json()["result"]["data"]
    return found


def test_a_customer_registers_finds_an_event_books_and_cancels(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=3)
    ada = api.customer("Ada@Example.org")

    assert data(ada.query("auth.me"))["user"] == {
        "userId": ada.user_id,
        "email": "ada@example.org",
        "name": "Ada Lovelace",
        "isOrganiser": False,
    }
    listed = data(ada.query("events.list"))
    assert [event["eventId"] for event in listed["events"]] == [event_id]  # type: ignore[attr-defined]  # JSON

    booked = data(ada.book(event_id, "A-1", "A-2"))
    assert booked["seats"] == ["A-1", "A-2"]
    assert booked["totalMinor"] == 5000
    assert booked["timeZone"] == "America/Los_Angeles"

    seats = data(ada.query("events.byId", {"eventId": event_id}))["seats"]
    assert seats == [
        {"name": "A-1", "row": "A", "number": "1", "isTaken": True, "aisleAfter": False},
        {"name": "A-2", "row": "A", "number": "2", "isTaken": True, "aisleAfter": False},
        {"name": "A-3", "row": "A", "number": "3", "isTaken": False, "aisleAfter": False},
    ]

    cancelled = data(ada.mutate("bookings.cancel", {"bookingId": booked["bookingId"], "idempotencyKey": str(uuid4())}))
    assert cancelled["status"] == "cancelled"
    mine = data(ada.query("bookings.mine"))
    assert [booking["status"] for booking in mine["bookings"]] == ["cancelled"]  # type: ignore[attr-defined]  # JSON
    assert data(ada.query("events.byId", {"eventId": event_id}))["seatsFree"] == 3


def test_the_same_key_gives_the_same_booking_and_another_input_a_conflict(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer()
    first = data(ada.book(event_id, "A-1", key="once"))

    assert data(ada.book(event_id, "A-1", key="once")) == first
    other = ada.book(event_id, "A-2", key="once")

    assert (other.status_code, other.json()["error"]["code"]) == (409, -32009)
    assert api.footprint()["bookings"] == 1


def test_taken_seats_are_named(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    data(api.customer().book(event_id, "A-1", "A-3"))

    error = api.customer().book(event_id, "A-1", "A-2", "A-3").json()["error"]

    assert error["data"]["code"] == "CONFLICT"
    assert error["data"]["seats"] == ["A-1", "A-3"]


def test_the_correlation_id_of_a_request_is_in_its_reply_and_in_its_message(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer()
    given = str(uuid4())
    ada.http.headers["x-correlation-id"] = given

    reply = ada.book(event_id, "A-1")

    assert reply.headers["x-correlation-id"] == given
    [row] = api.sql("select correlation_id, body from outbox")
    assert row["correlation_id"] == given
    assert f'"correlationId":"{given}"' in row["body"]


def test_an_outage_of_aws_leaves_the_api_ready_and_bookings_possible(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer()

    assert ada.book(event_id, "A-1").status_code == 200
    tickets = ada.query("tickets.mine")

    assert tickets.status_code == 503
    assert tickets.json()["error"]["data"]["code"] == "SERVICE_UNAVAILABLE"
    assert ada.http.get("/readyz").json() == {"status": "ready"}
    assert [row["sent_at"] for row in api.sql("select sent_at from outbox")] == [None]


def test_passwords_are_kept_as_argon2id_hashes_and_sessions_as_digests(api: RunningApi) -> None:
    ada = api.customer()

    [user] = api.sql("select password_hash from users")
    [session] = api.sql("select token_hash from sessions")

    assert user["password_hash"].startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert PASSWORD not in user["password_hash"]
    assert len(session["token_hash"]) == 32
    assert ada.http.cookies["session"].encode() not in session["token_hash"]
