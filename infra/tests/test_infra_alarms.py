"""Alarms: where a booking can stop, whom they tell, and what to do about each."""

import json
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from src.observability import outbox_metrics

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

ROOT = Path(__file__).resolve().parents[2]
ALARM = "aws:cloudwatch/metricAlarm:MetricAlarm"
FILTER = "aws:cloudwatch/logMetricFilter:LogMetricFilter"
SUBSCRIPTION = "aws:sns/topicSubscription:TopicSubscription"
TOPIC = "arn:aws:sns:us-east-1:123456789012:minitickets-dev-alarms"

# thing → (metric, what it looks at, how many periods of five minutes, threshold)
Watch = tuple[str, dict[str, str], int, float]
BALANCER = {"LoadBalancer": "app/api-1234567/1"}
TASKS = {**BALANCER, "TargetGroup": "targetgroup/api-1234567/1"}
DATABASE = {"DBInstanceIdentifier": "minitickets-dev-db"}


def _queue(thing: str) -> dict[str, str]:
    return {"QueueName": f"minitickets-dev-{thing}"}


def _function(thing: str) -> dict[str, str]:
    return {"FunctionName": f"minitickets-dev-{thing}"}


ALWAYS_ON: dict[str, Watch] = {
    "jobs-dlq": ("ApproximateNumberOfMessagesVisible", _queue("jobs-dlq"), 1, 0),
    "jobs-undelivered": ("ApproximateNumberOfMessagesVisible", _queue("jobs-undelivered"), 1, 0),
    "jobs-age": ("ApproximateAgeOfOldestMessage", _queue("jobs"), 1, 1800),
    "tickets-dlq": ("ApproximateNumberOfMessagesVisible", _queue("tickets-dlq"), 1, 0),
    "tickets-undelivered": ("ApproximateNumberOfMessagesVisible", _queue("tickets-undelivered"), 1, 0),
    "tickets-age": ("ApproximateAgeOfOldestMessage", _queue("tickets"), 1, 1800),
    "worker-errors": ("Errors", _function("worker"), 1, 0),
    "worker-throttles": ("Throttles", _function("worker"), 3, 0),
    "tickets-errors": ("Errors", _function("tickets"), 1, 0),
    "tickets-throttles": ("Throttles", _function("tickets"), 3, 0),
}
WITH_DATA: dict[str, Watch] = {
    "database-storage": ("FreeStorageSpace", DATABASE, 1, 2 * 1024**3),
    "database-cpu": ("CPUUtilization", DATABASE, 3, 90),
    "database-connections": ("DatabaseConnections", DATABASE, 1, 60),
}
WITH_COMPUTE: dict[str, Watch] = {
    "outbox-parked": ("outbox-parked", {}, 1, 0),
    "outbox-delayed": ("outbox-delayed", {}, 3, 0),
    "api-errors": ("HTTPCode_Target_5XX_Count", BALANCER, 1, 5),
    "load-balancer-errors": ("HTTPCode_ELB_5XX_Count", BALANCER, 1, 5),
    "api-tasks": ("HealthyHostCount", TASKS, 1, 1),
}
WITH_BACKUP_PLAN: dict[str, Watch] = {
    "backup-failed": ("NumberOfBackupJobsFailed", {"BackupVaultName": "minitickets-dev-db"}, 1, 0),
}
ALL = ALWAYS_ON | WITH_DATA | WITH_COMPUTE | WITH_BACKUP_PLAN


@pytest.fixture
def with_all(record: "Record") -> "Recording":
    """A stage that has every alarm."""
    return record({"backupPlanDays": "35"})


def test_alarms_come_and_go_with_what_they_watch(
    both_on: "Recording", with_all: "Recording", compute_off: "Recording", both_off: "Recording"
) -> None:
    assert both_off.of(ALARM).keys() == ALWAYS_ON.keys()
    assert compute_off.of(ALARM).keys() == ALWAYS_ON.keys() | WITH_DATA.keys()
    assert both_on.of(ALARM).keys() == ALL.keys() - WITH_BACKUP_PLAN.keys()
    assert with_all.of(ALARM).keys() == ALL.keys()


def test_the_alarms_that_are_always_on_are_as_many_as_an_account_has_for_free(both_off: "Recording") -> None:
    assert len(both_off.of(ALARM)) <= 10
    for alarm in both_off.of(ALARM).values():
        assert alarm.inputs["period"] >= 60, "high-resolution alarms are never free"


@pytest.mark.parametrize("thing", ALL)
def test_an_alarm_watches_what_is_there_and_tells_of_its_begin_and_end(with_all: "Recording", thing: str) -> None:
    alarm = with_all.one(ALARM, thing).inputs
    metric, dimensions, periods, threshold = ALL[thing]
    assert alarm["name"] == f"minitickets-dev-{thing}"
    assert (alarm["metricName"], alarm.get("dimensions", {})) == (metric, dimensions)
    assert (alarm["period"], alarm["evaluationPeriods"]) == (300, periods)
    assert alarm["threshold"] == pytest.approx(threshold)
    assert (alarm["alarmActions"], alarm["okActions"]) == ([TOPIC], [TOPIC])


