"""The mail recorder passes on, keeps and refuses; the call recorder keeps what the SDK reports."""

import json
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.call_recorder import CallRecorder
from local.emulator import Clients
from local.mail_recorder import MailRecorder, SendingLimits
from local.mailbox import Attachment, Mailbox
from local.processes import free_port, wait_until
from tests.fixtures.emulator import RunningEmulator, allow

SENDER = "tickets@recorder.example"


class _Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    return Mailbox(tmp_path / "mailbox")


@pytest.fixture
def recorder(emulator: RunningEmulator, mailbox: Mailbox, clock: _Clock) -> Iterator[MailRecorder]:
    recorder = MailRecorder(
        port=free_port(), upstream_port=int(emulator.endpoint.rpartition(":")[2]), mailbox=mailbox, clock=clock
    )
    stop = recorder.start()
    yield recorder
    stop()


@pytest.fixture
def send(emulator: RunningEmulator, recorder: MailRecorder) -> Iterator[Callable[..., str]]:
    """Send a mail through the recorder under a role that may; returns the message id."""
    root = emulator.aws("sesv2")
    if SENDER not in [identity["IdentityName"] for identity in root.list_email_identities()["EmailIdentities"]]:
        root.create_email_identity(EmailIdentity=SENDER)
    role = emulator.make_role(allow("ses:SendEmail", on="*"))
    clients = Clients(recorder.endpoint, credentials=emulator.credentials_as(role))

    def send(to: str = "ada@example.org", *, sender: str = SENDER, subject: str = "Your tickets") -> str:
        content = {
            "Simple": {"Subject": {"Data": subject}, "Body": {"Text": {"Data": "Row A"}, "Html": {"Data": "<p>"}}}
        }
        sent = clients("sesv2").send_email(FromEmailAddress=sender, Destination={"ToAddresses": [to]}, Content=content)
        return str(sent["MessageId"])

    yield send
    clients.close()


@pytest.mark.integration
def test_an_accepted_mail_is_kept_whole(send: Callable[..., str], mailbox: Mailbox) -> None:
    message_id = send("ada@example.org", subject="Für Zoë ✓")

    (mail,) = mailbox.mails(to="ada@example.org")
    assert (mail.message_id, mail.subject, mail.sender, mail.text) == (message_id, "Für Zoë ✓", SENDER, "Row A")
    assert mail.request["Content"]["Simple"]["Body"]["Html"]["Data"] == "<p>"
    assert mailbox.mails(to="somebody-else@example.org") == []


@pytest.mark.integration
def test_the_mailbox_keeps_the_headers_and_files_that_the_emulator_drops(
    emulator: RunningEmulator, recorder: MailRecorder, send: Callable[..., str], mailbox: Mailbox
) -> None:
    role = emulator.make_role(allow("ses:SendEmail", on="*"))
    clients = Clients(recorder.endpoint, credentials=emulator.credentials_as(role))
    clients("sesv2").send_email(
        FromEmailAddress=SENDER,
        ReplyToAddresses=["help@example.org"],
        Destination={"ToAddresses": ["ada@example.org"]},
        Content={
            "Simple": {
                "Subject": {"Data": "x"},
                "Body": {"Text": {"Data": "x"}},
                "Headers": [{"Name": "Auto-Submitted", "Value": "auto-generated"}],
                "Attachments": [
                    {"FileName": "event.ics", "ContentType": "text/calendar", "RawContent": b"BEGIN:VCALENDAR\r\n"}
                ],
            }
        },
    )
    clients.close()

    (mail,) = mailbox.mails(to="ada@example.org")
    assert mail.headers == [("Reply-To", "help@example.org"), ("Auto-Submitted", "auto-generated")]
    assert mail.attachments == [
        Attachment(file_name="event.ics", content_type="text/calendar", data=b"BEGIN:VCALENDAR\r\n")
    ]
    assert mail.to_json()["attachments"][0]["base64"] == "QkVHSU46VkNBTEVOREFSDQo="


@pytest.mark.integration
def test_a_mail_that_ses_refuses_is_not_kept(send: Callable[..., str], mailbox: Mailbox) -> None:
    with pytest.raises(ClientError, match="MessageRejected"):
        send(sender="unverified@elsewhere.example")

    assert mailbox.mails() == []


