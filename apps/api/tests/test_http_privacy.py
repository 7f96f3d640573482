"""What must never reach a log: addresses, names, passwords, tokens, presigned URLs."""

import io
import json
from uuid import uuid4

import pytest

from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import ASSETS_BUCKET, TICKETS_TABLE, RunningApi

pytestmark = pytest.mark.integration

CANARY = "canary-7f3a"
EMAIL = f"{CANARY}@example.org"
PASSWORD = f"{CANARY} password"
TOKEN = f"mt1.{CANARY}.mac"


def test_no_log_line_holds_what_is_a_persons_or_a_secret(
    log: io.StringIO, api_on_aws: RunningApi, emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = api_on_aws
    event_id = api.event(api.organiser())
    ada = api.stranger()
    given = {"email": EMAIL, "name": f"Ada {CANARY}", "password": PASSWORD}
    registered = ada.mutate("auth.register", given)
    user_id = registered.json()["result"]["data"]["user"]["userId"]
    session = ada.http.cookies["session"]
    ada.mutate("auth.register", given)
    ada.mutate("auth.login", {"email": EMAIL, "password": PASSWORD + "x"})
    ada.mutate("auth.login", {"email": EMAIL, "password": 5, CANARY: CANARY})
    booking = ada.book(event_id, "A-1", key=f"{CANARY}-key").json()["result"]["data"]
    item = {"userId": user_id, "ticketId": f"{booking['bookingId']}:A-1", "status": "ready", "qrToken": TOKEN}
    emulator.aws("dynamodb").put_item(
        TableName=TICKETS_TABLE, Item={name: {"S": value} for name, value in item.items()}
    )
    image_url = ada.query("tickets.mine").json()["result"]["data"]["tickets"][0]["imageUrl"]
    ada.http.get(f"/trpc/{CANARY}", params={"input": f'{{"email":"{EMAIL}"}}'})
    ada.http.get(f"/{CANARY}?email={EMAIL}", headers={"user-agent": CANARY, "referer": EMAIL})
    ada.http.get("/", headers={"x-correlation-id": CANARY})

    # A fault whose message holds all of it, as a driver's would.
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"Key (email)=({EMAIL}) {PASSWORD} {image_url}")

    monkeypatch.setattr("minitickets_api.queries.events.by_id", broken)
    assert ada.query("events.byId", {"eventId": event_id}).status_code == 500

    lines = log.getvalue()
    assert '"failure": "RuntimeError"' in lines  # the fault is there, with where it happened
    assert "procedures/events.py" in lines
    signature = image_url.partition("X-Amz-Signature=")[2].partition("&")[0]
    for secret in (CANARY, session, signature, "X-Amz", ada.http.cookies["session"], "Night of Engines"):
        assert secret not in lines, secret
    assert ASSETS_BUCKET not in lines


def test_every_line_of_a_request_carries_its_correlation_id(log: io.StringIO, api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer()
    given = str(uuid4())
    ada.http.headers["x-correlation-id"] = given

    ada.book(event_id, "A-1")
    ada.query("tickets.mine")  # AWS is down, which is logged

    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    mine = [line for line in lines if line.get("correlation_id") == given]
    assert [line["route"] for line in mine if line["message"] == "request"] == ["bookings.create", "tickets.mine"]
    assert any(line["message"] == "tickets cannot be read" for line in mine)
    assert all({"timestamp", "level", "logger", "message"} <= line.keys() for line in lines)
