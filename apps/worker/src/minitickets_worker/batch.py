"""The Lambda function that mails: its entry point, wired once per process."""

from collections.abc import Mapping
from random import Random

from aws_lambda_powertools import Logger

from minitickets_worker.clients import Clients
from minitickets_worker.consumer import BatchResponse, Record, consume
from minitickets_worker.invocation import LambdaContext, LambdaInvocation
from minitickets_worker.mailer import SesMailer
from minitickets_worker.message_types import mail_handlers
from minitickets_worker.processed_jobs import DynamoProcessedJobs
from minitickets_worker.settings import load_settings
from minitickets_worker.site import Site
from minitickets_worker.visibility import JobsQueue

# At import, where Lambda gives a whole CPU and the function's time-out does not run yet.
_settings = load_settings()
_site = Site(sender=_settings.sender, public_url=_settings.public_url)
_clients = Clients()
_log = Logger(stage=_settings.stage)
_random = Random()  # noqa: S311 - spreads load, guards nothing


def lambda_handler(event: Mapping[str, list[Record]], context: LambdaContext) -> BatchResponse:
    """An SQS batch in, the ids of the messages that must come back out (``ReportBatchItemFailures``).

    Raises ValueError for an event that is no SQS batch.
    """
    if "Records" not in event:
        raise ValueError("event: must hold the Records of an SQS batch; this function is fed by its queue")
    invocation = LambdaInvocation(context)
    jobs = DynamoProcessedJobs(client=_clients.dynamodb, table=_settings.processed_jobs_table, invocation=invocation)
    mailer = SesMailer(client=_clients.ses, sender=_settings.sender, invocation=invocation, random=_random)
    queue = JobsQueue(client=_clients.sqs, url=_settings.jobs_queue_url, invocation=invocation)

    _clients.drop_idle_connections()
    _log.append_keys(function_request_id=context.aws_request_id)
    try:
        return consume(
            event["Records"],
            handlers=mail_handlers(jobs=jobs, mailer=mailer, site=_site, invocation=invocation, log=_log),
            queue=queue,
            invocation=invocation,
            random=_random,
            log=_log,
        )
    finally:
        _clients.drop_idle_connections()
