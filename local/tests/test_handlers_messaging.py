"""Queues, topics and subscriptions: what the program sets is what the emulator does."""

import json
import secrets
from typing import Any

import pytest

from local.handlers.handler import HandlerError
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

QUEUE, QUEUE_POLICY = "sqs/queue:Queue", "sqs/queuePolicy:QueuePolicy"
TOPIC, SUBSCRIPTION = "sns/topic:Topic", "sns/topicSubscription:TopicSubscription"


@pytest.fixture
def name() -> str:
    return f"t-{secrets.token_hex(4)}"


def _attributes(stage: HandledStage, url: str) -> dict[str, str]:
    answer = stage.aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    attributes: dict[str, str] = answer["Attributes"]
    return attributes


def test_a_queue_has_the_settings_of_the_program(stage: HandledStage, name: str) -> None:
    dead = stage.create(QUEUE, "dlq", name=f"{name}-dlq", messageRetentionSeconds=1209600.0)
    queue = stage.create(
        QUEUE,
        "jobs",
        name=name,
        visibilityTimeoutSeconds=60.0,
        sqsManagedSseEnabled=True,
        redrivePolicy=json.dumps({"deadLetterTargetArn": dead["arn"], "maxReceiveCount": 3}),
        tags={"stage": "dev"},
    )

    attributes = _attributes(stage, queue["url"])
    assert attributes["VisibilityTimeout"] == "60"
    assert attributes["SqsManagedSseEnabled"] == "true"
    assert json.loads(attributes["RedrivePolicy"])["maxReceiveCount"] == 3
    assert attributes["QueueArn"] == queue["arn"]
    assert _attributes(stage, dead["url"])["MessageRetentionPeriod"] == "1209600"
    assert stage.aws("sqs").list_queue_tags(QueueUrl=queue["url"])["Tags"] == {"stage": "dev"}


def test_what_is_gone_from_the_program_is_gone_from_the_queue(stage: HandledStage, name: str) -> None:
    queue = stage.create(QUEUE, "q", name=name, visibilityTimeoutSeconds=60.0, delaySeconds=5.0, tags={"a": "b"})

    stage.update(QUEUE, "q", name=name, visibilityTimeoutSeconds=90.0)

    attributes = _attributes(stage, queue["url"])
    assert (attributes["VisibilityTimeout"], attributes["DelaySeconds"]) == ("90", "0")
    assert stage.aws("sqs").list_queue_tags(QueueUrl=queue["url"]).get("Tags", {}) == {}


def test_a_queue_name_in_use_with_other_settings_is_refused(stage: HandledStage, name: str) -> None:
    stage.create(QUEUE, "first", name=name, visibilityTimeoutSeconds=60.0)

    with pytest.raises(HandlerError, match="QueueAlreadyExists"):
        stage.create(QUEUE, "second", name=name, visibilityTimeoutSeconds=61.0)


def test_a_queue_that_the_platform_forgot_is_adopted_with_its_new_settings(stage: HandledStage, name: str) -> None:
    stage.create(QUEUE, "q", name=name, visibilityTimeoutSeconds=60.0)
    stage.forget(QUEUE, "q")

    adopted = stage.adopt(QUEUE, "q", name=name, visibilityTimeoutSeconds=70.0)

    assert adopted is not None
    assert _attributes(stage, adopted["url"])["VisibilityTimeout"] == "70"
    assert stage.adopt(QUEUE, "other", name=f"{name}-other") is None


def test_a_topic_reaches_exactly_the_queues_whose_policy_lets_it_in(stage: HandledStage, name: str) -> None:
    topic = stage.create(TOPIC, "events", name=f"{name}-events")
    let_in = stage.create(QUEUE, "open", name=f"{name}-open")
    shut_out = stage.create(QUEUE, "closed", name=f"{name}-closed")
    stage.create(QUEUE_POLICY, "open", queueUrl=let_in["url"], policy=_lets_in(let_in["arn"], topic["arn"]))
    other_topic = f"{topic['arn']}-other"
    stage.create(QUEUE_POLICY, "closed", queueUrl=shut_out["url"], policy=_lets_in(shut_out["arn"], other_topic))
    for thing, queue in (("open", let_in), ("closed", shut_out)):
        stage.create(
            SUBSCRIPTION, thing, topic=topic["arn"], protocol="sqs", endpoint=queue["arn"], rawMessageDelivery=True
        )

    stage.aws("sns").publish(TopicArn=topic["arn"], Message="hello")

    assert _receive(stage, let_in["url"]) == ["hello"]
    assert _receive(stage, shut_out["url"], seconds=1) == []


def test_a_deleted_policy_lets_nobody_in(stage: HandledStage, name: str) -> None:
    queue = stage.create(QUEUE, "q", name=name)
    stage.create(QUEUE_POLICY, "q", queueUrl=queue["url"], policy=_lets_in(queue["arn"], "arn:aws:sns:x"))
    assert stage.read(QUEUE_POLICY, "q") is not None

    stage.delete(QUEUE_POLICY, "q")

    assert _attributes(stage, queue["url"]).get("Policy", "") == ""


def test_a_deleted_queue_and_topic_are_gone_and_deleting_them_again_is_no_error(stage: HandledStage, name: str) -> None:
    queue = stage.create(QUEUE, "q", name=name)
    topic = stage.create(TOPIC, "t", name=name)
    stage.aws("sqs").delete_queue(QueueUrl=queue["url"])

    stage.delete(QUEUE, "q")
    stage.delete(TOPIC, "t")

    assert topic["arn"] not in [entry["TopicArn"] for entry in stage.aws("sns").list_topics()["Topics"]]


def test_a_subscription_keeps_its_dead_letter_queue_and_loses_it_in_place(stage: HandledStage, name: str) -> None:
    topic = stage.create(TOPIC, "t", name=name)
    queue = stage.create(QUEUE, "q", name=name)
    undelivered = stage.create(QUEUE, "u", name=f"{name}-undelivered")
    fixed: dict[str, Any] = {"topic": topic["arn"], "protocol": "sqs", "endpoint": queue["arn"]}
    redrive = json.dumps({"deadLetterTargetArn": undelivered["arn"]})
    made = stage.create(SUBSCRIPTION, "s", **fixed, rawMessageDelivery=True, redrivePolicy=redrive)

    def attributes() -> dict[str, str]:
        answer = stage.aws("sns").get_subscription_attributes(SubscriptionArn=made["arn"])
        found: dict[str, str] = answer["Attributes"]
        return found

    assert json.loads(attributes()["RedrivePolicy"]) == {"deadLetterTargetArn": undelivered["arn"]}

    stage.update(SUBSCRIPTION, "s", **fixed, rawMessageDelivery=True)

    assert attributes().get("RedrivePolicy", "") == ""
    assert attributes()["RawMessageDelivery"] == "true"


def _lets_in(queue_arn: str, topic_arn: str) -> str:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue_arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic_arn}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _receive(stage: HandledStage, url: str, *, seconds: int = 5) -> list[str]:
    answer = stage.aws("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=seconds)
    return [message["Body"] for message in answer.get("Messages", [])]
