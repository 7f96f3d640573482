"""Sending a mail by SES v2, and telling what became of it."""

from random import Random
from typing import TYPE_CHECKING

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from minitickets_worker.address import AddressError, deliverable_address
from minitickets_worker.invocation import MESSAGE_SECONDS, Invocation
from minitickets_worker.mail import Attachment, Mail

if TYPE_CHECKING:
    from mypy_boto3_sesv2 import SESV2Client
    from mypy_boto3_sesv2.type_defs import AttachmentTypeDef, MessageHeaderTypeDef, MessageTypeDef

# A wait of about a second: the sandbox allows one mail a second. Jittered, because five functions share the rate.
_SHORTEST_PAUSE_SECONDS = 0.3
_LONGEST_PAUSE_SECONDS = 1.2

_THROTTLED = frozenset({"TooManyRequestsException", "ThrottlingException", "Throttling"})
_REFUSED = frozenset({"MessageRejected", "BadRequestException"})
# Nothing of the request left this process, or no connection took it.
_NOT_SENT = (
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)


# RFC 3834: nobody's "I am on holiday" shall answer.
_HEADERS: "tuple[MessageHeaderTypeDef, ...]" = ({"Name": "Auto-Submitted", "Value": "auto-generated"},)


class MailNotSentError(RuntimeError):
    """Nothing was sent, and a later attempt may succeed. ``code`` is SES's error code or botocore's error."""

    def __init__(self, code: str) -> None:
        super().__init__(f"not sent: {code}")
        self.code = code


class MailThrottledError(MailNotSentError):
    """More than the account may send a second; an attempt in a moment may succeed."""


class MailQuotaError(MailNotSentError):
    """The account's daily quota is used up; no mail of this batch can be sent."""


class MailRefusedError(RuntimeError):
    """This mail can never be sent. ``reason`` is a code without personal data."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"refused: {reason}")
        self.reason = reason


class MailOutcomeUnknownError(RuntimeError):
    """The answer was lost or says nothing: the mail may have been accepted. ``code`` as in MailNotSentError."""

    def __init__(self, code: str) -> None:
        super().__init__(f"outcome unknown: {code}")
        self.code = code


class SesMailer:
    """Sends from one address. Simple content: Raw content would need the action ``ses:SendRawEmail`` as well."""

    def __init__(self, *, client: "SESV2Client", sender: str, invocation: Invocation, random: Random) -> None:
        self._client = client
        self._sender = sender
        self._invocation = invocation
        self._random = random

    def send(self, mail: Mail) -> str:
        """SES's id of the accepted mail. Waits out throttling while a whole message's time (5 s) is left.

        Raises MailRefusedError, MailNotSentError or MailOutcomeUnknownError, which hold no personal data.
        """
        try:
            recipient = deliverable_address(mail.recipient)
        except AddressError as error:
            raise MailRefusedError(error.reason) from None
        while True:
            try:
                return self._send_once(mail, recipient)
            except MailThrottledError:
                pause = self._random.uniform(_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
                if self._invocation.seconds_left() < pause + MESSAGE_SECONDS:
                    raise
            self._invocation.sleep(pause)

    def _send_once(self, mail: Mail, recipient: str) -> str:
        try:
            answer = self._client.send_email(
                FromEmailAddress=self._sender,
                Destination={"ToAddresses": [recipient]},
                Content={"Simple": _simple_content(mail)},
            )
        # `from None` throughout: the original's text may name the recipient, and a traceback would print it.
        except ClientError as error:
            raise _told_by_ses(error) from None
        except _NOT_SENT as error:
            raise MailNotSentError(type(error).__name__) from None
        except BotoCoreError as error:
            # A read time-out, or a connection that broke after the request was on its way.
            raise MailOutcomeUnknownError(type(error).__name__) from None
        return answer["MessageId"]


def _simple_content(mail: Mail) -> "MessageTypeDef":
    content: MessageTypeDef = {
        "Subject": {"Data": mail.subject, "Charset": "UTF-8"},
        "Body": {
            "Text": {"Data": mail.text, "Charset": "UTF-8"},
            "Html": {"Data": mail.html, "Charset": "UTF-8"},
        },
        "Headers": _HEADERS,
    }
    if mail.attachments:
        content["Attachments"] = [_attachment(attachment) for attachment in mail.attachments]
    return content


def _attachment(attachment: Attachment) -> "AttachmentTypeDef":
    return {
        "FileName": attachment.file_name,
        "ContentType": attachment.content_type,
        "ContentDisposition": "ATTACHMENT",
        "ContentTransferEncoding": "BASE64",
        "RawContent": attachment.content,
    }


def _told_by_ses(error: ClientError) -> MailNotSentError | MailRefusedError | MailOutcomeUnknownError:
    code = error.response["Error"]["Code"]
    text = error.response["Error"].get("Message", "").lower()
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    if code == "LimitExceededException" or "daily message quota exceeded" in text:
        return MailQuotaError(code)
    if code in _THROTTLED or status == 429:
        return MailThrottledError(code)
    if status >= 500:
        return MailOutcomeUnknownError(code)
    # An identity that is not verified (the sender's; in the sandbox, the recipient's too) is the account's state, not
    # the mail's fault: the message goes the way of retries and the dead-letter queue, and can be redriven later.
    if code in _REFUSED and "not verified" not in text:
        return MailRefusedError(code)
    return MailNotSentError(code)
