"""Schedules: made, changed, adopted, run when they are due, and refused where their role can do nothing."""

import json
import secrets
from typing import Any

import pytest

from local.handlers.handler import HandlerError
from local.processes import wait_until
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

SCHEDULE = "scheduler/schedule:Schedule"


@pytest.fixture
def name() -> str:
    return f"t-{secrets.token_hex(4)}"


def _statement(**more: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **more}]})


def _role(stage: HandledStage, name: str, *, service: str = "scheduler.amazonaws.com", may: str = "sns:Publish") -> str:
    trust = _statement(Action="sts:AssumeRole", Principal={"Service": service})
    role = stage.create("iam/role:Role", "r", name=name, assumeRolePolicy=trust)
    stage.create("iam/rolePolicy:RolePolicy", "r", name="own", role=name, policy=_statement(Action=may, Resource="*"))
    return str(role["arn"])


def _inputs(stage: HandledStage, name: str, role: str, *, expression: str = "rate(90 days)") -> dict[str, Any]:
    topic = f"arn:aws:sns:us-east-1:{stage.platform.account}:{name}"
    return {
        "name": name,
        "scheduleExpression": expression,
        "flexibleTimeWindow": {"mode": "OFF"},
        "target": {"arn": topic, "roleArn": role, "input": "Rotate the keys"},
    }


def test_a_schedule_is_made_changed_adopted_refused_twice_and_deleted(stage: HandledStage, name: str) -> None:
    inputs = _inputs(stage, name, _role(stage, name))
    stage.create(SCHEDULE, "s", **inputs)
    scheduler = stage.aws("scheduler")

    live = scheduler.get_schedule(Name=name)
    assert (live["ScheduleExpression"], live["FlexibleTimeWindow"]) == ("rate(90 days)", {"Mode": "OFF"})
    assert live["Target"] == {
        "Arn": inputs["target"]["arn"],
        "RoleArn": inputs["target"]["roleArn"],
        "Input": "Rotate the keys",
    }
    with pytest.raises(HandlerError, match="ConflictException"):
        stage.create(SCHEDULE, "another", **inputs)
    stage.update(SCHEDULE, "s", **inputs | {"scheduleExpression": "rate(30 days)"})
    assert scheduler.get_schedule(Name=name)["ScheduleExpression"] == "rate(30 days)"
    stage.forget(SCHEDULE, "s")
    assert stage.adopt(SCHEDULE, "s", **inputs) is not None
    assert stage.adopt(SCHEDULE, "another", **inputs | {"name": f"{name}-2"}) is None
    stage.delete(SCHEDULE, "s")
    assert name not in [found["Name"] for found in scheduler.list_schedules()["Schedules"]]


@pytest.mark.parametrize(
    ("role", "refusal"),
    [
        ({"service": "events.amazonaws.com"}, "must allow AWS EventBridge Scheduler to assume the role"),
        ({"may": "sns:Subscribe"}, "not authorized to perform sns:Publish"),
    ],
)
def test_a_schedule_whose_role_can_do_nothing_is_refused(
    stage: HandledStage, name: str, role: dict[str, str], refusal: str
) -> None:
    with pytest.raises(HandlerError, match=refusal):
        stage.create(SCHEDULE, "s", **_inputs(stage, name, _role(stage, name, **role)))


def test_a_schedule_that_is_due_tells_its_topic_the_text(stage: HandledStage, name: str) -> None:
    topic = stage.create("sns/topic:Topic", "t", name=name)["arn"]
    queue = stage.create("sqs/queue:Queue", "q", name=name)
    lets_in = _statement(Action="sqs:SendMessage", Principal={"Service": "sns.amazonaws.com"}, Resource=queue["arn"])
    stage.create("sqs/queuePolicy:QueuePolicy", "q", queueUrl=queue["url"], policy=lets_in)
    stage.create(
        "sns/topicSubscription:TopicSubscription",
        "q",
        topic=topic,
        protocol="sqs",
        endpoint=queue["arn"],
        rawMessageDelivery=True,
    )
    # Due since long: a rate's first turn would be a minute away.
    stage.create(SCHEDULE, "s", **_inputs(stage, name, _role(stage, name), expression="at(2026-01-01T00:00:00)"))

    told: list[str] = []

    def arrived() -> bool:
        answer = stage.aws("sqs").receive_message(QueueUrl=queue["url"], WaitTimeSeconds=1)
        told.extend(message["Body"] for message in answer.get("Messages", []))
        return bool(told)

    wait_until("the reminder", arrived, seconds=40)
    assert told == ["Rotate the keys"]
