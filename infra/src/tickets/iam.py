"""What the tickets function may do."""

import pulumi
import pulumi_aws as aws

from src.policies import allow, trust, write_own_logs
from src.roles import ServiceRole, create_role
from src.tickets.storage import TicketStorage


def create_tickets_role(
    name: str,
    *,
    account_id: str,
    tickets_queue_arn: pulumi.Input[str],
    storage: TicketStorage,
    logs: aws.cloudwatch.LogGroup,
) -> ServiceRole:
    """Consume the tickets queue, reserve and complete tickets, write their images, read the signing keys."""
    return create_role(
        "tickets",
        name=f"{name}-tickets",
        description="Tickets function: reserves tickets, draws and stores their QR codes",
        trust_policy=trust("lambda.amazonaws.com", account_id=account_id),
        statements=[
            allow(
                "ConsumeTickets",
                ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
                [tickets_queue_arn],
            ),
            allow("TicketsTable", ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], [storage.table.arn]),
            allow("WriteTicketImages", ["s3:PutObject"], [storage.objects_arn("tickets")]),
            allow("ReadSigningSecret", ["secretsmanager:GetSecretValue"], [storage.signing_secret.arn]),
            write_own_logs(logs.arn),
        ],
    )
