"""What SNS answers, and what becomes of each message for it."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from minitickets_api.services.topic import CONNECT_SECONDS, READ_SECONDS, Publication, SnsTopic, Verdict, sns_client

pytestmark = pytest.mark.unit

ARN = "arn:aws:sns:us-east-1:000000000000:events"
SOUND = '{"type":"booking.confirmed"}'

Entries = list[dict[str, str]]


class FakeSns:
    """Answers publish_batch with ``answer``, and remembers the ids of each call."""

    def __init__(self, answer: Callable[[Entries], dict[str, Any]]) -> None:
        self._answer = answer
        self.calls: list[list[str]] = []

    def publish_batch(self, *, TopicArn: str, PublishBatchRequestEntries: Entries) -> dict[str, Any]:
        assert TopicArn == ARN
        self.calls.append([entry["Id"] for entry in PublishBatchRequestEntries])
        return self._answer(PublishBatchRequestEntries)


def all_sent(entries: Entries) -> dict[str, Any]:
    return {"Successful": [{"Id": entry["Id"], "MessageId": "m"} for entry in entries], "Failed": []}


def refusal(code: str, message: str = "no") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "PublishBatch")


def verdicts(client: FakeSns, bodies: Sequence[str]) -> list[Verdict]:
    topic = SnsTopic(arn=ARN, client=lambda: client)  # type: ignore[arg-type,return-value]  # a fake
    publications = [Publication(message_id=str(number), body=body) for number, body in enumerate(bodies)]
    outcomes = topic.publish(publications)
    assert sorted(outcomes) == [publication.message_id for publication in publications]
    return [outcomes[publication.message_id].verdict for publication in publications]


def test_what_sns_accepts_is_sent() -> None:
    client = FakeSns(all_sent)
    assert verdicts(client, [SOUND, SOUND]) == [Verdict.SENT, Verdict.SENT]
    assert client.calls == [["0", "1"]]


def test_only_the_entries_that_failed_have_failed() -> None:
    def answer(entries: Entries) -> dict[str, Any]:
        return {
            "Successful": [{"Id": "0", "MessageId": "m"}],
            "Failed": [
                {"Id": "1", "Code": "InternalError", "SenderFault": False},
                {"Id": "2", "Code": "InvalidParameter", "Message": "Message too long", "SenderFault": True},
                {"Id": "3", "Code": "AuthorizationError", "SenderFault": True},
            ],
        }

    assert verdicts(FakeSns(answer), [SOUND] * 5) == [
        Verdict.SENT,
        Verdict.DELAYED,
        Verdict.IMPOSSIBLE,
        Verdict.DELAYED,  # a missing permission is ours to give, not the message's fault
        Verdict.DELAYED,  # not mentioned at all
    ]


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="https://sns"),
        ReadTimeoutError(endpoint_url="https://sns"),
        refusal("Throttling"),
        refusal("InternalFailure"),
        refusal("AuthorizationError"),
        refusal("NotFound", "Topic does not exist"),
        refusal("ExpiredToken"),
        refusal("InvalidParameter", "Invalid parameter: TopicArn Reason: no such thing"),
    ],
    ids=["unreachable", "silent", "throttled", "failing", "no permission", "no topic", "old token", "wrong topic"],
)
def test_an_outage_delays_and_parks_nothing(error: Exception) -> None:
    def answer(_: Entries) -> dict[str, Any]:
        raise error

    client = FakeSns(answer)
    assert verdicts(client, [SOUND] * 3) == [Verdict.DELAYED] * 3
    assert len(client.calls) == 1


def test_the_one_that_spoils_a_whole_call_is_found_and_the_others_are_sent() -> None:
    def answer(entries: Entries) -> dict[str, Any]:
        if any(entry["Id"] == "1" for entry in entries):
            raise refusal("InvalidParameter", "Invalid parameter: Message")
        return all_sent(entries)

    client = FakeSns(answer)
    assert verdicts(client, [SOUND] * 3) == [Verdict.SENT, Verdict.IMPOSSIBLE, Verdict.SENT]
    assert client.calls == [["0", "1", "2"], ["0"], ["1"], ["2"]]


def test_an_outage_that_begins_while_they_go_one_by_one_costs_one_timeout() -> None:
    def answer(entries: Entries) -> dict[str, Any]:
        if len(entries) > 1:
            raise refusal("InvalidParameter", "Invalid parameter: Message")
        if entries[0]["Id"] == "1":
            raise ReadTimeoutError(endpoint_url="https://sns")
        return all_sent(entries)

    client = FakeSns(answer)
    assert verdicts(client, [SOUND] * 10) == [Verdict.SENT] + [Verdict.DELAYED] * 9
    assert client.calls[1:] == [["0"], ["1"]]


@pytest.mark.parametrize(
    "body",
    ["", "no JSON", "[]", '{"version":1}', "{" * 20_000, f'{{"type":"x","padding":"{"x" * 250_000}"}}'],
    ids=["empty", "no JSON", "no object", "no type", "deep", "oversized"],
)
def test_what_no_consumer_could_read_is_not_even_sent(body: str) -> None:
    client = FakeSns(all_sent)
    assert verdicts(client, [SOUND, body, SOUND]) == [Verdict.SENT, Verdict.IMPOSSIBLE, Verdict.SENT]
    assert client.calls == [["0", "2"]]


def test_a_reason_holds_no_part_of_the_message() -> None:
    topic = SnsTopic(arn=ARN, client=lambda: FakeSns(all_sent))  # type: ignore[arg-type,return-value]  # a fake
    outcome = topic.publish([Publication(message_id="0", body='{"email":"canary@example.com"}')])["0"]
    assert outcome.verdict is Verdict.IMPOSSIBLE
    assert "canary" not in outcome.reason


def test_threads_that_come_at_once_share_one_client() -> None:
    made = []

    def make() -> Any:
        made.append(FakeSns(all_sent))
        return made[-1]

    topic = SnsTopic(arn=ARN, client=make)
    threads = [threading.Thread(target=topic.prepare) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_the_client_tries_once_and_ends_every_wait_within_the_relays_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    config = sns_client(region="us-east-1").meta.config
    assert config.retries["total_max_attempts"] == 1  # type: ignore[attr-defined]  # boto's Config has no types
    assert (config.connect_timeout, config.read_timeout) == (CONNECT_SECONDS, READ_SECONDS)  # type: ignore[attr-defined]  # boto's Config has no types
    # The worst call: a batch that is blamed, then an entry that times out.
    assert 2 * (CONNECT_SECONDS + READ_SECONDS) < 30
