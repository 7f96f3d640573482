"""The API's two roles: ECS starts a task under one, and the API itself runs under the other."""

import pulumi
import pulumi_aws as aws

from src.account import Account
from src.policies import allow, trust, write_own_logs
from src.roles import ServiceRole, create_role
from src.tickets.storage import TicketStorage


def create_task_role(
    name: str, *, account: Account, topic_arn: pulumi.Input[str], storage: TicketStorage
) -> ServiceRole:
    """What the API may do: publish, read its customers' tickets, sign links to assets, take posters.

    Whoever presigns a URL can let its bearer do no more than this.
    """
    return create_role(
        "api-task",
        name=f"{name}-api",
        description="API: publishes booking events, reads tickets, signs links to assets",
        trust_policy=_trust_tasks(account),
        statements=[
            allow("PublishBookingEvents", ["sns:Publish"], [topic_arn]),
            # The table only: a query on an index would need the index's ARN.
            allow("ReadTickets", ["dynamodb:Query"], [storage.table.arn]),
            allow(
                "ReadAssets",
                ["s3:GetObject"],
                [storage.objects_arn(prefix) for prefix in ("tickets", "posters", "poster-uploads")],
            ),
            allow(
                "WritePosters",
                ["s3:PutObject"],
                [storage.objects_arn(prefix) for prefix in ("posters", "poster-uploads")],
                condition={"StringEquals": {"s3:x-amz-server-side-encryption": "AES256"}},
            ),
        ],
    )


def create_execution_role(
    name: str,
    *,
    account: Account,
    repository: aws.ecr.Repository,
    logs: aws.cloudwatch.LogGroup,
    injected_secret_arns: list[pulumi.Output[str]],
) -> ServiceRole:
    """What ECS may do to start a task: pull the image, write its log, read the secrets that it injects."""
    return create_role(
        "api-execution",
        name=f"{name}-api-execution",
        description="ECS: starts the API's tasks",
        trust_policy=_trust_tasks(account),
        statements=[
            allow("GetRegistryToken", ["ecr:GetAuthorizationToken"], ["*"]),  # AWS knows no resource for it
            allow(
                "PullImage",
                ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
                [repository.arn],
            ),
            write_own_logs(logs.arn),
            allow("ReadInjectedSecrets", ["secretsmanager:GetSecretValue"], injected_secret_arns),
        ],
    )


def _trust_tasks(account: Account) -> pulumi.Output[str]:
    return trust(
        "ecs-tasks.amazonaws.com",
        account_id=account.id,
        source_arn=f"arn:aws:ecs:{account.region}:{account.id}:*",
    )
