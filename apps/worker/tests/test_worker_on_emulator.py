"""The function as Lambda loads it, under its documented role, against the emulator."""

import io
import json
import secrets
import socket
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from icalendar import Calendar

from apps.worker.tests.conftest import LoadFunction
from apps.worker.tests.fakes import FakeInvocation, lost_reply
from apps.worker.tests.worker_under_test import (
    BOOKING_ID,
    NOWHERE,
    RESET_TOKEN,
    Message,
    booking,
    cancelled,
    moved,
    requested,
    reset,
)
from local.mail_recorder import MailRecorder
from local.mailbox import Mailbox
from local.processes import free_port, wait_until
from minitickets_contracts.messages import BookingConfirmed
from minitickets_worker.booking_mails import compose_confirmation
from minitickets_worker.mailer import MailNotSentError, MailOutcomeUnknownError, SesMailer
from minitickets_worker.processed_jobs import LEASE_SECONDS, DynamoProcessedJobs, JobInProgressError
from tests.fixtures.emulator import RunningEmulator, allow

pytestmark = pytest.mark.integration

KEY = f"booking.confirmed:{uuid.uuid4()}"


@dataclass
class Context:
    """Lambda's context of one invocation."""

    milliseconds: int = 9_900
    aws_request_id: str = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The worker's resources in the emulator, and its function."""

    emulator: RunningEmulator
    table: str
    queue_url: str
    sender: str
    mailbox: Mailbox
    function: ModuleType

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.emulator.aws("sqs").send_message(QueueUrl=self.queue_url, MessageBody=body)

    def receive(self) -> dict[str, list[dict[str, Any]]]:
        """The next batch, as Lambda hands it to the function."""
        answer = self.emulator.aws("sqs").receive_message(
            QueueUrl=self.queue_url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["ApproximateReceiveCount"]
        )
        return {
            "Records": [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "attributes": message["Attributes"],
                }
                for message in answer.get("Messages", [])
            ]
        }

    def invoke(self, event: object, context: Context | None = None) -> list[str]:
        response = self.function.lambda_handler(event, context or Context())
        return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]

    def record(self, job_key: str) -> dict[str, Any]:
        key = {"jobKey": {"S": job_key}}
        item: dict[str, Any] = self.emulator.aws("dynamodb").get_item(TableName=self.table, Key=key)["Item"]
        return item


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    return Mailbox(tmp_path / "mailbox")


@pytest.fixture
def recorder(emulator: RunningEmulator, mailbox: Mailbox) -> Iterator[MailRecorder]:
    """In front of the emulator's SES, which drops files and headers."""
    upstream = int(emulator.endpoint.rpartition(":")[2])
    recorder = MailRecorder(port=free_port(), upstream_port=upstream, mailbox=mailbox)
    stop = recorder.start()
    yield recorder
    stop()


@pytest.fixture
def stage(emulator: RunningEmulator, recorder: MailRecorder, mailbox: Mailbox, load_function: LoadFunction) -> Stage:
    suffix = secrets.token_hex(4)
    table, sender = f"processed-jobs-{suffix}", f"tickets-{suffix}@example.org"
    emulator.aws("dynamodb").create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "jobKey", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "jobKey", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    queue_url = emulator.aws("sqs").create_queue(QueueName=f"jobs-{suffix}", Attributes={"VisibilityTimeout": "1"})[
        "QueueUrl"
    ]
    emulator.aws("sesv2").create_email_identity(EmailIdentity=sender)
    queue_arn = f"arn:aws:sqs:{emulator.region}:{emulator.account}:jobs-{suffix}"
    table_arn = f"arn:aws:dynamodb:{emulator.region}:{emulator.account}:table/{table}"
    role = emulator.make_role(
        # What the worker itself calls. The emulator asks for the batch action by its own name, and for mails on "*".
        allow("sqs:ChangeMessageVisibility", "sqs:ChangeMessageVisibilityBatch", on=queue_arn),
        allow("dynamodb:GetItem", "dynamodb:PutItem", on=table_arn),
        allow("ses:SendEmail", on="*"),
    )
    credentials = emulator.credentials_as(role)
    function = load_function(
        {
            "STAGE": "test",
            "PROCESSED_JOBS_TABLE": table,
            "JOBS_QUEUE_URL": queue_url,
            "SENDER": sender,
            "POWERTOOLS_SERVICE_NAME": f"worker-{suffix}",
            "AWS_DEFAULT_REGION": emulator.region,
            "AWS_ENDPOINT_URL": emulator.endpoint,
            "AWS_ENDPOINT_URL_SESV2": recorder.endpoint,
            "PUBLIC_URL": "https://tickets.example.org",
            "AWS_ACCESS_KEY_ID": credentials.access_key_id,
            "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key,
            "AWS_SESSION_TOKEN": credentials.session_token or "",
        }
    )
    return Stage(
        emulator=emulator,
        table=table,
        queue_url=queue_url,
        sender=sender,
        mailbox=mailbox,
        function=function,
    )


