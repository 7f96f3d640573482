"""The real function from its zip, fed by a real queue, under its documented role; and its stores under less."""

import json
import secrets
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.processes import wait_until
from minitickets_contracts.messages import BookedEvent, BookingConfirmed, EventMoved
from minitickets_contracts.token import SigningKeys, TicketToken
from minitickets_tickets.failures import CallFailed
from minitickets_tickets.images import TicketImages
from minitickets_tickets.issue import Issued, TicketIssuer
from minitickets_tickets.qr import draw_qr
from minitickets_tickets.signing import SigningSecret
from minitickets_tickets.store import DynamoTickets
from ops.artifacts import build
from tests.fixtures.emulator import RunningEmulator, allow
from tests.fixtures.ticket_fakes import read_qr

pytestmark = pytest.mark.integration

MakeMessage = Callable[..., BookingConfirmed]
Move = Callable[..., EventMoved]
KEYS = SigningKeys("k1", {"k1": "key-of-the-emulator-" + "a" * 32})

# Statement → its actions; the resource of each is the fixture's.
GRANTS = {
    "TicketsTable": ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"),
    "WriteTicketImages": ("s3:PutObject",),
    "ReadSigningSecret": ("secretsmanager:GetSecretValue",),
}


@dataclass(frozen=True, kw_only=True)
class Storage:
    """A tickets table, a bucket and a secret of the test's own."""

    emulator: RunningEmulator
    table: str
    bucket: str
    secret_arn: str

    def statements(self, *, without: str | None = None) -> list[dict[str, Any]]:
        """The documented statements, less one action."""
        resources = {
            "TicketsTable": f"arn:aws:dynamodb:{self.emulator.region}:{self.emulator.account}:table/{self.table}",
            "WriteTicketImages": f"arn:aws:s3:::{self.bucket}/tickets/*",
            "ReadSigningSecret": self.secret_arn,
        }
        granted = {sid: [action for action in actions if action != without] for sid, actions in GRANTS.items()}
        return [allow(*actions, on=resources[sid]) for sid, actions in granted.items() if actions]

    def issuer(self, *, without: str | None = None) -> TicketIssuer:
        """The real stores under a role with those statements."""
        clients = self.emulator.as_role(self.emulator.make_role(*self.statements(without=without)))
        return TicketIssuer(
            tickets=DynamoTickets(clients("dynamodb"), table=self.table),
            images=TicketImages(clients("s3"), bucket=self.bucket),
            signing=SigningSecret(clients("secretsmanager"), arn=self.secret_arn),
        )

    def item(self, message: BookingConfirmed, seat: str) -> dict[str, str]:
        """Its attributes as texts, numbers too; none if there is no such item."""
        key = self.key(message, seat)
        reply = self.emulator.aws("dynamodb").get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return {name: str(next(iter(value.values()))) for name, value in reply.get("Item", {}).items()}

    def key(self, message: BookingConfirmed, seat: str) -> dict[str, Any]:
        return {"userId": {"S": message.customer.user_id}, "ticketId": {"S": f"{message.booking_id}:{seat}"}}

    def found_on(self, event: BookedEvent) -> list[str]:
        """The ids of the tickets that the index holds for that start."""
        found = self.emulator.aws("dynamodb").query(
            TableName=self.table,
            IndexName="by-event-date",
            KeyConditionExpression="eventDate = :date AND begins_with(eventDateKey, :start)",
            ExpressionAttributeValues={":date": {"S": event.starts_at[:10]}, ":start": {"S": event.starts_at}},
        )
        return [item["ticketId"]["S"] for item in found["Items"]]

    def image(self, key: str) -> dict[str, Any]:
        stored: dict[str, Any] = self.emulator.aws("s3").get_object(Bucket=self.bucket, Key=key)
        return {"content": stored["Body"].read(), "type": stored["ContentType"]}


