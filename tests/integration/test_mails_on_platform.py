"""Each message through topic, queue and the worker's zip to what SES accepted, on the whole platform."""

import base64
import json
import uuid
from typing import Any

import pytest
from icalendar import Calendar

from local.processes import wait_until
from tests.fixtures.platform import Customer, RunningPlatform
from tests.fixtures.recorded_calls import RecordedCalls

pytestmark = pytest.mark.e2e

_SECONDS = 120.0
RESET_TOKEN = "t0ken-" + "x" * 37


def bodies(customer: Customer) -> dict[str, dict[str, Any]]:
    """One message of each type about one booking that only they tell of, for a customer who exists."""
    booking = str(uuid.uuid4())
    person = {"userId": str(uuid.uuid4()), "email": customer.email, "name": "Ada"}
    common = {"version": 1, "correlationId": "mails-1", "occurredAt": "2026-11-29T12:00:00Z", "customer": person}
    booked = {
        **common,
        "bookingId": booking,
        "event": {
            "eventId": str(uuid.uuid4()),
            "title": "Nachtmusik; ليلة",
            "venue": "Große Halle",
            "startsAt": "2027-03-28T03:30:00+02:00",
            "timeZone": "Europe/Berlin",
            "sequence": 1,
        },
        "seats": ["A-1", "A-2"],
        "totalMinor": 4200,
        "currency": "EUR",
    }
    previous = {"startsAt": "2026-12-31T20:00:00-08:00", "timeZone": "America/Los_Angeles", "venue": "Hall One"}
    return {
        name: {"type": name, "messageId": str(uuid.uuid4()), **body}
        for name, body in {
            "booking.confirmed": booked,
            "booking.mail-requested": booked,
            "event.moved": {**booked, "previous": previous},
            "booking.cancelled": {**booked, "cancelledAt": "2026-11-30T08:15:00Z"},
            "password.reset-requested": {**common, "token": RESET_TOKEN, "expiresAt": "9999-01-01T00:00:00Z"},
        }.items()
    }


def job_status(platform: RunningPlatform, job_key: str) -> str | None:
    found = platform.aws("dynamodb").get_item(
        TableName=platform.outputs["processedJobsTable"], Key={"jobKey": {"S": job_key}}, ConsistentRead=True
    )
    return found["Item"]["status"]["S"] if "Item" in found else None


def publish(platform: RunningPlatform, messages: dict[str, dict[str, Any]]) -> None:
    entries = [{"Id": name.replace(".", "-"), "Message": json.dumps(body)} for name, body in messages.items()]
    platform.aws("sns").publish_batch(TopicArn=platform.outputs["topicArn"], PublishBatchRequestEntries=entries)


def test_each_message_published_twice_is_mailed_once_with_its_file(platform: RunningPlatform) -> None:
    customer = platform.register()
    messages = bodies(customer)
    # What another test left to be tried later would be counted below.
    platform.aws("sqs").purge_queue(QueueUrl=platform.outputs["jobsQueueUrl"])
    publish(platform, messages)
    booking = messages["booking.confirmed"]["bookingId"]
    job_keys = [
        f"booking.confirmed:{booking}",
        f"booking.mail-requested:{messages['booking.mail-requested']['messageId']}",
        f"event.moved:{booking}:1",
        f"booking.cancelled:{booking}",
        f"password.reset-requested:{messages['password.reset-requested']['messageId']}",
    ]

    def all_done() -> bool:
        return all(job_status(platform, job_key) == "done" for job_key in job_keys)

    wait_until("every job is done", all_done, seconds=_SECONDS)
    calls = RecordedCalls(platform.folder.path / "calls.jsonl")
    calls.mark()
    publish(platform, messages)

    def all_seen_again() -> bool:
        return len(calls.of("minitickets-dev-worker", "dynamodb:GetItem")) >= len(messages)

    wait_until("the worker has read of each copy that its job is done", all_seen_again, seconds=_SECONDS)
    mails = platform.mails(to=customer.email)
    assert sorted(mail["subject"] for mail in mails) == [
        "Cancelled: Nachtmusik; ليلة",
        "Changed: Nachtmusik; ليلة",
        "Set a new MiniTickets password",
        "Your booking: Nachtmusik; ليلة",
        "Your booking: Nachtmusik; ليلة",
    ]
    found = []
    for mail in mails:
        if mail["subject"] == "Set a new MiniTickets password":
            assert RESET_TOKEN in mail["text"]
            assert mail["attachments"] == []
            continue
        assert "Sunday, 28 March 2027, 03:30 (Europe/Berlin, UTC+02:00)" in mail["text"]
        [attachment] = mail["attachments"]
        calendar = Calendar.from_ical(base64.b64decode(attachment["base64"]))
        [entry] = calendar.events
        assert str(entry["UID"]) == f"{booking}@minitickets"
        assert entry["DTSTART"].to_ical() == b"20270328T033000"
        assert attachment["contentType"] == f"text/calendar; method={calendar['METHOD']}; charset=utf-8"
        found.append((str(calendar["METHOD"]), entry.sequence))
    assert sorted(found) == [("CANCEL", 2), ("PUBLISH", 1), ("PUBLISH", 1), ("PUBLISH", 1)]
