"""Which messages the worker wants, and who handles each."""

from functools import partial

from aws_lambda_powertools import Logger

from minitickets_contracts.messages import (
    BookingCancelled,
    BookingConfirmed,
    BookingMailRequested,
    EventMoved,
    PasswordResetRequested,
)
from minitickets_worker.consumer import Handlers
from minitickets_worker.handlers.booking_cancelled import handle_booking_cancelled
from minitickets_worker.handlers.booking_confirmed import handle_booking_confirmed
from minitickets_worker.handlers.booking_mail_requested import handle_booking_mail_requested
from minitickets_worker.handlers.event_moved import handle_event_moved
from minitickets_worker.handlers.password_reset_requested import handle_password_reset_requested
from minitickets_worker.invocation import Invocation
from minitickets_worker.mail_once import mail_once
from minitickets_worker.mailer import SesMailer
from minitickets_worker.processed_jobs import DynamoProcessedJobs
from minitickets_worker.site import Site


def mail_handlers(
    *, jobs: DynamoProcessedJobs, mailer: SesMailer, site: Site, invocation: Invocation, log: Logger
) -> Handlers:
    """By message type: what parses and handles a body. All go through one idempotent consumer."""
    once = partial(mail_once, jobs=jobs, mailer=mailer, log=log)
    return {
        BookingConfirmed.TYPE: lambda body: handle_booking_confirmed(
            BookingConfirmed.from_json(body), site=site, mail_once=once
        ),
        BookingMailRequested.TYPE: lambda body: handle_booking_mail_requested(
            BookingMailRequested.from_json(body), site=site, mail_once=once
        ),
        EventMoved.TYPE: lambda body: handle_event_moved(EventMoved.from_json(body), site=site, mail_once=once),
        BookingCancelled.TYPE: lambda body: handle_booking_cancelled(
            BookingCancelled.from_json(body), site=site, mail_once=once
        ),
        PasswordResetRequested.TYPE: lambda body: handle_password_reset_requested(
            PasswordResetRequested.from_json(body), site=site, mail_once=once, invocation=invocation, log=log
        ),
    }
