"""Least privilege, the one half: every right that the program gives is needed. Each is taken away, and is missed.

A right is one action on one resource of one statement. Its path is walked with the whole policy, without the right,
and with the whole policy again. Two questions the emulator does not ask on the way, so the handlers ask them when the
resource is made: what a mapping polls and what a function or task logs, and what ECS needs to start a task.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from tests.fixtures.permission_paths import PathRefusedError, PermissionPaths
from tests.fixtures.platform import RunningPlatform
from tests.fixtures.role_policies import Grant, RolePolicies

pytestmark = pytest.mark.e2e

Path = Callable[[PermissionPaths, Grant], None]


@dataclass(frozen=True, kw_only=True)
class Need:
    """A right, and the path that needs it. ``resource`` is a pattern, where a statement has several resources."""

    holder: str
    sid: str
    action: str
    resource: str = "*"
    path: Path

    def is_for(self, grant: Grant) -> bool:
        same = (self.holder, self.sid, self.action) == (grant.holder, grant.sid, grant.action)
        return same and fnmatchcase(grant.resource, self.resource)

    def __str__(self) -> str:
        return f"{self.holder}-{self.sid}-{self.action}{self.resource.removeprefix('*')}".replace(" ", "-")


def _needs(holder: str, sid: str, path: Path, *actions: str, resource: str = "*") -> list[Need]:
    return [Need(holder=holder, sid=sid, action=action, resource=resource, path=path) for action in actions]


_API, _WORKER, _TICKETS, _EXECUTION = "role api-task", "role worker", "role tickets", "role api-execution"
_POLLING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
_LOGGING = ("logs:CreateLogStream", "logs:PutLogEvents")
_PULLING = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
_SEND, _GET, _PUT, _SECRET = "sqs:SendMessage", "s3:GetObject", "s3:PutObject", "secretsmanager:GetSecretValue"

NEEDS = [
    *_needs(_API, "PublishBookingEvents", PermissionPaths.mail_of_a_booking, "sns:Publish"),
    *_needs(_API, "ReadTickets", PermissionPaths.list_tickets, "dynamodb:Query"),
    *_needs(_API, "ReadAssets", PermissionPaths.show_a_ticket, _GET, resource="*/tickets/*"),
    *_needs(_API, "ReadAssets", PermissionPaths.show_a_poster, _GET, resource="*/posters/*"),
    *_needs(_API, "ReadAssets", PermissionPaths.publish_a_poster, _GET, resource="*/poster-uploads/*"),
    *_needs(_API, "WritePosters", PermissionPaths.publish_a_poster, _PUT, resource="*/posters/*"),
    *_needs(_API, "WritePosters", PermissionPaths.upload_a_poster, _PUT, resource="*/poster-uploads/*"),
    *_needs(_WORKER, "ConsumeJobs", PermissionPaths.map_the_queue, *_POLLING),
    *_needs(_WORKER, "ConsumeJobs", PermissionPaths.mail_put_back, "sqs:ChangeMessageVisibility"),
    *_needs(_WORKER, "ProcessedJobsTable", PermissionPaths.mail_of_a_booking, "dynamodb:GetItem", "dynamodb:PutItem"),
    *_needs(_WORKER, "SendEmail", PermissionPaths.mail_of_a_booking, "ses:SendEmail"),
    *_needs(_WORKER, "WriteOwnLogs", PermissionPaths.make_the_function, *_LOGGING),
    *_needs(_TICKETS, "ConsumeTickets", PermissionPaths.map_the_queue, *_POLLING),
    *_needs(_TICKETS, "TicketsTable", PermissionPaths.the_same_event_again, "dynamodb:GetItem"),
    *_needs(_TICKETS, "TicketsTable", PermissionPaths.tickets_of_a_booking, "dynamodb:PutItem", "dynamodb:UpdateItem"),
    *_needs(_TICKETS, "WriteTicketImages", PermissionPaths.tickets_of_a_booking, _PUT),
    *_needs(_TICKETS, "ReadSigningSecret", PermissionPaths.tickets_from_a_cold_start, _SECRET),
    *_needs(_TICKETS, "WriteOwnLogs", PermissionPaths.make_the_function, *_LOGGING),
    *_needs(_EXECUTION, "GetRegistryToken", PermissionPaths.start_a_task, "ecr:GetAuthorizationToken"),
    *_needs(_EXECUTION, "PullImage", PermissionPaths.start_a_task, *_PULLING),
    *_needs(_EXECUTION, "ReadInjectedSecrets", PermissionPaths.start_a_task, _SECRET, resource="*:secret:rds!*"),
    *_needs(_EXECUTION, "ReadInjectedSecrets", PermissionPaths.start_a_task, _SECRET, resource="*-redis-token-*"),
    *_needs(_EXECUTION, "WriteOwnLogs", PermissionPaths.start_a_task, *_LOGGING),
    *_needs("queue jobs", "AllowBookingEvents", PermissionPaths.mail_of_a_booking, _SEND),
    *_needs("queue tickets", "AllowBookingEvents", PermissionPaths.tickets_of_a_booking, _SEND),
    *_needs("queue jobs-undelivered", "AllowBookingEvents", PermissionPaths.deliver_what_cannot_be_delivered, _SEND),
    *_needs("queue tickets-undelivered", "AllowBookingEvents", PermissionPaths.deliver_what_cannot_be_delivered, _SEND),
]

# (holder, statement, action) of rights that nothing on this machine asks for, and why. The infra tests hold them.
NOT_ASKED = {
    ("aws:sns/topicPolicy:TopicPolicy alarms", "AllowOwnAlarms", "sns:Publish"): (
        "the emulator's alarms reach their topic without a look at its policy"
    ),
    **{
        ("role backup", sid, action): "nothing is backed up on this machine"
        for sid, actions in {
            "TakeBackups": (
                "rds:DescribeDBInstances",
                "rds:ListTagsForResource",
                "rds:CreateDBSnapshot",
                "rds:AddTagsToResource",
                "rds:DescribeDBSnapshots",
            ),
            "EndBackups": ("rds:DeleteDBSnapshot",),
            "FillVault": ("backup:DescribeBackupVault", "backup:CopyIntoBackupVault"),
        }.items()
        for action in actions
    },
}


@pytest.fixture(scope="module")
def policies(platform: RunningPlatform) -> RolePolicies:
    return RolePolicies(platform.session.client.get("/resources"))


@pytest.fixture(scope="module")
def paths(platform: RunningPlatform, policies: RolePolicies) -> Iterator[PermissionPaths]:
    paths = PermissionPaths(platform, policies)
    yield paths
    paths.clean_up()


def test_every_right_of_the_program_has_one_path_that_needs_it_and_no_path_is_for_a_right_that_is_gone(
    policies: RolePolicies,
) -> None:
    grants = policies.grants()
    asked = [grant for grant in grants if (grant.holder, grant.sid, grant.action) not in NOT_ASKED]

    assert [str(grant) for grant in asked if sum(need.is_for(grant) for need in NEEDS) != 1] == []
    assert [str(need) for need in NEEDS if not any(need.is_for(grant) for grant in grants)] == []
    assert len(asked) == len(NEEDS)
    given = {(grant.holder, grant.sid, grant.action) for grant in grants}
    assert NOT_ASKED.keys() - given == set(), "a right that nothing asks for is gone: take it off the list"


def test_a_role_has_no_right_but_by_its_one_inline_policy(platform: RunningPlatform) -> None:
    iam = platform.aws("iam")
    stored = [found for found in platform.session.client.get("/resources") if found["type"] == "aws:iam/role:Role"]
    assert stored

    for role in stored:
        name = {"RoleName": role["inputs"]["name"]}
        assert iam.list_role_policies(**name)["PolicyNames"] == [role["name"]]
        assert iam.list_attached_role_policies(**name)["AttachedPolicies"] == []


@pytest.mark.parametrize("need", NEEDS, ids=str)
def test_without_one_right_its_path_is_refused_and_with_it_again_the_path_goes_on(
    platform: RunningPlatform, policies: RolePolicies, paths: PermissionPaths, need: Need
) -> None:
    [grant] = [grant for grant in policies.grants() if need.is_for(grant)]
    need.path(paths, grant)

    with policies.without(grant, root=platform.aws), pytest.raises(PathRefusedError) as refused:
        need.path(paths, grant)

    _assert_attributed(str(refused.value), grant, policies)
    need.path(paths, grant)


def _assert_attributed(refusal: str, grant: Grant, policies: RolePolicies) -> None:
    """The refusal names who was refused, and what (a batch by its own name)."""
    holder = policies.physical_name(grant.holder)
    if grant.holder.startswith("queue "):
        assert refusal.endswith(f"to {holder}")
        return
    assert re.search(rf"(^|role/){holder}(?![\w-])", refusal), refusal
    assert re.search(rf"\b{grant.action.partition(':')[2]}(Batch)?\b", refusal), refusal
