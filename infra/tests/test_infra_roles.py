"""What each process may do: every statement of every role, and nothing else."""

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.recording import Recording

pytestmark = pytest.mark.infra

ACCOUNT = "123456789012"
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:minitickets-dev-booking-events"
JOBS_QUEUE = f"arn:aws:sqs:us-east-1:{ACCOUNT}:minitickets-dev-jobs"
TICKETS_QUEUE = f"arn:aws:sqs:us-east-1:{ACCOUNT}:minitickets-dev-tickets"
PROCESSED_JOBS = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/minitickets-dev-processed-jobs"
TICKETS = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/minitickets-dev-tickets"
BUCKET = f"arn:aws:s3:::minitickets-dev-assets-{ACCOUNT}"
IDENTITY = f"arn:aws:ses:us-east-1:{ACCOUNT}:identity/tickets@example.org"
SECRETS = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret"
LOGS = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group"
RDS = f"arn:aws:rds:us-east-1:{ACCOUNT}"
VAULT = f"arn:aws:backup:us-east-1:{ACCOUNT}:minitickets-dev-db"
REPOSITORY = f"arn:aws:ecr:us-east-1:{ACCOUNT}:minitickets-dev-api"

# Sid → actions, resources, condition.
Statement = tuple[list[str], list[str], dict[str, Any] | None]


def _own_logs(group: str) -> dict[str, Statement]:
    return {"WriteOwnLogs": (["logs:CreateLogStream", "logs:PutLogEvents"], [f"{LOGS}:{group}:*"], None)}


