"""The booking flow on the whole platform: what duplicates and rivals change, and how to follow one booking."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from local.processes import wait_until
from local.ticket_scan import scan
from local.visitor import ApiRefusedError
from minitickets_contracts.token import SigningKeys
from tests.fixtures.platform import Customer, RunningPlatform, image_hash
from tests.fixtures.recorded_calls import RecordedCalls

pytestmark = pytest.mark.e2e

SEATS = ["A-1", "A-2", "A-3"]
RIVALS = 20
_SECONDS = 60.0
_MAPPING = "aws:lambda/eventSourceMapping:EventSourceMapping"


@dataclass(frozen=True, kw_only=True)
class Booked:
    """A booking, and the message that tells of it."""

    customer: Customer
    booking_id: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """All that a booking led to: mails, items of the tickets table, and by seat the hash of the image."""

    mails: list[dict[str, Any]]
    items: list[dict[str, Any]]
    images: dict[str, str]


def book(platform: RunningPlatform) -> Booked:
    customer = platform.register()
    booking_id = customer.visitor.book(event_id=platform.make_event(), seats=SEATS)["bookingId"]
    [row] = platform.rows("select body from outbox where booking_id = $1::text::uuid", booking_id)
    return Booked(customer=customer, booking_id=booking_id, message=row["body"])


def outcome(platform: RunningPlatform, booked: Booked) -> Outcome:
    """What there is once the mail was accepted and every ticket is ready."""
    mails = platform.wait_for_mails(to=booked.customer.email)
    tickets = platform.wait_for_tickets(booked.customer.visitor, count=len(SEATS))
    found = platform.aws("dynamodb").query(
        TableName=platform.outputs["ticketsTable"],
        KeyConditionExpression="userId = :user",
        ExpressionAttributeValues={":user": {"S": json.loads(booked.message)["customer"]["userId"]}},
        ConsistentRead=True,
    )
    images = {ticket["seat"]: image_hash(ticket["imageUrl"]) for ticket in tickets}
    return Outcome(mails=mails, items=found["Items"], images=images)


def shown_tokens(platform: RunningPlatform, made: Outcome) -> dict[str, str]:
    """By seat, what a scanner at the door reads from the stored image; its signature is checked."""
    secret = platform.aws("secretsmanager").get_secret_value(SecretId=platform.outputs["signingSecretArn"])
    keys = SigningKeys.from_json(secret["SecretString"])
    shown = {}
    for item in made.items:
        stored = {"Bucket": platform.outputs["assetsBucket"], "Key": item["imageKey"]["S"]}
        with platform.aws("s3").get_object(**stored)["Body"] as body:
            text, token = scan(body.read(), keys)
        shown[token.seat] = text
    return shown


def publish(platform: RunningPlatform, message: str, *, copies: int) -> None:
    platform.aws("sns").publish_batch(
        TopicArn=platform.outputs["topicArn"],
        PublishBatchRequestEntries=[{"Id": str(copy), "Message": message} for copy in range(copies)],
    )


def forget_the_publication(platform: RunningPlatform, booked: Booked) -> None:
    """The relay has published, and ended before it could write that down: its row is free once more."""
    platform.rows(
        "update outbox set sent_at = null, owner = null, lease_until = null, next_attempt_at = now()"
        " where booking_id = $1::text::uuid",
        booked.booking_id,
    )


def is_empty(platform: RunningPlatform, output: str) -> bool:
    """Whether a queue holds nothing, in flight neither: a message that failed would still be there."""
    counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = platform.aws("sqs").get_queue_attributes(QueueUrl=platform.outputs[output], AttributeNames=counts)
    return all(int(found["Attributes"][count]) == 0 for count in counts)


def are_empty(platform: RunningPlatform) -> bool:
    return is_empty(platform, "jobsQueueUrl") and is_empty(platform, "ticketsQueueUrl")


@pytest.fixture(autouse=True)
def only_this_tests_messages(platform: RunningPlatform) -> Iterator[None]:
    """What another test left to be tried later neither comes now nor is waited for; nor does this test leave any."""

    def purge() -> None:
        for queue in ("jobsQueueUrl", "ticketsQueueUrl"):
            platform.aws("sqs").purge_queue(QueueUrl=platform.outputs[queue])

    purge()
    yield
    purge()


@pytest.fixture
def calls(platform: RunningPlatform) -> RecordedCalls:
    calls = RecordedCalls(platform.folder.path / "calls.jsonl")
    calls.mark()
    return calls


def wait_until_seen_again(platform: RunningPlatform, calls: RecordedCalls, *, copies: int) -> None:
    """Until both consumers have read what they find of each copy, and have finished with it."""

    def seen() -> bool:
        worker = calls.of("minitickets-dev-worker", "dynamodb:GetItem")
        tickets = calls.of("minitickets-dev-tickets", "dynamodb:GetItem")
        return len(worker) >= copies and len(tickets) >= copies * len(SEATS)

    wait_until(f"{copies} copies are seen by both consumers", seen, seconds=_SECONDS)
    wait_until("nothing of it comes back", lambda: are_empty(platform), seconds=_SECONDS)


@pytest.mark.parametrize("copies", [1, 5])
def test_an_event_published_again_sends_no_mail_and_changes_no_ticket_and_no_byte_of_an_image(
    platform: RunningPlatform, calls: RecordedCalls, copies: int
) -> None:
    booked = book(platform)
    first = outcome(platform, booked)
    assert len(first.mails) == 1
    assert shown_tokens(platform, first) == {item["seat"]["S"]: item["qrToken"]["S"] for item in first.items}
    calls.mark()

    publish(platform, booked.message, copies=copies)
    wait_until_seen_again(platform, calls, copies=copies)

    assert outcome(platform, booked) == first


def test_a_relay_that_forgot_its_publication_publishes_again_and_nothing_changes(
    platform: RunningPlatform, calls: RecordedCalls
) -> None:
    booked = book(platform)
    first = outcome(platform, booked)
    calls.mark()

    forget_the_publication(platform, booked)
    wait_until_seen_again(platform, calls, copies=1)

    assert outcome(platform, booked) == first
    [row] = platform.rows("select sent_at from outbox where booking_id = $1::text::uuid", booked.booking_id)
    assert row["sent_at"] is not None


@contextmanager
def consumers_held(platform: RunningPlatform) -> Iterator[None]:
    """No consumer is fed while in the block: what comes waits in the queues."""
    client = platform.session.client
    mappings = [found for found in client.get("/resources") if found["type"] == _MAPPING]

    def feed(changes: dict[str, Any]) -> None:
        for stored in mappings:
            declared = {key: stored[key] for key in ("type", "name", "dependsOn", "protect")}
            client.post("/resources/update", {**declared, "inputs": {**stored["inputs"], **changes}})

    feed({"enabled": False})
    try:
        yield
    finally:
        feed({})


def test_copies_that_wait_together_for_the_first_attempt_make_one_mail_and_one_image_a_seat(
    platform: RunningPlatform, calls: RecordedCalls
) -> None:
    copies = 4
    with consumers_held(platform):
        booked = book(platform)
        wait_until(
            "the event waits in both queues",
            lambda: not is_empty(platform, "jobsQueueUrl") and not is_empty(platform, "ticketsQueueUrl"),
            seconds=_SECONDS,
        )
        publish(platform, booked.message, copies=copies - 1)
        calls.mark()

    def each_was_tried() -> bool:
        return len(calls.of("minitickets-dev-worker", "dynamodb:GetItem")) >= copies

    wait_until("the worker has tried each copy", each_was_tried, seconds=_SECONDS)
    wait_until("each copy made its tickets", lambda: is_empty(platform, "ticketsQueueUrl"), seconds=_SECONDS)
    made = outcome(platform, booked)
    assert len(made.mails) == 1
    assert {item["ticketId"]["S"] for item in made.items} == {f"{booked.booking_id}:{seat}" for seat in SEATS}
    assert shown_tokens(platform, made) == {item["seat"]["S"]: item["qrToken"]["S"] for item in made.items}


def test_of_twenty_concurrent_bookings_of_a_seat_one_wins_19_get_conflict_and_the_outbox_has_one_row(
    platform: RunningPlatform,
) -> None:
    event_id = platform.make_event()
    start = threading.Barrier(RIVALS, timeout=_SECONDS)

    def rival(_: int) -> tuple[str, Customer]:
        customer = platform.register()
        start.wait()
        try:
            customer.visitor.book(event_id=event_id, seats=["A-7"])
        except ApiRefusedError as error:
            return error.code, customer
        return "booked", customer

    with ThreadPoolExecutor(max_workers=RIVALS) as pool:
        answers = list(pool.map(rival, range(RIVALS)))

    codes = [code for code, _ in answers]
    assert sorted(codes) == ["CONFLICT"] * (RIVALS - 1) + ["booked"]
    winner = answers[codes.index("booked")][1]
    rows = platform.rows(
        "select email, bookings.seats, outbox_id from bookings join users using (user_id)"
        " left join outbox using (booking_id) where event_id = $1::text::uuid",
        event_id,
    )
    assert [(row["email"], row["seats"]) for row in rows] == [(winner.email, ["A-7"])]
    assert rows[0]["outbox_id"] is not None
    assert [ticket["seat"] for ticket in platform.wait_for_tickets(winner.visitor, count=1)] == ["A-7"]


def test_one_correlation_id_leads_through_the_logs_of_the_api_the_worker_and_the_tickets_function(
    platform: RunningPlatform,
) -> None:
    booked = book(platform)
    outcome(platform, booked)
    correlation_id = json.loads(booked.message)["correlationId"]
    told: dict[str, Callable[[], list[str]]] = {
        "bookings.create": lambda: _lines_of_api(platform),
        "booking event published": lambda: _lines_of_api(platform),
        "mail accepted": lambda: _lines_of_function(platform, "worker"),
        "The booking's tickets are ready": lambda: _lines_of_function(platform, "tickets"),
    }

    for event, lines in told.items():

        def is_told(event: str = event, lines: Callable[[], list[str]] = lines) -> bool:
            return any(_is_about(line, event, correlation_id) for line in lines())

        wait_until(f"{event!r} with the id {correlation_id}", is_told, seconds=_SECONDS)
        # Names are for people who may read a mail, not for those who may read a log.
        assert not [line for line in lines() if booked.customer.email in line or "Lovelace" in line]


def _is_about(line: str, event: str, correlation_id: str) -> bool:
    """Whether it is the structured line of this event (or request) with this id."""
    if not line.startswith("{"):
        return False  # Lambda's own lines
    fields = json.loads(line)
    return event in (fields["message"], fields.get("route")) and fields.get("correlation_id") == correlation_id


def _lines_of_api(platform: RunningPlatform) -> list[str]:
    files = (platform.folder.path / "logs").glob("minitickets-dev-api.api.*.log")
    return [line for file in files for line in file.read_text().splitlines()]


def _lines_of_function(platform: RunningPlatform, name: str) -> list[str]:
    group = f"/aws/lambda/minitickets-dev-{name}"
    pages = platform.aws("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
    return [event["message"] for page in pages for event in page["events"]]
