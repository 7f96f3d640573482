"""Which plans are refused, and in what words."""

import re
from pathlib import Path

import pytest

from ops.deploy.plan import _GOES_WITH_DATA, losses, read_plan
from ops.stage_file import StageSettings
from ops.tests.stages import preview, step

pytestmark = pytest.mark.unit

DATABASE = "aws:rds/instance:Instance"
SERVICE = "aws:ecs/service:Service"
LASTING = [
    ("aws:dynamodb/table:Table", "tickets"),
    ("aws:s3/bucket:Bucket", "assets"),
    ("aws:secretsmanager/secret:Secret", "signing"),
    ("aws:sqs/queue:Queue", "jobs"),
    ("aws:ssm/parameter:Parameter", "database-life"),
    ("aws:ecr/repository:Repository", "api"),
    ("aws:sesv2/emailIdentity:EmailIdentity", "sender"),
]
WITH_DATA = sorted(_GOES_WITH_DATA)


def _settings(*, compute: bool = True, data: bool = True, image: str = "repository@sha256:1") -> StageSettings:
    own = {
        "minitickets:computeEnabled": compute,
        "minitickets:dataEnabled": data,
        "minitickets:image": image,
    }
    return StageSettings(file="Pulumi.dev.yaml", own=own, defaults={})


@pytest.mark.parametrize(("kind", "name"), [*LASTING, *WITH_DATA])
@pytest.mark.parametrize("operation", ["delete", "replace", "delete-replaced", "create-replacement"])
def test_nothing_that_lasts_is_deleted_or_replaced_while_all_is_on(kind: str, name: str, operation: str) -> None:
    plan = read_plan(preview(step(operation, kind, name)))
    [refused] = losses(plan, _settings())
    assert name in refused


@pytest.mark.parametrize(("kind", "name"), WITH_DATA)
def test_a_flip_may_delete_what_goes_with_data(kind: str, name: str) -> None:
    assert losses(read_plan(preview(step("delete", kind, name))), _settings(compute=False, data=False)) == []


@pytest.mark.parametrize(("kind", "name"), WITH_DATA)
def test_no_flip_may_replace_it(kind: str, name: str) -> None:
    assert losses(read_plan(preview(step("replace", kind, name))), _settings(compute=False, data=False))


@pytest.mark.parametrize(("kind", "name"), LASTING)
def test_no_flip_may_delete_what_stays(kind: str, name: str) -> None:
    assert losses(read_plan(preview(step("delete", kind, name))), _settings(compute=False, data=False))


def test_a_refused_replacement_names_the_resource_once_and_the_inputs_that_cause_it() -> None:
    plan = read_plan(
        preview(
            step("create-replacement", DATABASE, "db", replaceReasons=["username", "kmsKeyId"]),
            step("replace", DATABASE, "db", replaceReasons=["username", "kmsKeyId"], diffReasons=["username", "tags"]),
            step("delete-replaced", DATABASE, "db", replaceReasons=["username", "kmsKeyId"]),
        )
    )
    assert losses(plan, _settings()) == [
        "replace the database aws:rds:Instance db: a change of username, kmsKeyId does that"
    ]


def test_the_inputs_are_found_in_the_detailed_difference_too() -> None:
    detail = {"hashKey": {"kind": "update-replace"}, "tags": {"kind": "update"}}
    plan = read_plan(preview({**step("replace", "aws:dynamodb/table:Table", "tickets"), "detailedDiff": detail}))
    [refused] = losses(plan, _settings())
    assert refused.endswith("a change of hashKey does that")


def test_a_running_service_is_not_deleted_because_the_image_is_missing() -> None:
    plan = read_plan(preview(step("delete", SERVICE, "api")))
    [refused] = losses(plan, _settings(image=""))
    assert "Pulumi.dev.yaml names no image" in refused
    assert losses(plan, _settings(compute=False)) == []


def test_what_can_be_made_again_may_go_and_be_replaced() -> None:
    plan = read_plan(
        preview(
            step("replace", "aws:ecs/taskDefinition:TaskDefinition", "api"),
            step("delete", "aws:ec2/natGateway:NatGateway", "a"),
            step("update", DATABASE, "db"),
            step("create", "aws:sqs/queue:Queue", "later"),
            step("same", "aws:s3/bucket:Bucket", "assets"),
        )
    )
    assert losses(plan, _settings()) == []


def test_a_person_reads_what_changes_and_how_much() -> None:
    plan = read_plan(
        preview(
            step("same", "pulumi:pulumi:Stack", "minitickets-dev"),
            step("create", "aws:sqs/queue:Queue", "jobs"),
            step("update", "aws:lambda/function:Function", "worker", diffReasons=["timeout"]),
            step("delete", SERVICE, "api"),
        )
    )
    assert plan.lines() == [
        "  + aws:sqs:Queue jobs",
        "  ~ aws:lambda:Function worker (timeout)",
        "  - aws:ecs:Service api",
        "  1 to create, 1 to change, 1 to delete",
    ]


@pytest.mark.parametrize("document", ["", "[]", "error: boom", '{"steps": '])
def test_what_is_no_preview_is_not_taken_for_an_empty_one(document: str) -> None:
    with pytest.raises(ValueError):
        read_plan(document)


def test_the_program_calls_what_goes_with_data_by_these_names() -> None:
    data = Path(__file__).parents[2] / "infra" / "src" / "data"
    source = "".join(path.read_text() for path in data.glob("*.py"))
    for kind, name in _GOES_WITH_DATA:
        resource_class = kind.rpartition(":")[2]
        assert re.search(rf'{resource_class}\(\s*"{name}"', source), f"{kind} {name}"
