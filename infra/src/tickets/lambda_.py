"""The tickets function: one signed QR ticket for each seat."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.functions import create_function, create_function_logs
from src.jobs.queue_trigger import create_queue_trigger
from src.settings import KeepingSettings, QueueSettings
from src.tickets.iam import create_tickets_role
from src.tickets.storage import TicketStorage

TIMEOUT_SECONDS = 30  # up to ten seats, each with two writes and an upload
BATCH_SIZE = 1


@dataclass(frozen=True, kw_only=True)
class TicketIssuer:
    """The function and what feeds it."""

    function: aws.lambda_.Function
    trigger: aws.lambda_.EventSourceMapping


def create_ticket_issuer(
    name: str,
    *,
    stage: str,
    account_id: str,
    queue: aws.sqs.Queue,
    storage: TicketStorage,
    code: pulumi.Archive,
    queues: QueueSettings,
    keeping: KeepingSettings,
) -> TicketIssuer:
    """The function ``…-tickets`` with its role, its logs and its trigger."""
    logs = create_function_logs(name, function="tickets", retention_days=keeping.log_retention_days)
    role = create_tickets_role(name, account_id=account_id, tickets_queue_arn=queue.arn, storage=storage, logs=logs)
    function = create_function(
        name,
        function="tickets",
        handler="minitickets_tickets.handler.lambda_handler",
        code=code,
        role=role,
        logs=logs,
        timeout_seconds=TIMEOUT_SECONDS,
        memory_mib=queues.tickets_memory_mib,
        environment={
            "STAGE": stage,
            "TICKETS_TABLE": storage.table.name,
            "ASSETS_BUCKET": storage.bucket.bucket,
            # The version's output, so that the function comes after there is a key to sign with.
            "SIGNING_SECRET_ARN": storage.signing_key.secret_arn,
        },
    )
    trigger = create_queue_trigger(
        "tickets",
        function=function,
        queue=queue,
        role=role,
        batch_size=BATCH_SIZE,
        max_concurrency=queues.tickets_max_concurrency,
    )
    return TicketIssuer(function=function, trigger=trigger)
