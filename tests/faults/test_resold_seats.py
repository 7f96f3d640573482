"""A seat that is sold again, and images that cannot be stored: on the whole platform."""

from typing import Any

import httpx
import pytest

from local.processes import wait_until
from local.ticket_scan import scan
from minitickets_contracts.keys import booking_confirmed_job_key
from minitickets_contracts.token import SigningKeys
from tests.faults.stage_changes import function_environment, purge
from tests.fixtures.platform import RunningPlatform
from tests.fixtures.recorded_calls import RecordedCalls

pytestmark = pytest.mark.faults

_SECONDS = 60.0
_NOBODY_LISTENS = "http://127.0.0.1:9"


def items_of(platform: RunningPlatform, booking_id: str) -> list[dict[str, Any]]:
    [row] = platform.rows("select user_id::text from bookings where booking_id = $1::text::uuid", booking_id)
    found = platform.aws("dynamodb").query(
        TableName=platform.outputs["ticketsTable"],
        KeyConditionExpression="userId = :user AND begins_with(ticketId, :booking)",
        ExpressionAttributeValues={":user": {"S": row["user_id"]}, ":booking": {"S": f"{booking_id}:"}},
        ConsistentRead=True,
    )
    items: list[dict[str, Any]] = found["Items"]
    return items


def image_of(platform: RunningPlatform, item: dict[str, Any]) -> bytes:
    stored = {"Bucket": platform.outputs["assetsBucket"], "Key": item["imageKey"]["S"]}
    content: bytes = platform.aws("s3").get_object(**stored)["Body"].read()
    return content


def signing_keys(platform: RunningPlatform) -> SigningKeys:
    secret = platform.aws("secretsmanager").get_secret_value(SecretId=platform.outputs["signingSecretArn"])
    return SigningKeys.from_json(secret["SecretString"])


def test_a_seat_that_is_sold_again_gets_a_ticket_of_its_own_and_the_old_one_opens_nothing(
    platform: RunningPlatform,
) -> None:
    ada, bob = platform.register(), platform.register()
    event_id = platform.make_event()
    old_id = ada.visitor.book(event_id=event_id, seats=["A-1"])["bookingId"]
    [shown] = platform.wait_for_tickets(ada.visitor, count=1)
    [old] = items_of(platform, old_id)
    old_image = image_of(platform, old)
    assert httpx.get(shown["imageUrl"], timeout=10, trust_env=False).content == old_image

    ada.visitor.mutate("bookings.cancel", {"bookingId": old_id, "idempotencyKey": "changed-my-mind"})
    new_id = bob.visitor.book(event_id=event_id, seats=["A-1"])["bookingId"]
    [ticket] = platform.wait_for_tickets(bob.visitor, count=1)

    [new] = items_of(platform, new_id)
    assert (ticket["seat"], ticket["bookingId"], ticket["qrToken"]) == ("A-1", new_id, new["qrToken"]["S"])
    keys = signing_keys(platform)
    new_text, new_token = scan(image_of(platform, new), keys)
    old_text, old_token = scan(old_image, keys)
    assert (new_token.ticket_id, old_token.ticket_id) == (f"{new_id}:A-1", f"{old_id}:A-1")
    assert new_text == new["qrToken"]["S"] != old_text
    # The old one is dead: its owner is shown none, and who holds the seat now is another booking. What was issued stays
    # as it was, under its own booking: nothing of it leads to the new one.
    assert ada.visitor.tickets() == []
    assert [booking["status"] for booking in ada.visitor.bookings()] == ["cancelled"]
    holders = platform.rows("select booking_id::text from booked_seats where event_id = $1::text::uuid", event_id)
    assert [row["booking_id"] for row in holders] == [new_id]
    assert [{**item, "eventSequence": None} for item in items_of(platform, old_id)] == [{**old, "eventSequence": None}]
    assert image_of(platform, old) == old_image


def test_while_no_image_can_be_stored_bookings_stand_are_mailed_and_have_their_tickets_afterwards(
    platform: RunningPlatform,
) -> None:
    purge(platform)
    ada = platform.register()
    event_id = platform.make_event()
    calls = RecordedCalls(platform.folder.path / "calls.jsonl")
    calls.mark()
    with function_environment(platform, "tickets", AWS_ENDPOINT_URL_S3=_NOBODY_LISTENS):
        booking_id = ada.visitor.book(event_id=event_id, seats=["A-1", "A-2"])["bookingId"]
        [mail] = platform.wait_for_mails(to=ada.email)
        wait_until(
            "an image could not be stored",
            lambda: any(call.status is None for call in calls.of("minitickets-dev-tickets", "s3:PutObject")),
            seconds=_SECONDS,
        )
        assert [item["status"]["S"] for item in items_of(platform, booking_id)][:1] == ["creating"]
        assert {ticket["status"] for ticket in ada.visitor.tickets()} == {"creating"}
        [booking] = ada.visitor.bookings()
        assert (booking["bookingId"], booking["status"], booking["seats"]) == (booking_id, "confirmed", ["A-1", "A-2"])
    reserved = {item["ticketId"]["S"]: item["qrToken"]["S"] for item in items_of(platform, booking_id)}

    # What the queue's visibility timeout (three minutes) would do.
    [row] = platform.rows("select body from outbox where booking_id = $1::text::uuid", booking_id)
    platform.aws("sqs").send_message(QueueUrl=platform.outputs["ticketsQueueUrl"], MessageBody=row["body"])

    tickets = platform.wait_for_tickets(ada.visitor, count=2)
    assert [ticket["seat"] for ticket in tickets] == ["A-1", "A-2"]
    assert reserved.items() <= {ticket["ticketId"]: ticket["qrToken"] for ticket in tickets}.items()
    job = platform.aws("dynamodb").get_item(
        TableName=platform.outputs["processedJobsTable"],
        Key={"jobKey": {"S": booking_confirmed_job_key(booking_id)}},
        ConsistentRead=True,
    )["Item"]
    assert (job["status"]["S"], job["result"]["S"]) == ("done", mail["messageId"])
    purge(platform)
