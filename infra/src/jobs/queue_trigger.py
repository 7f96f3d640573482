"""From a queue to a function: Lambda polls the queue under the function's role."""

import pulumi
import pulumi_aws as aws

from src.roles import ServiceRole


def create_queue_trigger(
    function_name: str,
    *,
    function: aws.lambda_.Function,
    queue: aws.sqs.Queue,
    role: ServiceRole,
    batch_size: int,
    max_concurrency: int,
) -> aws.lambda_.EventSourceMapping:
    """Give the function up to ``batch_size`` messages at a time, at most ``max_concurrency`` batches in parallel.

    The cap is the mapping's and not reserved concurrency, which an account with a quota of 10 refuses. The function
    reports the ids of failed messages only; the rest of its batch is deleted.
    """
    return aws.lambda_.EventSourceMapping(
        function_name,
        event_source_arn=queue.arn,
        function_name=function.arn,
        batch_size=batch_size,
        function_response_types=["ReportBatchItemFailures"],
        scaling_config={"maximum_concurrency": max_concurrency},
        # Lambda refuses a mapping whose role may not receive, delete and read attributes at that moment.
        opts=pulumi.ResourceOptions(depends_on=[role.policy]),
    )