def test_what_runs_out_is_watched_from_above_and_all_else_from_below(both_on: "Recording") -> None:
    below = {
        name for name, alarm in both_on.of(ALARM).items() if alarm.inputs["comparisonOperator"] == "LessThanThreshold"
    }
    assert below == {"database-storage", "api-tasks"}


def test_silence_is_bad_only_where_no_number_means_no_task(both_on: "Recording") -> None:
    bad = {name for name, alarm in both_on.of(ALARM).items() if alarm.inputs["treatMissingData"] == "breaching"}
    assert bad == {"api-tasks"}
    assert "aws:ecs/service:Service api" in both_on.one(ALARM, "api-tasks").depends_on


def test_a_queue_alarm_looks_at_the_queue_of_the_program(both_on: "Recording") -> None:
    queues = {queue.inputs["name"] for queue in both_on.of("aws:sqs/queue:Queue").values()}
    watched = {
        a.inputs["dimensions"]["QueueName"]
        for a in both_on.of(ALARM).values()
        if "QueueName" in a.inputs.get("dimensions", {})
    }
    assert watched == queues


def test_a_stage_chooses_the_size_that_an_alarm_is_measured_by(record: "Record") -> None:
    recording = record({"databaseStorageGib": "100", "databaseConnectionsAlarm": "600"})
    assert recording.one(ALARM, "database-storage").inputs["threshold"] == pytest.approx(10 * 1024**3)
    assert recording.one(ALARM, "database-connections").inputs["threshold"] == 600


def _pattern_finds(pattern: str, line: str) -> bool:
    """Whether a filter pattern of the form ``{ $.field = "beginning*" }`` finds a line of JSON."""
    match = re.fullmatch(r'\{ \$\.(\w+) = "([^"]*)\*" \}', pattern)
    assert match, pattern
    return str(json.loads(line).get(match[1], "")).startswith(match[2])


@pytest.mark.parametrize(
    ("metric", "level", "said"),
    [
        ("outbox-parked", logging.ERROR, "booking event parked: %s"),
        ("outbox-delayed", logging.WARNING, "booking event delayed by %.1f s: %s"),
    ],
)
def test_a_metric_counts_the_lines_that_the_relay_writes_and_no_others(
    both_on: "Recording", metric: str, level: int, said: str
) -> None:
    from minitickets_api.logs import JsonFormatter

    relay = (ROOT / "apps/api/src/minitickets_api/services/outbox.py").read_text()
    assert f'_log.{logging.getLevelName(level).lower()}("{said}"' in relay
    counted = both_on.one(FILTER, metric).inputs
    assert counted["logGroupName"] == "/ecs/minitickets-dev-api"
    lines = {
        text: JsonFormatter().format(logging.makeLogRecord({"msg": text, "levelno": level}))
        for text in (said, "booking event published")
    }
    assert _pattern_finds(counted["pattern"], lines[said])
    assert not _pattern_finds(counted["pattern"], lines["booking event published"])


def test_an_alarm_sums_the_metric_that_its_filter_writes(both_on: "Recording") -> None:
    for thing in ("outbox-parked", "outbox-delayed"):
        written = both_on.one(FILTER, thing).inputs["metricTransformation"]
        alarm = both_on.one(ALARM, thing).inputs
        assert (alarm["namespace"], alarm["metricName"]) == (written["namespace"], written["name"])
        assert (written["value"], written["defaultValue"], alarm["statistic"]) == ("1", "0", "Sum")
    assert outbox_metrics.PARKED != outbox_metrics.DELAYED