GOLDEN: dict[str, dict[str, Statement]] = {
    "api-task": {
        "PublishBookingEvents": (["sns:Publish"], [TOPIC], None),
        "ReadTickets": (["dynamodb:Query"], [TICKETS], None),
        "ReadAssets": (
            ["s3:GetObject"],
            [f"{BUCKET}/tickets/*", f"{BUCKET}/posters/*", f"{BUCKET}/poster-uploads/*"],
            None,
        ),
        "WritePosters": (
            ["s3:PutObject"],
            [f"{BUCKET}/posters/*", f"{BUCKET}/poster-uploads/*"],
            {"StringEquals": {"s3:x-amz-server-side-encryption": "AES256"}},
        ),
    },
    "worker": {
        "ConsumeJobs": (
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
            [JOBS_QUEUE],
            None,
        ),
        "ProcessedJobsTable": (["dynamodb:GetItem", "dynamodb:PutItem"], [PROCESSED_JOBS], None),
        "SendEmail": (["ses:SendEmail"], [IDENTITY], {"StringEquals": {"ses:FromAddress": "tickets@example.org"}}),
        **_own_logs("/aws/lambda/minitickets-dev-worker"),
    },
    "tickets": {
        "ConsumeTickets": (
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            [TICKETS_QUEUE],
            None,
        ),
        "TicketsTable": (["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], [TICKETS], None),
        "WriteTicketImages": (["s3:PutObject"], [f"{BUCKET}/tickets/*"], None),
        "ReadSigningSecret": (
            ["secretsmanager:GetSecretValue"],
            [f"{SECRETS}:minitickets-dev-ticket-signing-AbCdEf"],
            None,
        ),
        **_own_logs("/aws/lambda/minitickets-dev-tickets"),
    },
    "backup": {
        "TakeBackups": (
            [
                "rds:DescribeDBInstances",
                "rds:ListTagsForResource",
                "rds:CreateDBSnapshot",
                "rds:AddTagsToResource",
                "rds:DescribeDBSnapshots",
            ],
            [f"{RDS}:db:minitickets-dev-db", f"{RDS}:snapshot:awsbackup:*"],
            None,
        ),
        "EndBackups": (["rds:DeleteDBSnapshot"], [f"{RDS}:snapshot:awsbackup:*"], None),
        "FillVault": (["backup:DescribeBackupVault", "backup:CopyIntoBackupVault"], [VAULT], None),
    },
    "api-execution": {
        "GetRegistryToken": (["ecr:GetAuthorizationToken"], ["*"], None),
        "PullImage": (
            ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            [REPOSITORY],
            None,
        ),
        "ReadInjectedSecrets": (
            ["secretsmanager:GetSecretValue"],
            [f"{SECRETS}:rds!db-1-AbCdEf", f"{SECRETS}:minitickets-dev-redis-token-AbCdEf"],
            None,
        ),
        **_own_logs("/ecs/minitickets-dev-api"),
    },
}


@pytest.mark.parametrize("role", GOLDEN)
def test_a_role_may_do_exactly_what_is_documented(both_on: "Recording", role: str) -> None:
    statements = both_on.policy("aws:iam/rolePolicy:RolePolicy", role)["Statement"]
    assert [statement["Effect"] for statement in statements] == ["Allow"] * len(statements)
    found = {s["Sid"]: (s["Action"], s["Resource"], s.get("Condition")) for s in statements}
    assert found == GOLDEN[role]
    assert len(statements) == len(found)


def test_there_are_no_other_roles_or_policies(both_on: "Recording") -> None:
    assert both_on.of("aws:iam/role:Role").keys() == GOLDEN.keys()
    policies = both_on.of("aws:iam/rolePolicy:RolePolicy")
    assert policies.keys() == GOLDEN.keys()
    for name, policy in policies.items():
        assert policy.inputs["role"] == both_on.one("aws:iam/role:Role", name).inputs["name"]


@pytest.mark.parametrize(
    ("role", "condition"),
    [
        ("worker", {"StringEquals": {"aws:SourceAccount": ACCOUNT}}),
        ("tickets", {"StringEquals": {"aws:SourceAccount": ACCOUNT}}),
        ("backup", {"StringEquals": {"aws:SourceAccount": ACCOUNT}}),
        *(
            (
                role,
                {
                    "StringEquals": {"aws:SourceAccount": ACCOUNT},
                    "ArnLike": {"aws:SourceArn": f"arn:aws:ecs:us-east-1:{ACCOUNT}:*"},
                },
            )
            for role in ("api-task", "api-execution")
        ),
    ],
)
def test_a_role_is_assumed_by_one_service_for_our_account_only(
    both_on: "Recording", role: str, condition: dict[str, Any]
) -> None:
    service = {"worker": "lambda", "tickets": "lambda", "backup": "backup"}.get(role, "ecs-tasks")
    document = json.loads(both_on.one("aws:iam/role:Role", role).inputs["assumeRolePolicy"])
    (statement,) = document["Statement"]
    assert statement["Principal"] == {"Service": f"{service}.amazonaws.com"}
    assert statement["Action"] == "sts:AssumeRole"
    assert statement["Condition"] == condition


def test_ses_authorises_simple_content_by_send_email_and_raw_content_is_not_allowed(both_on: "Recording") -> None:
    document = json.dumps(both_on.policy("aws:iam/rolePolicy:RolePolicy", "worker"))
    assert "ses:SendRawEmail" not in document


def test_a_query_on_an_index_would_need_its_arn_and_no_role_has_one(both_on: "Recording") -> None:
    for policy in both_on.of("aws:iam/rolePolicy:RolePolicy").values():
        assert "/index/" not in policy.inputs["policy"]


def test_a_function_may_not_make_log_groups_or_it_would_make_its_own_without_retention(both_on: "Recording") -> None:
    for policy in both_on.of("aws:iam/rolePolicy:RolePolicy").values():
        assert "logs:CreateLogGroup" not in policy.inputs["policy"]


def test_a_verified_domain_is_the_identity_and_the_address_still_the_condition(record: Any) -> None:
    recording = record({"verifyDomain": "true"})
    statements = recording.policy("aws:iam/rolePolicy:RolePolicy", "worker")["Statement"]
    (send,) = (s for s in statements if s["Sid"] == "SendEmail")
    assert send["Resource"] == [f"arn:aws:ses:us-east-1:{ACCOUNT}:identity/example.org"]
    assert send["Condition"] == {"StringEquals": {"ses:FromAddress": "tickets@example.org"}}
