"""What the queue is told about each message, and what the log says about it."""

import io
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import ParamValidationError

from minitickets_contracts.messages import BookingConfirmed, BookingMessage, EventMoved
from minitickets_contracts.token import MAX_TOKEN_CHARACTERS
from minitickets_tickets.batch import process_batch
from minitickets_tickets.issue import Issued
from tests.fixtures.ticket_fakes import FakeAws, FakeProcess, refusal

pytestmark = pytest.mark.unit

MakeMessage = Callable[..., BookingConfirmed]


class Log:
    """A logger whose lines the test reads."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        # Powertools keeps one handler a name: a name of its own gives the test a stream of its own.
        self.logger = Logger(service=f"test-{uuid.uuid4()}", stream=self._stream, level="DEBUG")

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def log() -> Log:
    return Log()


def record(body: str, message_id: str = "m-1", receives: int = 1) -> dict[str, Any]:
    return {"messageId": message_id, "body": body, "attributes": {"ApproximateReceiveCount": str(receives)}}


def changed(message: BookingConfirmed, **changes: object) -> str:
    return json.dumps({**json.loads(message.to_json()), **changes})


def failed_ids(aws: FakeAws, log: Log, *records: dict[str, Any], process: FakeProcess | None = None) -> list[str]:
    process = process or FakeProcess(aws=aws)
    reply = process_batch(
        {"Records": list(records)}, issue=process.issuer().issue, logger=log.logger, seconds_left=lambda: 30.0
    )
    assert list(reply) == ["batchItemFailures"]
    return [failure["itemIdentifier"] for failure in reply["batchItemFailures"]]


def test_an_issued_message_is_acknowledged(aws: FakeAws, log: Log, make_message: MakeMessage) -> None:
    assert failed_ids(aws, log, record(make_message("A-1", "A-2").to_json())) == []
    assert len(aws.objects) == 2


def test_a_message_of_another_consumer_is_acknowledged_and_issues_nothing(
    aws: FakeAws, log: Log, make_message: MakeMessage
) -> None:
    assert failed_ids(aws, log, record(changed(make_message(), type="booking.cancelled", version=7))) == []
    assert aws.items == {}


def test_a_moved_event_is_ours_and_its_neighbours_news_is_not(
    aws: FakeAws, log: Log, make_message: MakeMessage, move: Callable[..., EventMoved]
) -> None:
    moved = move(make_message("A-1"), 1)

    assert failed_ids(aws, log, record(moved.to_json())) == []
    assert aws.item(f"{moved.booking_id}:A-1")["eventSequence"] == {"N": "1"}
    before = {key: dict(item) for key, item in aws.items.items()}
    for type_ in ("booking.mail-requested", "booking.cancelled", "password.reset-requested", "nobody.knows"):
        assert failed_ids(aws, log, record(json.dumps({"type": type_, "version": 9}))) == []
    assert aws.items == before


def test_a_move_without_a_sequence_is_poison(
    aws: FakeAws, log: Log, make_message: MakeMessage, move: Callable[..., EventMoved]
) -> None:
    document = json.loads(move(make_message("A-1"), 1).to_json())
    del document["event"]["sequence"]

    assert failed_ids(aws, log, record(json.dumps(document))) == ["m-1"]
    assert log.lines[0]["reason"].startswith("event.sequence: ")
    assert aws.items == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("", "message"),
        ("not JSON", "message"),
        ("[]", "message"),
        ("[" * 20_000, "message"),
        ('"\\ud800"', "message"),
        ("{}", "type"),
        ('{"type": 5}', "type"),
    ],
)
def test_a_malformed_message_comes_again_until_it_is_a_dead_letter(
    aws: FakeAws, log: Log, body: str, field: str
) -> None:
    assert failed_ids(aws, log, record(body)) == ["m-1"]
    [line] = log.lines
    assert (line["level"], line["sqsMessageId"]) == ("ERROR", "m-1")
    assert line["reason"].startswith(f"{field}: ")
    assert aws.items == {}


@pytest.mark.parametrize("version", [0, 2, "1", True, None])
def test_an_unknown_version_of_our_own_type_is_poison(
    aws: FakeAws, log: Log, make_message: MakeMessage, version: object
) -> None:
    assert failed_ids(aws, log, record(changed(make_message(), version=version))) == ["m-1"]
    assert log.lines[0]["reason"].startswith("version: ")
    assert aws.items == {}


def test_a_poisoned_message_disturbs_none_of_its_nine_siblings(
    aws: FakeAws, log: Log, make_message: MakeMessage
) -> None:
    records = [record(make_message("A-1").to_json(), f"m-{number}") for number in range(10)]
    records[4]["body"] = "{"

    assert failed_ids(aws, log, *records) == ["m-4"]
    assert len(aws.objects) == 9


def test_ten_failures_are_reported_and_nothing_is_raised(aws: FakeAws, log: Log) -> None:
    records = [record("poison", f"m-{number}") for number in range(10)]

    assert failed_ids(aws, log, *records) == [f"m-{number}" for number in range(10)]


def test_an_event_that_is_no_batch_is_refused(aws: FakeAws, log: Log) -> None:
    issuer = FakeProcess(aws=aws).issuer()

    with pytest.raises(ValueError, match="must hold the Records of an SQS batch"):
        process_batch({"detail": {}}, issue=issuer.issue, logger=log.logger, seconds_left=lambda: 30.0)


def test_a_fault_of_our_own_fails_its_message_alone(aws: FakeAws, log: Log, make_message: MakeMessage) -> None:
    first, second = make_message("A-1"), make_message("A-1")

    def issue(message: BookingMessage, *, seconds_left: Callable[[], float]) -> Issued:
        if message.booking_id == first.booking_id:
            raise KeyError("canary.mail@example.org")
        return Issued(made=1, found=0)

    reply = process_batch(
        {"Records": [record(first.to_json(), "m-1"), record(second.to_json(), "m-2")]},
        issue=issue,
        logger=log.logger,
        seconds_left=lambda: 30.0,
    )

    assert reply == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
    assert log.lines[0]["reason"] == "KeyError"
    assert any(frame.startswith("issue:") for frame in log.lines[0]["frames"])
    assert "canary" not in log.text


def test_every_line_about_a_booking_carries_its_correlation_id(
    aws: FakeAws, log: Log, make_message: MakeMessage
) -> None:
    message = make_message("A-1")

    failed_ids(aws, log, record(message.to_json(), receives=2), record("poison", "m-2"))

    issued, poisoned = log.lines
    assert issued["correlation_id"] == "correlation-7"
    assert issued["bookingId"] == message.booking_id
    assert (issued["receives"], issued["made"], issued["found"]) == ("2", 1, 0)
    assert "correlation_id" not in poisoned, "one message's id must not stick to the next"


def test_a_stored_token_that_no_image_can_hold_is_poison_to_its_own_message_alone(
    aws: FakeAws, log: Log, make_message: MakeMessage
) -> None:
    large, small = make_message("A-1"), make_message("A-2")
    failed_ids(aws, Log(), record(large.to_json()))
    item = aws.item(f"{large.booking_id}:A-1")
    item |= {"status": {"S": "creating"}, "qrToken": {"S": "a" * (MAX_TOKEN_CHARACTERS + 1)}}
    aws.puts.clear()

    # However often it comes: its queue's dead letters end it.
    for receives in (1, 2, 3):
        records = record(large.to_json(), "large", receives), record(small.to_json(), "small")
        assert failed_ids(aws, log, *records) == ["large"]

    assert [f"{large.booking_id}/A-1" in key for key, _ in aws.puts] == [False]
    assert item["status"] == {"S": "creating"}
    assert sum("qrToken differs" in line.get("reason", "") for line in log.lines) == 3


def test_no_time_left_is_reported_as_failed(aws: FakeAws, log: Log, make_message: MakeMessage) -> None:
    issuer = FakeProcess(aws=aws).issuer()
    reply = process_batch(
        {"Records": [record(make_message("A-1").to_json())]},
        issue=issuer.issue,
        logger=log.logger,
        seconds_left=lambda: 1.0,
    )

    assert reply == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}
    assert log.lines[0]["reason"] == "out of time after 0 of 1 seats"
    assert aws.items == {}


@pytest.mark.parametrize("action", ["none", "GetSecretValue", "PutItem", "GetItem", "PutObject", "UpdateItem"])
@pytest.mark.parametrize("kind", ["service", "client", "ours"])
def test_neither_tokens_nor_personal_data_reach_the_log(
    aws: FakeAws, log: Log, make_message: MakeMessage, action: str, kind: str
) -> None:
    message = make_message("A-1")
    failed_ids(aws, Log(), record(message.to_json()))
    item = aws.item(f"{message.booking_id}:A-1")
    item["status"] = {"S": "creating"}
    secret = aws.keys.keys["k1"]
    spoken = f"{item['qrToken']['S']} {message.customer.email} {message.customer.name} {secret}"

    def fail(current: str) -> None:
        if current != action:
            return
        if kind == "service":
            raise refusal(current, "ValidationException", text=spoken)
        if kind == "client":
            raise ParamValidationError(report=spoken)
        raise ValueError(spoken)

    failed = failed_ids(aws, log, record(message.to_json()), process=FakeProcess(aws=aws, before=fail))

    assert failed == ([] if action == "none" else ["m-1"])
    for canary in (
        *item["qrToken"]["S"].split(".")[1:],
        message.customer.email,
        message.customer.name,
        message.customer.user_id,
        secret,
    ):
        assert canary not in log.text
    assert log.lines
