"""``booking.confirmed``: one mail with all seats of the booking."""

from aws_lambda_powertools import Logger

from minitickets_contracts.keys import booking_confirmed_job_key
from minitickets_contracts.messages import BookingConfirmed
from minitickets_worker.compose import compose_confirmation
from minitickets_worker.mailer import MailNotSentError, MailRefusedError, SesMailer
from minitickets_worker.processed_jobs import DynamoProcessedJobs


def handle_booking_confirmed(
    message: BookingConfirmed, *, jobs: DynamoProcessedJobs, mailer: SesMailer, public_url: str | None, log: Logger
) -> None:
    """Mail the customer, unless that is done already.

    Returns if the message is finished: mailed now or before, or refused for good. Any error means that it must come
    back: JobInProgressError, the mailer's MailNotSentError and MailOutcomeUnknownError, botocore's of the table.
    """
    job_key = booking_confirmed_job_key(message.booking_id)
    mail = compose_confirmation(message, public_url=public_url)

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
