"""Rules over every input of every resource, whatever a stage chooses."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from local.handlers.registry import HANDLERS
from src.settings import setting_keys

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recorded, Recording

pytestmark = pytest.mark.infra

GENERATED = "generated-by-secrets-manager"


@pytest.fixture(scope="module")
def everything(record: "Record") -> "Recording":
    """All that the program can declare."""
    return record(
        {
            "natGateways": "2",
            "publicUrl": "https://tickets.example.org",
            "certificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/one",
            "allowedCidrs": '["0.0.0.0/0"]',
            "alarmEmail": "oncall@example.org",
            "alarmKey": "true",
            "backupPlanDays": "35",
            "secretRotationReminderDays": "90",
            "apiMaxTasks": "4",
            "hostedZoneId": "Z01234",
        }
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _json_texts(resource: "Recorded") -> Iterator[str]:
    # The pattern of a log metric filter has a language of its own, with braces.
    inputs = {name: value for name, value in resource.inputs.items() if name != "pattern"}
    yield from (text for text in _texts(inputs) if text.startswith(("{", "[")))


def test_the_provider_compares_json_as_text_so_each_is_compact_with_sorted_keys(everything: "Recording") -> None:
    seen = 0
    for resource in everything.resources.values():
        for text in _json_texts(resource):
            seen += 1
            assert text == json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True), resource.key
    assert seen >= 20


def test_no_secret_stands_in_plain_text_in_any_input(everything: "Recording") -> None:
    holders = {
        (resource.key, name)
        for resource in everything.resources.values()
        for name, value in resource.inputs.items()
        if any(GENERATED in text for text in _texts(value))
    }
    assert holders == {
        ("aws:secretsmanager/secretVersion:SecretVersion ticket-signing", "secretString"),
        ("aws:secretsmanager/secretVersion:SecretVersion redis-token", "secretString"),
        ("aws:elasticache/replicationGroup:ReplicationGroup redis", "authToken"),
    }
    for key, name in holders:
        assert name in everything.resources[key].secrets, key


def test_no_output_of_the_stack_is_a_secret(everything: "Recording") -> None:
    assert not any(GENERATED in text for text in _texts(everything.outputs))


PROTECTED = {
    "aws:backup/vault:Vault db",
    "aws:dynamodb/table:Table processed-jobs",
    "aws:dynamodb/table:Table tickets",
    "aws:s3/bucket:Bucket assets",
    "aws:secretsmanager/secret:Secret ticket-signing",
}


def test_the_engine_protects_what_no_flip_takes_away_and_nobody_can_make_again(
    record: "Record", everything: "Recording"
) -> None:
    assert {resource.key for resource in everything.resources.values() if resource.protect} == PROTECTED
    off = record({"computeEnabled": "false", "dataEnabled": "false"})
    assert off.resources.keys() >= PROTECTED


def test_a_stage_without_deletion_protection_can_be_destroyed_in_one_go(record: "Record") -> None:
    recording = record({"deletionProtection": "false"})
    assert not [resource.key for resource in recording.resources.values() if resource.protect]


def test_every_log_group_has_a_retention(everything: "Recording") -> None:
    groups = everything.of("aws:cloudwatch/logGroup:LogGroup")
    assert groups.keys() == {"worker-logs", "tickets-logs", "api-logs", "db-postgresql-logs", "db-upgrade-logs"}
    assert all(group.inputs["retentionInDays"] > 0 for group in groups.values())


@pytest.mark.parametrize("star", ["Action", "Resource"])
def test_no_role_has_a_star_where_aws_knows_a_name(everything: "Recording", star: str) -> None:
    for policy in everything.of("aws:iam/rolePolicy:RolePolicy").values():
        for statement in json.loads(policy.inputs["policy"])["Statement"]:
            if statement["Sid"] != "GetRegistryToken":
                assert "*" not in statement[star], statement["Sid"]


LONGEST_STAGE = "a2345678901234567890"

LIMITS = {
    # type: (input that names it, characters that AWS allows)
    "aws:backup/plan:Plan": ("name", 50),
    "aws:backup/selection:Selection": ("name", 50),
    "aws:backup/vault:Vault": ("name", 50),
    "aws:scheduler/schedule:Schedule": ("name", 64),
    "aws:sns/topic:Topic": ("name", 256),
    "aws:sqs/queue:Queue": ("name", 80),
    "aws:lambda/function:Function": ("name", 64),
    "aws:iam/role:Role": ("name", 64),
    "aws:dynamodb/table:Table": ("name", 255),
    "aws:s3/bucket:Bucket": ("bucket", 63),
    "aws:secretsmanager/secret:Secret": ("name", 512),
    "aws:rds/instance:Instance": ("identifier", 63),
    "aws:rds/subnetGroup:SubnetGroup": ("name", 255),
    "aws:rds/parameterGroup:ParameterGroup": ("name", 255),
    "aws:elasticache/replicationGroup:ReplicationGroup": ("replicationGroupId", 40),
    "aws:elasticache/subnetGroup:SubnetGroup": ("name", 255),
    "aws:ecr/repository:Repository": ("name", 256),
    "aws:ecs/cluster:Cluster": ("name", 255),
    "aws:ecs/service:Service": ("name", 255),
    "aws:ecs/taskDefinition:TaskDefinition": ("family", 255),
    "aws:cloudwatch/logGroup:LogGroup": ("name", 512),
    "aws:ssm/parameter:Parameter": ("name", 1011),
    "aws:cloudwatch/metricAlarm:MetricAlarm": ("name", 255),
    "aws:cloudwatch/logMetricFilter:LogMetricFilter": ("name", 512),
    "aws:appautoscaling/policy:Policy": ("name", 256),
}


def test_the_longest_stage_name_fits_into_every_name_that_aws_allows(record: "Record") -> None:
    more = {"apiMaxTasks": "2", "backupPlanDays": "35", "secretRotationReminderDays": "90"}
    recording = record(more, stage=LONGEST_STAGE)
    for type_, (name, characters) in LIMITS.items():
        resources = recording.of(type_)
        assert resources, type_
        for resource in resources.values():
            assert LONGEST_STAGE in resource.inputs[name]
            assert len(resource.inputs[name]) <= characters, resource.key
    final = recording.one("aws:rds/instance:Instance", "db").inputs["finalSnapshotIdentifier"]
    assert len(final) <= 255
    assert "--" not in final
    assert not final.endswith("-")


# Types whose loss nobody can mend, or whose replacement would take something of a customer with it.
STATEFUL = (
    "aws:backup/vault:Vault",
    "aws:dynamodb/table:Table",
    "aws:ecr/repository:Repository",
    "aws:elasticache/replicationGroup:ReplicationGroup",
    "aws:rds/instance:Instance",
    "aws:s3/bucket:Bucket",
    "aws:secretsmanager/secret:Secret",
    "aws:secretsmanager/secretVersion:SecretVersion",
    "aws:sns/topic:Topic",
    "aws:sqs/queue:Queue",
    "aws:ssm/parameter:Parameter",
)

# Every setting but the switches, the sender (another address is another identity) and where artifacts lie.
CHANGED = {
    "verifyDomain": "true",
    "publicUrl": "https://other.example.org",
    "certificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/two",
    "allowedCidrs": '["203.0.113.0/24"]',
    "hostedZoneId": "Z01234",
    "natGateways": "1",
    "maxReceiveCount": "9",
    "accountConcurrency": "1000",
    "workerMaxConcurrency": "50",
    "ticketsMaxConcurrency": "20",
    "workerMemoryMib": "512",
    "ticketsMemoryMib": "512",
    "logRetentionDays": "7",
    "deletionProtection": "false",
    "pointInTimeRecovery": "false",
    "forceDestroy": "true",
    "secretRecoveryDays": "0",
    "alarmEmail": "oncall@example.org",
    "alarmKey": "true",
    "databaseConnectionsAlarm": "7",
    "databaseInstanceClass": "db.m7g.large",
    "databaseStorageGib": "200",
    "databaseMultiAz": "true",
    "databaseBackupDays": "35",
    "backupPlanDays": "35",
    "secretRotationReminderDays": "1",
    "keepSnapshots": "9",
    "cacheNodeType": "cache.m7g.large",
    "cacheReplicas": "2",
    "image": "another",
    "apiCpu": "1024",
    "apiMemoryMib": "2048",
    "apiMinTasks": "2",
    "apiMaxTasks": "9",
    "secretAdministrators": '["arn:aws:iam::123456789012:user/engineer"]',
}


def test_no_setting_and_no_newer_snapshot_or_zone_replaces_anything_that_keeps_something(record: "Record") -> None:
    living: dict[str, Any] = {
        "instances": ["minitickets-dev-db"],
        "parameters": {"/minitickets-dev/database-life": '{"bornFrom":"a","final":"b","rewoundAt":null}'},
    }
    before = record({}, **living)
    after = record(CHANGED, **living, snapshots={"z": "available"}, zones=["us-east-1c", "us-east-1d"])
    unchanged = setting_keys().keys() - CHANGED.keys()
    assert unchanged == {"production", "computeEnabled", "dataEnabled", "sender", "artifactsDir"}
    seen = set()
    for key, resource in before.resources.items():
        if resource.type in STATEFUL:
            seen.add(resource.type)
            for name in HANDLERS[resource.type].replaced_by - set(resource.ignore_changes):
                assert after.resources[key].inputs.get(name) == resource.inputs.get(name), f"{key}: {name}"
    assert seen == set(STATEFUL)


def test_what_would_replace_a_living_database_is_a_constant_or_ignored(
    record: "Record", everything: "Recording"
) -> None:
    database = everything.one("aws:rds/instance:Instance", "db")
    given = (HANDLERS[database.type].replaced_by & database.inputs.keys()) - set(database.ignore_changes)
    assert {name: database.inputs[name] for name in given} == {
        "dbName": "minitickets",
        "engine": "postgres",
        "storageEncrypted": True,
        "username": "minitickets",
    }


@pytest.mark.parametrize(
    ("type_", "names"),
    [
        ("aws:ec2/securityGroupRule:SecurityGroupRule", None),
        ("aws:cloudwatch/logMetricFilter:LogMetricFilter", None),
        ("aws:ec2/route:Route", {"private-0", "private-1"}),
    ],
)
def test_what_aws_holds_only_once_goes_before_its_successor_comes(
    everything: "Recording", type_: str, names: set[str] | None
) -> None:
    resources = everything.of(type_)
    assert resources
    for name in names or resources.keys():
        assert resources[name].goes_first, name
