"""Least privilege, watched: what a demo calls is within what its roles may do, and is all that a demo can reach.

A record names the service, the call and the role, not the resource: those are asserted where they are refused
(``test_permissions_refused``) and taken away (``test_permissions_needed``).
"""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from local.stage_folder import read_json
from tests.fixtures.recorded_calls import RecordedCall, RecordedCalls, action_of
from tests.fixtures.role_policies import Grant, RolePolicies

pytestmark = pytest.mark.e2e

_DEMO_SECONDS = 180

# What a demo does not call in a way that a record shows, and why.
OUT_OF_REACH = {
    "s3:GetObject": {"role api-task": "a ticket's image is fetched by its presigned URL"},
    "s3:PutObject": {"role api-task": "nobody publishes a poster"},
    "sqs:ReceiveMessage": {"role worker": "a mapping polls", "role tickets": "a mapping polls"},
    "sqs:DeleteMessage": {"role worker": "a mapping deletes", "role tickets": "a mapping deletes"},
    "sqs:GetQueueAttributes": {"role worker": "a mapping reads", "role tickets": "a mapping reads"},
    "sqs:ChangeMessageVisibility": {"role worker": "nothing fails"},
    "dynamodb:GetItem": {"role tickets": "no event comes twice"},
    "logs:CreateLogStream": {"role worker": "Lambda writes", "role tickets": "Lambda writes"},
    "logs:PutLogEvents": {"role worker": "Lambda writes", "role tickets": "Lambda writes"},
}


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What a demo on a stage of its own left behind."""

    calls: list[RecordedCall]
    policies: RolePolicies


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("demo") / "stage"
    done = subprocess.run(
        [sys.executable, "-m", "local", "demo", "--seats", "3", "--folder", str(folder)],
        capture_output=True,
        text=True,
        timeout=_DEMO_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Demo(
        calls=list(RecordedCalls(folder / "calls.jsonl").all()),
        policies=RolePolicies(read_json(folder / "resources.json")),
    )


def _shown(grant: Grant) -> bool:
    """Whether a record shows it when a demo uses it: the processes' own calls, not those of AWS in a role's name."""
    is_process = grant.holder in {"role api-task", "role worker", "role tickets"}
    return is_process and grant.holder not in OUT_OF_REACH.get(grant.action, {})


def test_nothing_that_a_demo_calls_is_refused(demo: Demo) -> None:
    assert demo.calls
    assert [call for call in demo.calls if call.refusal] == []


def test_what_a_demo_calls_is_role_by_role_within_the_true_statements(demo: Demo) -> None:
    for role in {call.role for call in demo.calls}:
        called = {call.action for call in demo.calls if call.role == role}
        assert called <= demo.policies.actions_of(role), role


def test_a_demo_uses_every_action_that_it_can_reach(demo: Demo) -> None:
    used = {(call.role, call.action) for call in demo.calls if call.status == 200}
    reachable = {
        (demo.policies.physical_name(grant.holder), grant.action) for grant in demo.policies.grants() if _shown(grant)
    }

    assert used == reachable


def test_what_is_said_to_be_out_of_reach_is_a_right_that_there_is(demo: Demo) -> None:
    given = {(grant.holder, grant.action) for grant in demo.policies.grants()}

    assert {(holder, action) for action, holders in OUT_OF_REACH.items() for holder in holders} <= given


@pytest.mark.parametrize(
    ("service", "api", "action"),
    [
        ("SNS", "PublishBatch", "sns:Publish"),
        ("SQS", "ChangeMessageVisibilityBatch", "sqs:ChangeMessageVisibility"),
        ("DynamoDB", "BatchGetItem", "dynamodb:BatchGetItem"),
        ("SESv2", "SendEmail", "ses:SendEmail"),
        ("Secrets Manager", "GetSecretValue", "secretsmanager:GetSecretValue"),
    ],
)
def test_a_call_is_judged_by_the_action_that_aws_asks_for(service: str, api: str, action: str) -> None:
    assert action_of(service, api) == action


def test_a_service_that_is_new_to_the_record_must_be_named_first() -> None:
    with pytest.raises(ValueError, match="Kinesis PutRecord: a call of a service that is new here"):
        action_of("Kinesis", "PutRecord")
