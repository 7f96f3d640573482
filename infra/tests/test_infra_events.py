"""Queues, functions and what joins them: the documented numbers, and an order that AWS accepts."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

ACCOUNT = "123456789012"
DAY_SECONDS = 24 * 60 * 60
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:minitickets-dev-booking-events"

QUEUE = "aws:sqs/queue:Queue"
FUNCTION = "aws:lambda/function:Function"
MAPPING = "aws:lambda/eventSourceMapping:EventSourceMapping"


def _arn(thing: str) -> str:
    return f"arn:aws:sqs:us-east-1:{ACCOUNT}:minitickets-dev-{thing}"


def test_the_queues_are_named_and_no_others_are_there(both_on: "Recording") -> None:
    things = {f"{consumer}{suffix}" for consumer in ("jobs", "tickets") for suffix in ("", "-dlq", "-undelivered")}
    assert {queue.inputs["name"] for queue in both_on.of(QUEUE).values()} == {f"minitickets-dev-{t}" for t in things}


@pytest.mark.parametrize(("consumer", "visibility_seconds"), [("jobs", 60), ("tickets", 180)])
def test_a_message_is_tried_three_times_in_four_days(
    both_on: "Recording", consumer: str, visibility_seconds: int
) -> None:
    queue = both_on.one(QUEUE, consumer).inputs
    assert queue["messageRetentionSeconds"] == 4 * DAY_SECONDS
    assert queue["visibilityTimeoutSeconds"] == visibility_seconds
    assert json.loads(queue["redrivePolicy"]) == {
        "deadLetterTargetArn": _arn(f"{consumer}-dlq"),
        "maxReceiveCount": 3,
    }


def test_max_receive_count_is_a_setting_because_racing_polls_can_spend_it(record: "Record") -> None:
    queue = record({"maxReceiveCount": "6"}).one(QUEUE, "jobs").inputs
    assert json.loads(queue["redrivePolicy"])["maxReceiveCount"] == 6


def test_a_message_keeps_its_age_so_dead_letters_are_kept_for_14_days(both_on: "Recording") -> None:
    for consumer in ("jobs", "tickets"):
        for suffix in ("dlq", "undelivered"):
            queue = both_on.one(QUEUE, f"{consumer}-{suffix}").inputs
            assert queue["messageRetentionSeconds"] == 14 * DAY_SECONDS


def test_a_queue_with_sqs_managed_encryption_needs_no_key_policy(both_on: "Recording") -> None:
    for queue in both_on.of(QUEUE).values():
        assert queue.inputs["sqsManagedSseEnabled"] is True
        assert "kmsMasterKeyId" not in queue.inputs


def test_the_topic_is_encrypted(both_on: "Recording") -> None:
    assert both_on.one("aws:sns/topic:Topic", "booking-events").inputs == {
        "name": "minitickets-dev-booking-events",
        "kmsMasterKeyId": "alias/aws/sns",
    }


@pytest.mark.parametrize("consumer", ["jobs", "tickets"])
def test_a_subscription_is_raw_and_has_a_dead_letter_queue_of_its_own(both_on: "Recording", consumer: str) -> None:
    subscription = both_on.one("aws:sns/topicSubscription:TopicSubscription", consumer)
    assert subscription.inputs["topic"] == TOPIC
    assert subscription.inputs["endpoint"] == _arn(consumer)
    assert subscription.inputs["rawMessageDelivery"] is True
    assert json.loads(subscription.inputs["redrivePolicy"]) == {"deadLetterTargetArn": _arn(f"{consumer}-undelivered")}
    policies = {
        f"aws:sqs/queuePolicy:QueuePolicy {consumer}",
        f"aws:sqs/queuePolicy:QueuePolicy {consumer}-undelivered",
    }
    assert policies <= subscription.depends_on


@pytest.mark.parametrize("thing", ["jobs", "tickets", "jobs-undelivered", "tickets-undelivered"])
def test_a_queue_lets_in_only_our_topic_on_behalf_of_our_account(both_on: "Recording", thing: str) -> None:
    (statement,) = both_on.policy("aws:sqs/queuePolicy:QueuePolicy", thing)["Statement"]
    assert statement == {
        "Sid": "AllowBookingEvents",
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": _arn(thing),
        "Condition": {
            "ArnEquals": {"aws:SourceArn": TOPIC},
            "StringEquals": {"aws:SourceAccount": ACCOUNT},
        },
    }


FUNCTIONS: dict[str, dict[str, Any]] = {
    "worker": {
        "queue": "jobs",
        "timeout": 10,
        "batch": 10,
        "cap": 5,
        "handler": "minitickets_worker.batch.lambda_handler",
        "environment": {
            "STAGE": "dev",
            "PROCESSED_JOBS_TABLE": "minitickets-dev-processed-jobs",
            "JOBS_QUEUE_URL": f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/minitickets-dev-jobs",
            "SENDER": "tickets@example.org",
            "POWERTOOLS_SERVICE_NAME": "worker",
            "POWERTOOLS_LOG_LEVEL": "INFO",
        },
    },
    "tickets": {
        "queue": "tickets",
        "timeout": 30,
        "batch": 1,
        "cap": 2,
        "handler": "minitickets_tickets.handler.lambda_handler",
        "environment": {
            "STAGE": "dev",
            "TICKETS_TABLE": "minitickets-dev-tickets",
            "ASSETS_BUCKET": f"minitickets-dev-assets-{ACCOUNT}",
            "SIGNING_SECRET_ARN": (
                f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:minitickets-dev-ticket-signing-AbCdEf"
            ),
            "POWERTOOLS_SERVICE_NAME": "tickets",
            "POWERTOOLS_LOG_LEVEL": "INFO",
        },
    },
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_as_documented(both_on: "Recording", name: str) -> None:
    expected, function = FUNCTIONS[name], both_on.one(FUNCTION, name).inputs
    assert function["name"] == f"minitickets-dev-{name}"
    assert (function["runtime"], function["architectures"]) == ("python3.13", ["arm64"])
    assert function["handler"] == expected["handler"]
    assert function["timeout"] == expected["timeout"]
    assert function["environment"]["variables"] == expected["environment"]
    assert function["code"] == f"{name}.zip"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mapping_has_its_cap_and_reports_failed_messages_only(both_on: "Recording", name: str) -> None:
    expected, mapping = FUNCTIONS[name], both_on.one(MAPPING, name).inputs
    assert mapping["eventSourceArn"] == _arn(expected["queue"])
    assert mapping["batchSize"] == expected["batch"]
    assert mapping["scalingConfig"] == {"maximumConcurrency": expected["cap"]}
    assert mapping["functionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping.get("enabled", True) is True


@pytest.mark.parametrize("name", FUNCTIONS)
def test_messages_stay_hidden_for_at_least_six_timeouts_of_their_function(both_on: "Recording", name: str) -> None:
    queue = both_on.one(QUEUE, FUNCTIONS[name]["queue"]).inputs
    assert queue["visibilityTimeoutSeconds"] >= 6 * both_on.one(FUNCTION, name).inputs["timeout"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mapping_is_refused_before_its_role_may_receive_so_it_waits_for_the_policy(
    both_on: "Recording", name: str
) -> None:
    assert f"aws:iam/rolePolicy:RolePolicy {name}" in both_on.one(MAPPING, name).depends_on


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_log_group_with_retention_is_there_before_its_function(both_on: "Recording", name: str) -> None:
    assert f"aws:cloudwatch/logGroup:LogGroup {name}-logs" in both_on.one(FUNCTION, name).depends_on
    assert both_on.one("aws:cloudwatch/logGroup:LogGroup", f"{name}-logs").inputs == {
        "name": f"/aws/lambda/minitickets-dev-{name}",
        "retentionInDays": 30,
    }


def test_an_account_with_ten_executions_refuses_reserved_concurrency(both_on: "Recording") -> None:
    for function in both_on.of(FUNCTION).values():
        assert "reservedConcurrentExecutions" not in function.inputs


def test_functions_live_outside_the_vpc(both_on: "Recording") -> None:
    for function in both_on.of(FUNCTION).values():
        assert "vpcConfig" not in function.inputs


def test_links_in_mails_use_the_public_url_and_never_the_load_balancer(record: "Record", both_on: "Recording") -> None:
    variables = record({"publicUrl": "https://tickets.example.org"}).one(FUNCTION, "worker").inputs["environment"]
    assert variables["variables"]["PUBLIC_URL"] == "https://tickets.example.org"
    assert "PUBLIC_URL" not in both_on.one(FUNCTION, "worker").inputs["environment"]["variables"]


def test_a_missing_zip_says_to_build_before_anything_is_made(
    record: "Record", program_failed: type[Any], tmp_path: Path
) -> None:
    with pytest.raises(program_failed, match=r"worker\.zip is not there: run `make build` first") as failure:
        record({"artifactsDir": str(tmp_path)})
    assert failure.value.resources == {}