def jobs_of(stage: Stage, invocation: FakeInvocation, *, client: Any = None) -> DynamoProcessedJobs:
    return DynamoProcessedJobs(
        client=client or stage.function._clients.dynamodb, table=stage.table, invocation=invocation
    )


def test_a_booking_published_twice_is_mailed_once_and_recorded(stage: Stage) -> None:
    output = io.StringIO()
    stage.function._log.registered_handler.setStream(output)
    booking_id = str(uuid.uuid4())
    stage.send(booking(booking_id).to_json(), booking(booking_id).to_json())
    event = stage.receive()
    assert len(event["Records"]) == 2
    assert stage.invoke(event) == []
    item = stage.record(f"booking.confirmed:{booking_id}")
    assert item["status"] == {"S": "done"}
    assert item["result"]["S"]
    assert [json.loads(line)["message"] for line in output.getvalue().splitlines()] == [
        "mail accepted",
        "mail skipped as duplicate",
    ]


@pytest.mark.parametrize(
    ("message", "method", "sequence"),
    [
        (booking(), "PUBLISH", 0),
        (requested(booking()), "PUBLISH", 0),
        (moved(booking(), sequence=3), "PUBLISH", 3),
        (cancelled(booking(), sequence=3), "CANCEL", 4),
    ],
    ids=lambda value: getattr(value, "TYPE", ""),
)
def test_each_message_about_a_booking_is_mailed_once_with_its_calendar_file(
    stage: Stage, message: Message, method: str, sequence: int
) -> None:
    stage.send(message.to_json(), message.to_json())
    assert stage.invoke(stage.receive()) == []
    [mail] = stage.mailbox.mails(to="ada@example.org")
    assert stage.record(message.job_key)["result"] == {"S": mail.message_id}
    assert "Night of Strings" in mail.subject
    assert BOOKING_ID in mail.text
    assert ("Auto-Submitted", "auto-generated") in mail.headers
    [attachment] = mail.attachments
    assert attachment.file_name == "booking.ics"
    assert attachment.content_type == f"text/calendar; method={method}; charset=utf-8"
    calendar = Calendar.from_ical(attachment.data)
    [entry] = calendar.events
    assert (str(calendar["METHOD"]), entry.sequence) == (method, sequence)


def test_a_password_reset_is_mailed_once_with_its_link(stage: Stage) -> None:
    message = reset(expires_at="9999-01-01T00:00:00Z")
    stage.send(message.to_json(), message.to_json())
    assert stage.invoke(stage.receive()) == []
    [mail] = stage.mailbox.mails(to="ada@example.org")
    assert f"https://tickets.example.org/reset-password?token={RESET_TOKEN}" in mail.text
    assert mail.attachments == []
    assert stage.record(message.job_key)["status"] == {"S": "done"}
    stored = json.dumps(stage.emulator.aws("dynamodb").scan(TableName=stage.table)["Items"])
    assert "canary" not in stored, "the token is for the mail alone"


def test_a_mail_asked_for_again_leaves_the_record_of_the_first_untouched(stage: Stage) -> None:
    first: BookingConfirmed = booking()
    stage.send(first.to_json())
    assert stage.invoke(stage.receive()) == []
    recorded = stage.record(first.job_key)
    again, once_more = requested(first), requested(first)
    stage.send(again.to_json(), once_more.to_json(), again.to_json())
    assert stage.invoke(stage.receive()) == []
    assert len(stage.mailbox.mails(to="ada@example.org")) == 3
    assert stage.record(first.job_key) == recorded


def test_texts_in_any_script_reach_ses_as_they_are(stage: Stage) -> None:
    title, venue = "ليلة 🎻 Ночь", "Große Halle; 1, 2\\3"
    message = booking(title=title, venue=venue, name="שלום", email="ada@bücher.example")
    stage.send(message.to_json())
    assert stage.invoke(stage.receive()) == []
    [mail] = stage.mailbox.mails(to="ada@xn--bcher-kva.example")
    assert mail.subject == f"Your booking: {title}"
    assert "Hello שלום," in mail.text
    [entry] = Calendar.from_ical(mail.attachments[0].data).events
    assert (str(entry["SUMMARY"]), str(entry["LOCATION"])) == (title, venue)


def test_poison_is_back_at_once_and_the_untried_not_even_after_the_queues_own_timeout(stage: Stage) -> None:
    stage.send("poison")
    event = stage.receive()
    assert stage.invoke(event) == [event["Records"][0]["messageId"]]
    [again] = stage.receive()["Records"]
    assert again["body"] == "poison"
    stage.emulator.aws("sqs").delete_message(QueueUrl=stage.queue_url, ReceiptHandle=again["receiptHandle"])

    untried = booking().to_json()
    stage.send(untried)
    event = stage.receive()
    assert len(stage.invoke(event, Context(milliseconds=4_900))) == 1
    stage.send("witness")
    stage.receive()
    seen: list[str] = []

    def witness_is_back() -> bool:
        seen.extend(delivery["body"] for delivery in stage.receive()["Records"])
        return "witness" in seen

    wait_until("the queue's own visibility timeout to pass", witness_is_back, seconds=10)
    assert untried not in seen