@pytest.fixture(scope="module")
def storage(emulator: RunningEmulator) -> Storage:
    suffix = secrets.token_hex(4)
    table, bucket = f"tickets-{suffix}", f"assets-{suffix}"
    emulator.aws("dynamodb").create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "userId", "KeyType": "HASH"}, {"AttributeName": "ticketId", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"}
            for name in ("userId", "ticketId", "eventDate", "eventDateKey")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-event-date",
                "KeySchema": [
                    {"AttributeName": "eventDate", "KeyType": "HASH"},
                    {"AttributeName": "eventDateKey", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    emulator.aws("s3").create_bucket(Bucket=bucket)
    secret = emulator.aws("secretsmanager").create_secret(Name=f"signing-{suffix}", SecretString=KEYS.to_json())
    return Storage(emulator=emulator, table=table, bucket=bucket, secret_arn=secret["ARN"])


@dataclass(frozen=True, kw_only=True)
class Function:
    """The function in the emulator, and the queue that feeds it."""

    emulator: RunningEmulator
    queue_url: str
    dead_letters_url: str

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.emulator.aws("sqs").send_message(QueueUrl=self.queue_url, MessageBody=body)

    def wait_until_drained(self) -> None:
        def is_empty() -> bool:
            names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
            counts = self.emulator.aws("sqs").get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=names)
            return all(int(counts["Attributes"][name]) == 0 for name in names)

        wait_until("the queue is drained", is_empty, seconds=30)

    def dead_letters(self) -> list[str]:
        reply = self.emulator.aws("sqs").receive_message(
            QueueUrl=self.dead_letters_url, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        return [message["Body"] for message in reply.get("Messages", [])]


@pytest.fixture(scope="module")
def function(storage: Storage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Function]:
    emulator, suffix = storage.emulator, secrets.token_hex(4)
    sqs, lambda_ = emulator.aws("sqs"), emulator.aws("lambda")
    dead_letters_url = sqs.create_queue(QueueName=f"tickets-{suffix}-dlq")["QueueUrl"]
    redrive = {
        "deadLetterTargetArn": f"arn:aws:sqs:{emulator.region}:{emulator.account}:tickets-{suffix}-dlq",
        "maxReceiveCount": 2,
    }
    queue_url = sqs.create_queue(
        QueueName=f"tickets-{suffix}",
        Attributes={"VisibilityTimeout": "2", "RedrivePolicy": json.dumps(redrive)},
    )["QueueUrl"]
    queue_arn = f"arn:aws:sqs:{emulator.region}:{emulator.account}:tickets-{suffix}"
    zip_path: Path = tmp_path_factory.mktemp("zip") / "tickets.zip"
    lambda_.create_function(
        FunctionName=f"tickets-{suffix}",
        Runtime="python3.13",
        Role=emulator.make_role(
            *storage.statements(),
            allow("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", on=queue_arn),
        ),
        Handler="minitickets_tickets.handler.lambda_handler",
        Code={"ZipFile": build("tickets", to=zip_path).path.read_bytes()},
        Timeout=30,
        MemorySize=256,
        Environment={
            "Variables": {
                "STAGE": "test",
                "TICKETS_TABLE": storage.table,
                "ASSETS_BUCKET": storage.bucket,
                "SIGNING_SECRET_ARN": storage.secret_arn,
                "POWERTOOLS_SERVICE_NAME": "tickets",
                "AWS_ENDPOINT_URL": emulator.endpoint,
            }
        },
    )
    mapping = lambda_.create_event_source_mapping(
        EventSourceArn=queue_arn,
        FunctionName=f"tickets-{suffix}",
        BatchSize=1,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        ScalingConfig={"MaximumConcurrency": 2},
    )
    yield Function(emulator=emulator, queue_url=queue_url, dead_letters_url=dead_letters_url)
    lambda_.delete_event_source_mapping(UUID=mapping["UUID"])
    lambda_.delete_function(FunctionName=f"tickets-{suffix}")


def test_a_booking_published_twice_becomes_one_ticket_a_seat_that_a_scanner_reads(
    storage: Storage, function: Function, make_message: MakeMessage
) -> None:
    message = make_message("A-1", "A-2", "B-17")

    function.send(message.to_json(), message.to_json())
    wait_until("the last seat is ready", lambda: storage.item(message, "B-17").get("status") == "ready", seconds=30)
    function.wait_until_drained()

    for seat in message.seats:
        item = storage.item(message, seat)
        image = storage.image(item["imageKey"])
        said = TicketToken.verify(read_qr(image["content"]), KEYS)
        assert said.ticket_id == f"{message.booking_id}:{seat}"
        assert read_qr(image["content"]) == item["qrToken"]
        assert image["type"] == "image/png"
        assert item["status"] == "ready"
    assert function.dead_letters() == []


def test_the_tickets_of_a_day_are_found_by_its_date(
    storage: Storage, function: Function, make_message: MakeMessage
) -> None:
    message = make_message("A-1")
    function.send(message.to_json())
    wait_until("the seat is ready", lambda: storage.item(message, "A-1").get("status") == "ready", seconds=30)

    assert f"{message.booking_id}:A-1" in storage.found_on(message.event)


def test_tickets_follow_their_event_through_the_queue_in_whatever_order_the_news_comes(
    storage: Storage, function: Function, make_message: MakeMessage, move: Move
) -> None:
    message, other = make_message("A-1", "A-2"), make_message("C-3")
    first, second = move(message, 1), move(message, 2)
    function.send(message.to_json())
    wait_until("the last seat is ready", lambda: storage.item(message, "A-2").get("status") == "ready", seconds=30)
    tokens = [storage.item(message, seat)["qrToken"] for seat in message.seats]
    images = [storage.image(storage.item(message, seat)["imageKey"]) for seat in message.seats]

    # The later move overtakes the earlier one, and another booking's move overtakes the booking itself.
    moved_first = move(other, 1)
    function.send(second.to_json(), moved_first.to_json())
    wait_until("it moved", lambda: storage.item(message, "A-2")["eventSequence"] == "2", seconds=30)
    wait_until("the other is ready", lambda: storage.item(other, "C-3").get("status") == "ready", seconds=30)
    function.send(first.to_json(), other.to_json(), message.to_json(), second.to_json())
    function.wait_until_drained()

    for seat, event in (("A-1", second.event), ("A-2", second.event), ("C-3", moved_first.event)):
        booking = other if seat == "C-3" else message
        item = storage.item(booking, seat)
        assert item["eventStartsAt"] == event.starts_at
        assert (item["timeZone"], item["venue"]) == (event.time_zone, event.venue)
        assert item["eventDate"] == event.starts_at[:10]
        assert item["eventDateKey"] == f"{event.starts_at}#{booking.booking_id}:{seat}"
        assert item["eventSequence"] == str(event.sequence)
        assert item["status"] == "ready"
    assert [storage.item(message, seat)["qrToken"] for seat in message.seats] == tokens
    assert [storage.image(storage.item(message, seat)["imageKey"]) for seat in message.seats] == images
    assert f"{message.booking_id}:A-1" in storage.found_on(second.event)
    assert f"{message.booking_id}:A-1" not in storage.found_on(message.event)
    assert function.dead_letters() == []


def test_a_ticket_moves_and_its_later_state_stays(storage: Storage, make_message: MakeMessage, move: Move) -> None:
    """Of two moves in the order 2, 1; the function has no state of its own beyond ready, so the test writes it."""
    message = make_message("A-1")
    issuer = storage.issuer()
    issuer.issue(message, seconds_left=lambda: 30.0)
    storage.emulator.aws("dynamodb").update_item(
        TableName=storage.table,
        Key=storage.key(message, "A-1"),
        UpdateExpression="SET #status = :later",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":later": {"S": "checked-in"}},
    )

    outcomes = [issuer.issue(move(message, sequence), seconds_left=lambda: 30.0) for sequence in (2, 1)]

    assert outcomes == [Issued(made=0, found=1, moved=1), Issued(made=0, found=1)]
    item = storage.item(message, "A-1")
    assert (item["status"], item["eventDate"], item["eventSequence"]) == ("checked-in", "2027-01-02", "2")


def test_poison_is_a_dead_letter_and_foreign_messages_are_gone(function: Function, make_message: MakeMessage) -> None:
    poison = f"poison {uuid.uuid4()}"
    newer = json.dumps({**json.loads(make_message().to_json()), "version": 2})
    foreign = json.dumps({"type": "booking.cancelled", "version": 9})

    function.send(poison, newer, foreign)
    found: set[str] = set()

    def both_arrived() -> bool:
        found.update(function.dead_letters())
        return {poison, newer} <= found

    wait_until("both are dead letters", both_arrived, seconds=30)
    function.wait_until_drained()
    assert foreign not in found


def test_eight_attempts_at_once_leave_one_token_and_its_image(storage: Storage, make_message: MakeMessage) -> None:
    message = make_message("A-1", "A-2")
    issuers = [storage.issuer() for _ in range(8)]

    with ThreadPoolExecutor(8) as pool:
        attempts = [pool.submit(issuer.issue, message, seconds_left=lambda: 30.0) for issuer in issuers]
    issued = [attempt.result() for attempt in attempts]

    assert all(each.made + each.found == 2 for each in issued)
    for seat in message.seats:
        item = storage.item(message, seat)
        assert item["status"] == "ready"
        assert storage.image(item["imageKey"])["content"] == draw_qr(item["qrToken"])


def leave_half_done(storage: Storage, message: BookingConfirmed) -> None:
    """Reserved, not uploaded: as a process leaves it that died in between."""
    with pytest.raises(CallFailed, match="PutObject"):
        storage.issuer(without="s3:PutObject").issue(message, seconds_left=lambda: 30.0)


def test_the_documented_actions_are_enough_to_resume(storage: Storage, make_message: MakeMessage) -> None:
    message = make_message("A-1")
    leave_half_done(storage, message)
    token = storage.item(message, "A-1")["qrToken"]

    assert storage.issuer().issue(message, seconds_left=lambda: 30.0) == Issued(made=1, found=0)
    assert storage.item(message, "A-1")["qrToken"] == token


@pytest.mark.parametrize("action", [action for actions in GRANTS.values() for action in actions])
def test_each_documented_action_is_needed(storage: Storage, make_message: MakeMessage, action: str) -> None:
    message = make_message("A-1")
    leave_half_done(storage, message)

    with pytest.raises(CallFailed, match=f"{action.split(':')[1]} failed: AccessDenied") as refused:
        storage.issuer(without=action).issue(message, seconds_left=lambda: 30.0)

    assert not refused.value.may_pass
    assert storage.item(message, "A-1")["status"] == "creating"


def test_a_service_that_does_not_answer_costs_seconds_not_a_minute(
    storage: Storage, make_message: MakeMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real clients' timeouts: a listener that accepts and stays silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
        }.items():
            monkeypatch.setenv(name, value)
        secret = SigningSecret.connect(arn=storage.secret_arn)
        began = time.monotonic()
        with pytest.raises(CallFailed, match="GetSecretValue failed: ReadTimeoutError") as failure:
            secret.keys()
        secret._client.close()

    assert failure.value.may_pass
    assert time.monotonic() - began < 4
