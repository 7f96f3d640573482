"""What each answer of SES, or its absence, is taken for."""

from random import Random
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from apps.worker.tests.fakes import FakeInvocation, FakeSes, client_error, raising
from apps.worker.tests.worker_under_test import NOWHERE, SENDER, booking, reset
from minitickets_worker.booking_mails import compose_confirmation
from minitickets_worker.mail import Mail
from minitickets_worker.mailer import (
    MailNotSentError,
    MailOutcomeUnknownError,
    MailQuotaError,
    MailRefusedError,
    MailThrottledError,
    SesMailer,
)
from minitickets_worker.reset_mail import compose_password_reset

pytestmark = pytest.mark.unit

URL = "https://email.invalid"
MAIL = compose_confirmation(booking(email="ada@bücher.example"), site=NOWHERE)


def send(ses: FakeSes, mail: Mail = MAIL) -> str:
    client: Any = ses
    # No time to wait: a throttled send is told at once.
    random = Random(1)  # noqa: S311 - a run that can be repeated
    return SesMailer(client=client, sender=SENDER, invocation=FakeInvocation(ends=0), random=random).send(mail)


@pytest.mark.parametrize(
    ("answer", "taken_for"),
    [
        (
            client_error("TooManyRequestsException", status=429, message="Maximum sending rate exceeded."),
            MailThrottledError,
        ),
        (client_error("ThrottlingException", message="Rate exceeded"), MailThrottledError),
        (client_error("TooManyRequestsException", status=429, message="Daily message quota exceeded."), MailQuotaError),
        (client_error("LimitExceededException"), MailQuotaError),
        (client_error("MessageRejected", message="Address blacklisted."), MailRefusedError),
        (client_error("BadRequestException", message="Domain contains illegal character"), MailRefusedError),
        (client_error("MessageRejected", message="Email address is not verified."), MailNotSentError),
        (client_error("MailFromDomainNotVerifiedException"), MailNotSentError),
        (client_error("AccountSuspendedException"), MailNotSentError),
        (client_error("SendingPausedException"), MailNotSentError),
        (client_error("AccessDeniedException", status=403), MailNotSentError),
        (client_error("ExpiredTokenException", status=403), MailNotSentError),
        (client_error("InternalFailure", status=500), MailOutcomeUnknownError),
        (client_error("ServiceUnavailable", status=503), MailOutcomeUnknownError),
        (ReadTimeoutError(endpoint_url=URL), MailOutcomeUnknownError),
        (ConnectionClosedError(endpoint_url=URL), MailOutcomeUnknownError),
        (ConnectTimeoutError(endpoint_url=URL), MailNotSentError),
        (EndpointConnectionError(endpoint_url=URL), MailNotSentError),
        (NoCredentialsError(), MailNotSentError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value)[:60],
)
def test_an_answer_of_ses_is_taken_for_what_it_is(answer: Exception, taken_for: type[Exception]) -> None:
    ses = FakeSes()
    ses.sends.before = [raising(answer)]
    with pytest.raises(taken_for) as raised:
        send(ses)
    assert type(raised.value) is taken_for
    assert ses.attempts == 1, "whoever repeats a send on their own sends two mails"


def test_an_error_of_ses_does_not_carry_the_recipient_along() -> None:
    ses = FakeSes()
    ses.sends.before = [raising(client_error("MessageRejected", message="Rejected: ada@bücher.example"))]
    with pytest.raises(MailRefusedError) as raised:
        send(ses)
    assert "ada" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_mail_goes_from_our_sender_to_one_ascii_address_as_simple_content_in_two_twins() -> None:
    ses = FakeSes()
    assert send(ses) == "ses-1"
    [request] = ses.accepted
    assert request["FromEmailAddress"] == SENDER
    assert request["Destination"] == {"ToAddresses": ["ada@xn--bcher-kva.example"]}
    simple = request["Content"]["Simple"]
    assert simple["Subject"]["Data"] == MAIL.subject
    assert {name: part["Data"] for name, part in simple["Body"].items()} == {"Text": MAIL.text, "Html": MAIL.html}


def test_a_booking_s_calendar_file_is_attached_as_a_file_of_its_type() -> None:
    ses = FakeSes()
    send(ses)
    [attachment] = ses.accepted[0]["Content"]["Simple"]["Attachments"]
    assert attachment == {
        "FileName": "booking.ics",
        "ContentType": "text/calendar; method=PUBLISH; charset=utf-8",
        "ContentDisposition": "ATTACHMENT",
        "ContentTransferEncoding": "BASE64",
        "RawContent": MAIL.attachments[0].content,
    }
    assert len(attachment["ContentType"]) <= 78, "SES refuses a longer one"


def test_a_mail_without_a_file_has_no_empty_list_of_files() -> None:
    ses = FakeSes()
    send(ses, compose_password_reset(reset(), site=NOWHERE))
    assert "Attachments" not in ses.accepted[0]["Content"]["Simple"]


def test_a_mail_says_that_a_program_sent_it_so_that_no_program_answers() -> None:
    ses = FakeSes()
    send(ses)
    [header] = ses.accepted[0]["Content"]["Simple"]["Headers"]
    assert header == {"Name": "Auto-Submitted", "Value": "auto-generated"}