def test_getting_and_putting_items_is_all_that_a_job_needs_from_begin_to_done(stage: Stage) -> None:
    invocation = FakeInvocation()
    jobs = jobs_of(stage, invocation)
    first = jobs.begin(KEY)
    assert first is not None
    with pytest.raises(JobInProgressError):
        jobs.begin(KEY)
    assert jobs.release(first)
    second = jobs.begin(KEY)
    assert second is not None
    invocation.time += LEASE_SECONDS
    third = jobs.begin(KEY)
    assert third is not None
    jobs.release(second)
    with pytest.raises(JobInProgressError):
        jobs.begin(KEY)
    jobs.complete(second, result="ses-2")
    jobs.refuse(third, reason="MessageRejected")
    jobs.release(third)
    invocation.time += LEASE_SECONDS
    assert jobs.begin(KEY) is None


def test_a_refused_job_is_finished(stage: Stage) -> None:
    jobs = jobs_of(stage, FakeInvocation())
    lease = jobs.begin(KEY)
    assert lease is not None
    jobs.refuse(lease, reason="MessageRejected")
    assert jobs.begin(KEY) is None


class LosesReplies:
    """A DynamoDB client whose writes are applied, but the first answer to each of them is lost."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lose = True

    def get_item(self, **request: Any) -> Any:
        return self._client.get_item(**request)

    def put_item(self, **request: Any) -> Any:
        answer = self._client.put_item(**request)
        self._lose = not self._lose
        if not self._lose:
            raise lost_reply()
        return answer


def test_the_repetition_of_a_write_whose_reply_was_lost_finds_its_own_record(stage: Stage) -> None:
    invocation = FakeInvocation()
    jobs = jobs_of(stage, invocation, client=LosesReplies(stage.function._clients.dynamodb))
    lease = jobs.begin(KEY)
    assert lease is not None
    jobs.complete(lease, result="ses-1")
    assert jobs.begin(KEY) is None


def test_a_claimant_paused_before_its_write_does_not_overwrite_done(stage: Stage) -> None:
    invocation = FakeInvocation()
    other = jobs_of(stage, invocation)

    class Paused(LosesReplies):
        def put_item(self, **request: Any) -> Any:
            lease = other.begin(KEY)
            assert lease is not None
            other.complete(lease, result="ses-1")
            return self._client.put_item(**request)

    assert jobs_of(stage, invocation, client=Paused(stage.function._clients.dynamodb)).begin(KEY) is None


def mailer(client: Any, sender: str) -> SesMailer:
    return SesMailer(client=client, sender=sender, invocation=FakeInvocation(), random=Random(1))  # noqa: S311 - a run that can be repeated


def test_a_mail_is_accepted_again_after_the_connections_were_dropped(stage: Stage) -> None:
    client = stage.function._clients.ses
    mail = compose_confirmation(booking(email="ada@bücher.example", title="Ночь 🎻"), site=NOWHERE)
    first = mailer(client, stage.sender).send(mail)
    client.close()
    assert mailer(client, stage.sender).send(mail) != first


def test_a_sender_that_is_not_verified_is_no_refusal_of_the_mail(stage: Stage) -> None:
    mail = compose_confirmation(booking(), site=NOWHERE)
    with pytest.raises(MailNotSentError, match="MessageRejected"):
        mailer(stage.function._clients.ses, "nobody@unverified.example").send(mail)


@pytest.fixture
def silent_server() -> Iterator[int]:
    """The port of a server that takes a request and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        taken: list[socket.socket] = []

        def take() -> None:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            taken.append(connection)

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(timeout=11)
        for connection in taken:
            connection.close()


def test_a_server_that_never_answers_is_left_after_the_time_out_with_an_unknown_outcome(
    load_function: LoadFunction, silent_server: int
) -> None:
    client = load_function({**UNREACHABLE, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent_server}"})._clients.ses
    with pytest.raises(MailOutcomeUnknownError, match="ReadTimeoutError"):
        mailer(client, "a@example.org").send(compose_confirmation(booking(), site=NOWHERE))


def test_a_server_that_is_not_there_was_sent_nothing(load_function: LoadFunction) -> None:
    client = load_function({**UNREACHABLE, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"})._clients.ses
    with pytest.raises(MailNotSentError, match="EndpointConnectionError"):
        mailer(client, "a@example.org").send(compose_confirmation(booking(), site=NOWHERE))


UNREACHABLE = {
    "STAGE": "test",
    "PROCESSED_JOBS_TABLE": "none",
    "JOBS_QUEUE_URL": "http://127.0.0.1/none",
    "SENDER": "a@example.org",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
}