def test_only_our_own_alarms_may_be_told_to_the_topic(both_on: "Recording") -> None:
    (statement,) = both_on.policy("aws:sns/topicPolicy:TopicPolicy", "alarms")["Statement"]
    assert statement == {
        "Sid": "AllowOwnAlarms",
        "Effect": "Allow",
        "Principal": {"Service": "cloudwatch.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": TOPIC,
        "Condition": {
            "ArnLike": {"aws:SourceArn": "arn:aws:cloudwatch:us-east-1:123456789012:alarm:minitickets-dev-*"},
            "StringEquals": {"aws:SourceAccount": "123456789012"},
        },
    }


def test_alarms_are_encrypted_with_a_key_that_cloudwatch_may_use_or_not_at_all(
    record: "Record", both_on: "Recording"
) -> None:
    assert "kmsMasterKeyId" not in both_on.one("aws:sns/topic:Topic", "alarms").inputs
    assert not both_on.of("aws:kms/key:Key")
    recording = record({"alarmKey": "true"})
    assert recording.one("aws:sns/topic:Topic", "alarms").inputs["kmsMasterKeyId"].startswith("arn:aws:kms:")
    managed, used = recording.policy("aws:kms/key:Key", "alarms")["Statement"]
    assert managed["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
    assert used["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert used["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
    assert used["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}


def test_whoever_the_stage_names_is_mailed_and_without_a_name_nobody_is(record: "Record", both_on: "Recording") -> None:
    mailed = record({"alarmEmail": "oncall@example.org"}).one(SUBSCRIPTION, "alarms").inputs
    assert mailed == {"topic": TOPIC, "protocol": "email", "endpoint": "oncall@example.org"}
    assert "alarms" not in both_on.of(SUBSCRIPTION)


def _runbook_sections() -> dict[str, str]:
    """Headings of the runbook's chapter on alarms, with what stands below each."""
    text = (ROOT / "docs/runbook.md").read_text()
    chapter = re.search(r"^## Alarms$(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    assert chapter, "docs/runbook.md has no chapter Alarms"
    parts = re.split(r"^### (.+)$", chapter[1], flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_each_alarm_has_its_section_in_the_runbook_and_no_section_is_left_over() -> None:
    assert _runbook_sections().keys() == ALL.keys()


@pytest.mark.parametrize("thing", ALL)
def test_a_section_of_the_runbook_says_what_it_means_where_to_look_and_what_to_do(
    with_all: "Recording", thing: str
) -> None:
    section = _runbook_sections()[thing]
    for part in ("**Means**", "**Look**", "**Do**"):
        assert part in section, part
    description: Any = with_all.one(ALARM, thing).inputs["alarmDescription"]
    assert description.endswith(f"What to do: docs/runbook.md, section {thing}")
    meaning = description.removesuffix(f" What to do: docs/runbook.md, section {thing}")
    assert meaning in " ".join(section.split()), f"the runbook does not repeat: {meaning}"


SCHEDULE = "aws:scheduler/schedule:Schedule"
REMINDER = "rotation-reminder"
REMINDED = {"secretRotationReminderDays": "90", "alarmKey": "true"}


def test_a_reminder_to_rotate_the_signing_keys_goes_where_alarms_go(record: "Record", both_on: "Recording") -> None:
    assert not both_on.of(SCHEDULE)
    recording = record(REMINDED)
    schedule = recording.one(SCHEDULE, REMINDER)
    assert schedule.inputs["scheduleExpression"] == "rate(90 days)"
    assert schedule.inputs["target"]["arn"] == TOPIC
    assert "minitickets-dev" in schedule.inputs["target"]["input"]
    assert f"aws:iam/rolePolicy:RolePolicy {REMINDER}" in schedule.depends_on
    daily = record({"secretRotationReminderDays": "1"}).one(SCHEDULE, REMINDER)
    assert daily.inputs["scheduleExpression"] == "rate(1 day)", "Scheduler takes no plural of one"


def test_a_reminder_names_a_section_that_the_runbook_has(record: "Record") -> None:
    text = record(REMINDED).one(SCHEDULE, REMINDER).inputs["target"]["input"]
    section = text.partition("How: docs/runbook.md, section ")[2]
    assert f"\n## {section}\n" in (ROOT / "docs/runbook.md").read_text()


def test_a_reminder_goes_under_a_role_that_may_do_nothing_else(record: "Record") -> None:
    # By the topic's policy it would need a statement without a condition: EventBridge's rules satisfy none there.
    recording = record(REMINDED)
    remind, encrypt = recording.policy("aws:iam/rolePolicy:RolePolicy", REMINDER)["Statement"]
    key = recording.one("aws:sns/topic:Topic", "alarms").inputs["kmsMasterKeyId"]
    assert (remind["Action"], remind["Resource"]) == (["sns:Publish"], [TOPIC])
    assert (encrypt["Action"], encrypt["Resource"]) == (["kms:Decrypt", "kms:GenerateDataKey"], [key])
    (trusted,) = json.loads(recording.one("aws:iam/role:Role", REMINDER).inputs["assumeRolePolicy"])["Statement"]
    assert trusted["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trusted["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "123456789012"},
        "ArnLike": {"aws:SourceArn": "arn:aws:scheduler:us-east-1:123456789012:schedule-group/default"},
    }
    plain = record({"secretRotationReminderDays": "90"})
    assert len(plain.policy("aws:iam/rolePolicy:RolePolicy", REMINDER)["Statement"]) == 1


def test_a_flip_leaves_the_reminder_as_it_is(record: "Record") -> None:
    on = record(REMINDED)
    off = record({**REMINDED, "computeEnabled": "false", "dataEnabled": "false"})
    assert on.of(SCHEDULE) == off.of(SCHEDULE)
