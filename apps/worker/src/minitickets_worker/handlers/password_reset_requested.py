"""``password.reset-requested``: the link by which a forgotten password is set anew."""

from datetime import datetime

from aws_lambda_powertools import Logger

from minitickets_contracts.messages import PasswordResetRequested
from minitickets_worker.invocation import Invocation
from minitickets_worker.mail_once import MailOnce
from minitickets_worker.reset_mail import compose_password_reset
from minitickets_worker.site import Site


def handle_password_reset_requested(
    message: PasswordResetRequested, *, site: Site, mail_once: MailOnce, invocation: Invocation, log: Logger
) -> None:
    """Mail the customer, once a request, while the token works. Returns and raises as ``mail_once``.

    A message that lay in the queue for an hour is finished unsent: its link would only be refused.
    """
    if datetime.fromisoformat(message.expires_at).timestamp() <= invocation.now():
        log.warning("reset expired unsent", jobKey=message.job_key)
        return
    mail_once(compose_password_reset(message, site=site), job_key=message.job_key)
