"""One mail a job: the idempotent consumer (ADR 0005)."""

from typing import Protocol

from aws_lambda_powertools import Logger

from minitickets_worker.mail import Mail
from minitickets_worker.mailer import MailNotSentError, MailRefusedError, SesMailer
from minitickets_worker.processed_jobs import DynamoProcessedJobs


class MailOnce(Protocol):
    """``mail_once`` of one process: what a handler asks for."""

    def __call__(self, mail: Mail, *, job_key: str) -> None:
        """As ``mail_once``."""


def mail_once(mail: Mail, *, job_key: str, jobs: DynamoProcessedJobs, mailer: SesMailer, log: Logger) -> None:
    """Send the job's mail, unless that is done already.

    Returns if the job is finished: mailed now or before, or refused for good. Any error means that the message must
    come back: JobInProgressError, the mailer's MailNotSentError and MailOutcomeUnknownError, botocore's of the table.
    """
    lease = jobs.begin(job_key)
    if lease is None:
        log.info("mail skipped as duplicate", jobKey=job_key)
        return
    try:
        mail_id = mailer.send(mail)
    except MailRefusedError as refusal:
        jobs.refuse(lease, reason=refusal.reason)
        log.warning("mail refused", jobKey=job_key, reason=refusal.reason)
        return
    except MailNotSentError:
        # Only when nothing was sent: after an unknown outcome the lease holds back the next attempt.
        if not jobs.release(lease):
            log.warning("lease not released", jobKey=job_key)
        raise
    # Logged first: a death before the record may send once more, and this line is then the only evidence of the first.
    log.info("mail accepted", jobKey=job_key, messageId=mail_id)
    jobs.complete(lease, result=mail_id)