@pytest.mark.integration
def test_the_role_and_the_signature_still_decide(
    emulator: RunningEmulator, recorder: MailRecorder, mailbox: Mailbox
) -> None:
    clients = Clients(recorder.endpoint, credentials=emulator.credentials_as(emulator.make_role()))
    with pytest.raises(ClientError, match="AccessDenied"):
        clients("sesv2").send_email(
            FromEmailAddress=SENDER,
            Destination={"ToAddresses": ["a@example.org"]},
            Content={"Simple": {"Subject": {"Data": "x"}, "Body": {"Text": {"Data": "x"}}}},
        )
    clients.close()

    assert mailbox.mails() == []


@pytest.mark.integration
def test_mails_beyond_the_rate_are_throttled_until_a_second_has_passed(
    send: Callable[..., str], recorder: MailRecorder, clock: _Clock, mailbox: Mailbox
) -> None:
    recorder.limits = SendingLimits(per_second=2)
    send("one@example.org")
    send("two@example.org")
    with pytest.raises(ClientError, match="TooManyRequestsException"):
        send("three@example.org")

    clock.now += 1.01
    send("three@example.org")

    assert [mail.recipients for mail in mailbox.mails()] == [
        ["one@example.org"],
        ["two@example.org"],
        ["three@example.org"],
    ]


@pytest.mark.integration
def test_mails_beyond_the_daily_quota_are_refused_until_a_day_has_passed(
    send: Callable[..., str], recorder: MailRecorder, clock: _Clock
) -> None:
    recorder.limits = SendingLimits(per_day=1)
    send()
    with pytest.raises(ClientError, match="LimitExceededException"):
        send()

    clock.now += 24 * 3600 + 1
    send()


@pytest.mark.integration
def test_a_rejected_recipient_gets_no_mail_and_others_do(
    send: Callable[..., str], recorder: MailRecorder, mailbox: Mailbox
) -> None:
    recorder.limits = SendingLimits(rejected=frozenset({"bad@example.org"}))
    with pytest.raises(ClientError, match="MessageRejected"):
        send("bad@example.org")
    send("good@example.org")

    assert [mail.recipients for mail in mailbox.mails()] == [["good@example.org"]]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"perSecond": 0}, "perSecond"),
        ({"perSecond": "1"}, "perSecond"),
        ({"perDay": -1}, "perDay"),
        ({"perDay": 1.5}, "perDay"),
        ({"rejected": "a@example.org"}, "rejected"),
        ({"perHour": 1}, "perHour"),
    ],
)
def test_limits_that_mean_nothing_are_refused_by_name(document: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        SendingLimits.from_json(document)


@pytest.mark.unit
def test_the_mailbox_survives_a_restart_and_is_private(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path / "mailbox")
    mailbox.keep({"FromEmailAddress": SENDER, "Destination": {"ToAddresses": ["a@example.org"]}}, message_id="m-1")

    assert [mail.message_id for mail in Mailbox(tmp_path / "mailbox").mails()] == ["m-1"]
    (file,) = (tmp_path / "mailbox").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.unit
def test_calls_are_kept_by_role_without_their_session_token(tmp_path: Path) -> None:
    recorder = CallRecorder(port=free_port_udp(), file=tmp_path / "calls.jsonl")
    stop = recorder.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for client in ("worker", "tickets"):
            record = {"Type": "ApiCallAttempt", "ClientId": client, "Api": "PutItem", "SessionToken": "FwoGZXIvYXdz"}
            sender.sendto(json.dumps(record).encode(), ("127.0.0.1", recorder.port))
        sender.sendto(b"not json", ("127.0.0.1", recorder.port))
        sender.sendto(b"[1]", ("127.0.0.1", recorder.port))

    wait_until("both are kept", lambda: len(recorder.calls()) == 2, seconds=5)
    stop()

    assert [call["Api"] for call in recorder.calls(client_id="worker")] == ["PutItem"]
    assert "FwoGZXIvYXdz" not in (tmp_path / "calls.jsonl").read_text()
    assert stat.S_IMODE((tmp_path / "calls.jsonl").stat().st_mode) == 0o600


def free_port_udp() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
