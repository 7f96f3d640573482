"""The topic's adapter against a real endpoint: what it sends arrives, and what it may not do is an outage."""

import json
import secrets
from typing import Any

import pytest

from minitickets_api.services.topic import Publication, SnsTopic, Verdict
from tests.fixtures.emulator import RunningEmulator, allow

pytestmark = pytest.mark.integration

BODY = '{"type":"booking.confirmed","name":"J\u00fcrgen \u2603"}'


def subscribed_queue(emulator: RunningEmulator, topic_arn: str) -> str:
    sqs = emulator.aws("sqs")
    url: str = sqs.create_queue(QueueName=f"test-{secrets.token_hex(6)}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "sns.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": topic_arn}},
            }
        ],
    }
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
    emulator.aws("sns").subscribe(
        TopicArn=topic_arn, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"}
    )
    return url


def new_topic(emulator: RunningEmulator) -> str:
    arn: str = emulator.aws("sns").create_topic(Name=f"test-{secrets.token_hex(6)}")["TopicArn"]
    return arn


def received(emulator: RunningEmulator, url: str, count: int) -> list[str]:
    bodies: list[str] = []
    for _ in range(10):
        reply: dict[str, Any] = emulator.aws("sqs").receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        bodies += [message["Body"] for message in reply.get("Messages", [])]
        if len(bodies) >= count:
            break
    return bodies


def test_a_message_arrives_byte_for_byte(emulator: RunningEmulator) -> None:
    topic_arn = new_topic(emulator)
    url = subscribed_queue(emulator, topic_arn)
    topic = SnsTopic(arn=topic_arn, client=lambda: emulator.aws("sns"))
    publications = [Publication(message_id=f"id-{number}", body=BODY) for number in range(10)]
    outcomes = topic.publish(publications)
    assert {outcome.verdict for outcome in outcomes.values()} == {Verdict.SENT}
    assert received(emulator, url, 10) == [BODY] * 10


def test_a_missing_permission_delays_and_parks_nothing(emulator: RunningEmulator) -> None:
    topic_arn = new_topic(emulator)
    elsewhere = allow("sns:Publish", "sns:PublishBatch", on=new_topic(emulator))
    topic = SnsTopic(arn=topic_arn, client=lambda: emulator.client_as("sns", elsewhere))
    outcome = topic.publish([Publication(message_id="id", body=BODY)])["id"]
    assert outcome.verdict is Verdict.DELAYED, outcome.reason
    assert "Authorization" in outcome.reason or "AccessDenied" in outcome.reason


def test_a_topic_that_does_not_exist_delays_and_parks_nothing(emulator: RunningEmulator) -> None:
    arn = new_topic(emulator) + "-gone"
    topic = SnsTopic(arn=arn, client=lambda: emulator.aws("sns"))
    outcome = topic.publish([Publication(message_id="id", body=BODY)])["id"]
    assert outcome.verdict is Verdict.DELAYED, outcome.reason
