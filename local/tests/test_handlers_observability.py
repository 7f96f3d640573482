"""What watches and what scales: metric filters, alarms, their key, scaling targets, look-ups for a running service."""

import json
import secrets
from typing import Any

import pytest

from local.handlers.handler import HandlerError, InvokeError
from local.handlers.lookups import look_up
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

LOG_GROUP, FILTER = "cloudwatch/logGroup:LogGroup", "cloudwatch/logMetricFilter:LogMetricFilter"
KEY = "kms/key:Key"
ALARM = "cloudwatch/metricAlarm:MetricAlarm"
TARGET, POLICY = "appautoscaling/target:Target", "appautoscaling/policy:Policy"


@pytest.fixture
def name() -> str:
    return f"t-{secrets.token_hex(4)}"


def _filter(group: str, *, name: str, pattern: str = '{ $.message = "parked*" }') -> dict[str, Any]:
    transformation = {"name": "parked", "namespace": name, "value": "1", "defaultValue": "0", "unit": "Count"}
    return {"name": name, "logGroupName": group, "pattern": pattern, "metricTransformation": transformation}


def _filters(stage: HandledStage, group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stage.aws("logs").describe_metric_filters(logGroupName=group)["metricFilters"]
    return found


def test_a_metric_filter_is_made_changed_adopted_and_deleted(stage: HandledStage, name: str) -> None:
    group = stage.create(LOG_GROUP, "g", name=f"/minitickets/{name}")["name"]
    stage.create(FILTER, "f", **_filter(group, name=name))

    (made,) = _filters(stage, group)
    assert made["filterPattern"] == '{ $.message = "parked*" }'
    (counted,) = made["metricTransformations"]
    assert (counted["metricName"], counted["metricNamespace"], counted["metricValue"]) == ("parked", name, "1")
    assert counted["defaultValue"] == 0

    stage.update(FILTER, "f", **_filter(group, name=name, pattern="other"))
    assert [entry["filterPattern"] for entry in _filters(stage, group)] == ["other"]

    stage.forget(FILTER, "f")
    assert stage.adopt(FILTER, "f", **_filter(group, name=name)) is not None
    assert stage.adopt(FILTER, "another", **_filter(group, name=f"{name}-2")) is None
    stage.delete(FILTER, "f")
    assert _filters(stage, group) == []


def test_a_metric_filter_of_a_group_that_is_not_there_is_refused(stage: HandledStage, name: str) -> None:
    with pytest.raises(HandlerError, match="ResourceNotFoundException"):
        stage.create(FILTER, "f", **_filter(f"/minitickets/{name}", name=name))


def test_an_alarm_tells_its_topic_when_it_begins_and_when_it_ends(stage: HandledStage, name: str) -> None:
    topic = stage.create("sns/topic:Topic", "alarms", name=name)["arn"]
    stage.create(
        ALARM,
        "dlq",
        name=name,
        namespace="AWS/SQS",
        metricName="ApproximateNumberOfMessagesVisible",
        dimensions={"QueueName": "jobs-dlq"},
        statistic="Maximum",
        comparisonOperator="GreaterThanThreshold",
        threshold=0.0,
        evaluationPeriods=1.0,
        period=300.0,
        treatMissingData="notBreaching",
        alarmActions=[topic],
        okActions=[topic],
    )

    (live,) = stage.aws("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert (live["AlarmActions"], live["OKActions"]) == ([topic], [topic])
    assert live["Dimensions"] == [{"Name": "QueueName", "Value": "jobs-dlq"}]
    assert (live["Threshold"], live["Period"], live["TreatMissingData"]) == (0, 300, "notBreaching")


def _target(resource: str, *, low: float = 1.0, high: float = 4.0) -> dict[str, Any]:
    return {
        "serviceNamespace": "ecs",
        "scalableDimension": "ecs:service:DesiredCount",
        "resourceId": resource,
        "minCapacity": low,
        "maxCapacity": high,
    }


@pytest.fixture
def service(stage: HandledStage, name: str) -> str:
    """A service in the control plane, as ``service/<cluster>/<service>``."""
    ecs = stage.aws("ecs")
    ecs.create_cluster(clusterName=name)
    ecs.register_task_definition(family=name, containerDefinitions=[{"name": "api", "image": "local", "memory": 128}])
    ecs.create_service(cluster=name, serviceName=f"{name}-api", taskDefinition=name, desiredCount=0)
    return f"service/{name}/{name}-api"


def test_a_service_that_is_there_can_be_scaled_within_its_range(stage: HandledStage, service: str) -> None:
    target = stage.create(TARGET, "api", **_target(service))
    policy = stage.create(POLICY, "cpu", **{**_target(service), "name": "cpu", "policyType": "TargetTrackingScaling"})

    assert target["arn"].startswith("arn:aws:application-autoscaling:")
    assert policy["name"] == "cpu"
    assert stage.update(TARGET, "api", **_target(service, high=9.0))["maxCapacity"] == 9
    with pytest.raises(HandlerError, match="Maximum capacity cannot be less than minimum"):
        stage.update(TARGET, "api", **_target(service, low=5.0))


def test_a_service_that_is_not_there_cannot_be_scaled(stage: HandledStage, name: str) -> None:
    with pytest.raises(HandlerError, match="ECS service doesn't exist"):
        stage.create(TARGET, "api", **_target(f"service/{name}/{name}-api"))


def test_a_look_up_finds_a_running_service_in_its_cluster(stage: HandledStage, service: str) -> None:
    _, cluster, title = service.split("/")
    clusters = look_up(stage.platform, "aws:ecs/getClusters:getClusters", {})["clusterArns"]
    found = look_up(stage.platform, "aws:ecs/getService:getService", {"clusterArn": cluster, "serviceName": title})

    assert any(arn.endswith(f"/{cluster}") for arn in clusters)
    assert (found["serviceName"], found["status"]) == (title, "ACTIVE")


def test_a_look_up_of_no_service_says_what_the_provider_says(stage: HandledStage, service: str) -> None:
    _, cluster, title = service.split("/")
    for arguments in (
        {"clusterArn": cluster, "serviceName": "another"},
        {"clusterArn": "nowhere", "serviceName": title},
    ):
        with pytest.raises(InvokeError, match="no matching ECS Service found"):
            look_up(stage.platform, "aws:ecs/getService:getService", arguments)


def test_a_key_rotates_keeps_its_policy_and_waits_for_its_end(stage: HandledStage, name: str) -> None:
    policy = json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [{"Sid": name, "Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*"}],
        }
    )
    key = stage.create(KEY, "k", description=name, enableKeyRotation=True, policy=policy, deletionWindowInDays=7.0)
    kms = stage.aws("kms")

    assert kms.get_key_rotation_status(KeyId=key["keyId"])["KeyRotationEnabled"] is True
    assert name in kms.get_key_policy(KeyId=key["arn"], PolicyName="default")["Policy"]
    stage.update(KEY, "k", description="other", enableKeyRotation=False, policy=policy)
    assert kms.describe_key(KeyId=key["keyId"])["KeyMetadata"]["Description"] == "other"
    assert kms.get_key_rotation_status(KeyId=key["keyId"])["KeyRotationEnabled"] is False
    assert stage.read(KEY, "k") is not None

    stage.delete(KEY, "k")
    assert kms.describe_key(KeyId=key["keyId"])["KeyMetadata"]["KeyState"] == "PendingDeletion"
