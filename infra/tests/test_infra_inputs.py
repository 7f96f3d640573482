"""Rules over every input of every resource, whatever a stage chooses."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

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
    yield from (text for text in _texts(resource.inputs) if text.startswith(("{", "[")))


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


def test_nothing_is_protected_by_the_engine_since_that_would_fail_a_preview_of_a_flip(everything: "Recording") -> None:
    assert not [resource.key for resource in everything.resources.values() if resource.protect]


def test_every_log_group_has_a_retention(everything: "Recording") -> None:
    groups = everything.of("aws:cloudwatch/logGroup:LogGroup")
    assert groups.keys() == {"worker-logs", "tickets-logs", "api-logs"}
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
}


def test_the_longest_stage_name_fits_into_every_name_that_aws_allows(record: "Record") -> None:
    recording = record({}, stage=LONGEST_STAGE)
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
