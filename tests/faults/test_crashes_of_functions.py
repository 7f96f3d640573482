"""Real processes of both functions, killed at each of their calls to AWS, and what the next delivery makes of it."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from apps.worker.tests.worker_under_test import booking
from local.ticket_scan import scan
from minitickets_contracts.keys import booking_confirmed_job_key
from minitickets_contracts.messages import BookingConfirmed
from minitickets_contracts.token import SigningKeys
from tests.faults.boundary import When
from tests.faults.functions import FunctionProcess, Functions, sqs_event
from tests.fixtures.platform import RunningPlatform

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def functions(platform: RunningPlatform) -> Functions:
    return Functions(platform=platform)


@pytest.fixture(scope="module")
def worker(functions: Functions) -> Iterator[FunctionProcess]:
    """Whoever gets the next delivery."""
    process = functions.start("worker", endpoint=f"http://127.0.0.1:{functions.aws_port}")
    yield process
    process.close()


@pytest.fixture(scope="module")
def ticket_maker(functions: Functions) -> Iterator[FunctionProcess]:
    """Whoever gets the next delivery."""
    process = functions.start("tickets", endpoint=f"http://127.0.0.1:{functions.aws_port}")
    yield process
    process.close()


def a_booking(*seats: str) -> BookingConfirmed:
    booking_id = str(uuid4())
    return booking(booking_id, email=f"{booking_id}@example.org", seats=seats or ("A-1",))


def job_of(platform: RunningPlatform, message: BookingConfirmed) -> dict[str, Any]:
    key = {"jobKey": {"S": booking_confirmed_job_key(message.booking_id)}}
    found = platform.aws("dynamodb").get_item(
        TableName=platform.outputs["processedJobsTable"], Key=key, ConsistentRead=True
    )
    item: dict[str, Any] = found.get("Item", {})
    return item


def let_the_lease_end(platform: RunningPlatform, message: BookingConfirmed) -> None:
    """What 25 seconds do."""
    item = job_of(platform, message)
    if item.get("status") == {"S": "in-progress"}:
        platform.aws("dynamodb").put_item(
            TableName=platform.outputs["processedJobsTable"], Item={**item, "leaseUntil": {"N": "1"}}
        )


@pytest.mark.parametrize(
    ("action", "when", "nth", "mails"),
    [
        ("GetItem", "before", 1, 1),
        ("PutItem", "before", 1, 1),  # the lease
        ("PutItem", "after", 1, 1),
        ("SendEmail", "before", 1, 1),
        ("SendEmail", "after", 1, 2),  # accepted, and nobody knows: the one mail too many
        ("PutItem", "before", 2, 2),  # the record
        ("PutItem", "after", 2, 1),
    ],
)
def test_a_worker_killed_at_a_call_loses_no_mail_and_doubles_it_only_between_send_and_record(
    platform: RunningPlatform,
    functions: Functions,
    worker: FunctionProcess,
    action: str,
    when: When,
    nth: int,
    mails: int,
) -> None:
    message = a_booking()
    functions.dies("worker", sqs_event([message.to_json()]), action, when, nth=nth)

    let_the_lease_end(platform, message)
    assert worker.handle(sqs_event([message.to_json()], receives=2)) == []

    assert job_of(platform, message)["status"] == {"S": "done"}
    assert len(platform.mails(to=message.customer.email)) == mails


def test_a_worker_killed_in_mid_batch_sends_none_of_the_finished_mails_again(
    platform: RunningPlatform, functions: Functions, worker: FunctionProcess
) -> None:
    messages = [a_booking() for _ in range(4)]
    bodies = [message.to_json() for message in messages]
    functions.dies("worker", sqs_event(bodies), "SendEmail", "before", nth=3)

    let_the_lease_end(platform, messages[2])
    assert worker.handle(sqs_event(bodies, receives=2)) == []

    assert [len(platform.mails(to=message.customer.email)) for message in messages] == [1, 1, 1, 1]


def test_a_live_lease_of_a_dead_worker_brings_the_message_back_instead_of_losing_it(
    platform: RunningPlatform, functions: Functions, worker: FunctionProcess
) -> None:
    message = a_booking()
    functions.dies("worker", sqs_event([message.to_json()]), "SendEmail", "before")

    event = sqs_event([message.to_json()], receives=2)
    assert worker.handle(event) == [event["Records"][0]["messageId"]]

    assert platform.mails(to=message.customer.email) == []


def tickets_of(platform: RunningPlatform, message: BookingConfirmed) -> list[dict[str, Any]]:
    found = platform.aws("dynamodb").query(
        TableName=platform.outputs["ticketsTable"],
        KeyConditionExpression="userId = :user AND begins_with(ticketId, :booking)",
        ExpressionAttributeValues={
            ":user": {"S": message.customer.user_id},
            ":booking": {"S": f"{message.booking_id}:"},
        },
        ConsistentRead=True,
    )
    items: list[dict[str, Any]] = found["Items"]
    return items


def image_of(platform: RunningPlatform, item: dict[str, Any]) -> bytes:
    got = platform.aws("s3").get_object(Bucket=platform.outputs["assetsBucket"], Key=item["imageKey"]["S"])
    content: bytes = got["Body"].read()
    return content


@pytest.mark.parametrize(
    ("action", "when", "nth"),
    [
        ("GetSecretValue", "after", 1),
        ("PutItem", "before", 1),
        ("PutItem", "after", 1),  # reserved
        ("PutObject", "before", 1),
        ("PutObject", "after", 1),
        ("UpdateItem", "before", 1),
        ("UpdateItem", "after", 1),
        ("PutItem", "after", 2),  # the second seat
    ],
)
def test_a_tickets_function_killed_at_a_call_leaves_one_ready_ticket_a_seat_under_its_first_token(
    platform: RunningPlatform,
    functions: Functions,
    ticket_maker: FunctionProcess,
    action: str,
    when: When,
    nth: int,
) -> None:
    message = a_booking("A-1", "A-2")
    functions.dies("tickets", sqs_event([message.to_json()]), action, when, nth=nth)
    reserved = {item["ticketId"]["S"]: item["qrToken"]["S"] for item in tickets_of(platform, message)}
    is_drawn = (action, when) in (("PutObject", "after"), ("UpdateItem", "before"), ("UpdateItem", "after"))
    drawn = [image_of(platform, item) for item in tickets_of(platform, message)] if is_drawn else []

    assert ticket_maker.handle(sqs_event([message.to_json()], receives=2)) == []

    items = tickets_of(platform, message)
    assert [(item["seat"]["S"], item["status"]["S"]) for item in items] == [("A-1", "ready"), ("A-2", "ready")]
    tokens = {item["ticketId"]["S"]: item["qrToken"]["S"] for item in items}
    assert reserved.items() <= tokens.items(), "whoever reserved first decided"
    secret = platform.aws("secretsmanager").get_secret_value(SecretId=platform.outputs["signingSecretArn"])
    keys = SigningKeys.from_json(secret["SecretString"])
    images = [image_of(platform, item) for item in items]
    assert [scan(png, keys)[0] for png in images] == [item["qrToken"]["S"] for item in items]
    assert drawn == images[: len(drawn)], "the same bytes again"


def test_poison_in_a_real_batch_costs_its_nine_siblings_nothing(
    platform: RunningPlatform, worker: FunctionProcess
) -> None:
    messages = [a_booking() for _ in range(9)]
    bodies = [message.to_json() for message in messages]
    event = sqs_event([*bodies[:4], json.dumps({"type": "booking.confirmed", "version": 1}), *bodies[4:]])
    assert worker.handle(event) == [event["Records"][4]["messageId"]]
    assert [len(platform.mails(to=message.customer.email)) for message in messages] == [1] * 9
