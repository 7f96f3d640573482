"""The SNS topic that booking events go to."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from minitickets_contracts.fields import ContractError
from minitickets_contracts.messages import message_type

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

# A PublishBatch takes 10 messages and 256 KiB together.
MAX_MESSAGES = 10
MAX_BYTES = 256 * 1024
# Together they stay far below the relay's lease; the relay itself tries again, so the SDK must not.
CONNECT_SECONDS = 2
READ_SECONDS = 5


class Verdict(Enum):
    """What became of a message. DELAYED: try again later. IMPOSSIBLE: it can never be published as it is."""

    SENT = "sent"
    DELAYED = "delayed"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A message as it will be published."""

    message_id: str
    body: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """``reason`` is for the operator; it holds no part of the message."""

    verdict: Verdict
    reason: str = ""


SENT = Outcome(verdict=Verdict.SENT)


class Topic(Protocol):
    """Where publications go. Its methods block, and are called in a thread."""

    def prepare(self) -> None:
        """Do now what the first publication would have to wait for."""

    def publish(self, publications: Sequence[Publication]) -> Mapping[str, Outcome]:
        """Publish at most ``MAX_MESSAGES`` with at most ``MAX_BYTES`` together; the outcome of each by its id. Never
        raises for what the network or the service did."""


class SnsTopic:
    """``client`` makes the client when it is first needed; that costs a good part of a second."""

    def __init__(self, *, arn: str, client: "Callable[[], SNSClient]") -> None:
        self._arn = arn
        self._make_client = client
        self._client: SNSClient | None = None
        self._lock = threading.Lock()

    def prepare(self) -> None:
        with self._lock:
            if self._client is None:
                self._client = self._make_client()

    def publish(self, publications: Sequence[Publication]) -> Mapping[str, Outcome]:
        """As ``Topic.publish``."""
        outcomes = {
            publication.message_id: Outcome(verdict=Verdict.IMPOSSIBLE, reason=problem)
            for publication in publications
            if (problem := _malformed(publication.body))
        }
        sendable = [publication for publication in publications if publication.message_id not in outcomes]
        if sendable:
            outcomes.update(self._send(sendable))
        return outcomes

    def _send(self, publications: Sequence[Publication]) -> Mapping[str, Outcome]:
        from botocore.exceptions import BotoCoreError, ClientError

        self.prepare()
        if self._client is None:
            raise RuntimeError("prepare made no client")
        try:
            reply = self._client.publish_batch(
                TopicArn=self._arn,
                PublishBatchRequestEntries=[
                    {"Id": publication.message_id, "Message": publication.body} for publication in publications
                ],
            )
        except ClientError as error:
            reason = f"{error.response['Error']['Code']}: {error.response['Error'].get('Message', '')}"[:500]
            if not _blames_a_message(error.response["Error"]):
                return _delayed(publications, reason)
            if len(publications) == 1:
                return {publications[0].message_id: Outcome(verdict=Verdict.IMPOSSIBLE, reason=reason)}
            # One of them spoils the call, and the reply does not say which.
            return self._send_each(publications)
        except BotoCoreError as error:
            return _delayed(publications, f"{type(error).__name__}: {error}"[:500])
        outcomes = dict(_delayed(publications, "the reply does not mention it"))
        outcomes.update({success["Id"]: SENT for success in reply.get("Successful", [])})
        for failure in reply.get("Failed", []):
            blamed = _blames_a_message(failure)
            verdict = Verdict.IMPOSSIBLE if blamed else Verdict.DELAYED
            reason = f"{failure['Code']}: {failure.get('Message', '')}"[:500]
            outcomes[failure["Id"]] = Outcome(verdict=verdict, reason=reason)
        return outcomes

    def _send_each(self, publications: Sequence[Publication]) -> Mapping[str, Outcome]:
        outcomes = dict(_delayed(publications, "not tried: an earlier one of its batch was delayed"))
        for publication in publications:
            outcomes.update(self._send([publication]))
            if outcomes[publication.message_id].verdict is Verdict.DELAYED:
                break  # an outage began: the lease has no room for ten timeouts
        return outcomes


def sns_client(*, region: str) -> "SNSClient":
    """A client with one attempt a call and an end to every wait. It may be made in any thread."""
    import boto3
    from botocore.config import Config

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    # A session of its own: the default one is not safe to share between threads.
    return boto3.session.Session().client("sns", region_name=region, config=config)


def _malformed(body: str) -> str:
    try:
        message_type(body)
    except ContractError as error:
        return f"malformed: {error}"
    return ""


def _blames_a_message(error: Mapping[str, object]) -> bool:
    """Whether SNS says that a message is wrong. A wrong topic is InvalidParameter too, but no message's fault: parking
    for it would empty the outbox into nowhere."""
    code, message = str(error.get("Code", "")), str(error.get("Message", ""))
    if code in ("BatchRequestTooLong", "BatchRequestTooLongException"):
        return True
    return code in ("InvalidParameter", "InvalidParameterException", "InvalidParameterValue") and not any(
        word in message for word in ("TopicArn", "Topic Arn", "TargetArn")
    )


def _delayed(publications: Sequence[Publication], reason: str) -> Mapping[str, Outcome]:
    return {publication.message_id: Outcome(verdict=Verdict.DELAYED, reason=reason) for publication in publications}
