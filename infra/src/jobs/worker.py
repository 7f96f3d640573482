"""The worker: one mail for each booking."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.email.sender import Sender
from src.functions import create_function, create_function_logs
from src.jobs.queue_trigger import create_queue_trigger
from src.jobs.worker_iam import create_worker_role
from src.settings import KeepingSettings, QueueSettings

# The worker's lease (25 s) lies between this and the queue's visibility (60 s): change them together.
TIMEOUT_SECONDS = 10
BATCH_SIZE = 10


@dataclass(frozen=True, kw_only=True)
class Worker:
    """The function and what feeds it."""

    function: aws.lambda_.Function
    trigger: aws.lambda_.EventSourceMapping


def create_worker(
    name: str,
    *,
    stage: str,
    account_id: str,
    queue: aws.sqs.Queue,
    processed_jobs: aws.dynamodb.Table,
    sender: Sender,
    code: pulumi.Archive,
    queues: QueueSettings,
    keeping: KeepingSettings,
    public_url: str | None,
) -> Worker:
    """The function ``…-worker`` with its role, its logs and its trigger."""
    logs = create_function_logs(name, function="worker", retention_days=keeping.log_retention_days)
    role = create_worker_role(
        name,
        account_id=account_id,
        jobs_queue_arn=queue.arn,
        processed_jobs=processed_jobs,
        sender_address=sender.address,
        identity_arns=sender.identity_arns,
        logs=logs,
    )
    environment: dict[str, pulumi.Input[str]] = {
        "STAGE": stage,
        "PROCESSED_JOBS_TABLE": processed_jobs.name,
        "JOBS_QUEUE_URL": queue.url,
        "SENDER": sender.address,
    }
    if public_url:
        environment["PUBLIC_URL"] = public_url
    function = create_function(
        name,
        function="worker",
        handler="minitickets_worker.batch.lambda_handler",
        code=code,
        role=role,
        logs=logs,
        timeout_seconds=TIMEOUT_SECONDS,
        memory_mib=queues.worker_memory_mib,
        environment=environment,
    )
    trigger = create_queue_trigger(
        "worker",
        function=function,
        queue=queue,
        role=role,
        batch_size=BATCH_SIZE,
        max_concurrency=queues.worker_max_concurrency,
    )
    return Worker(function=function, trigger=trigger)
