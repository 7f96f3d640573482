"""What the worker may do."""

import pulumi
import pulumi_aws as aws

from src.policies import allow, trust, write_own_logs
from src.roles import ServiceRole, create_role


def create_worker_role(
    name: str,
    *,
    account_id: str,
    jobs_queue_arn: pulumi.Input[str],
    processed_jobs: aws.dynamodb.Table,
    sender_address: str,
    identity_arns: list[pulumi.Output[str]],
    logs: aws.cloudwatch.LogGroup,
) -> ServiceRole:
    """Consume the jobs queue, remember what is done, send mail from our address."""
    return create_role(
        "worker",
        name=f"{name}-worker",
        description="E-mail worker: consumes jobs, remembers what is done, sends mail",
        trust_policy=trust("lambda.amazonaws.com", account_id=account_id),
        statements=[
            allow(
                "ConsumeJobs",
                [
                    "sqs:ReceiveMessage",
                    "sqs:DeleteMessage",
                    "sqs:ChangeMessageVisibility",  # a throttled mail comes back later than the queue's default
                    "sqs:GetQueueAttributes",
                ],
                [jobs_queue_arn],
            ),
            allow("ProcessedJobsTable", ["dynamodb:GetItem", "dynamodb:PutItem"], [processed_jobs.arn]),
            # ses:SendEmail covers Simple content only; mails with attachments are built as Simple content too.
            allow(
                "SendEmail",
                ["ses:SendEmail"],
                identity_arns,
                condition={"StringEquals": {"ses:FromAddress": sender_address}},
            ),
            write_own_logs(logs.arn),
        ],
    )
