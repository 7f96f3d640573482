"""``booking.mail-requested``: the mail of a booking again."""

from minitickets_contracts.messages import BookingMailRequested
from minitickets_worker.booking_mails import compose_repetition
from minitickets_worker.mail_once import MailOnce
from minitickets_worker.site import Site


def handle_booking_mail_requested(message: BookingMailRequested, *, site: Site, mail_once: MailOnce) -> None:
    """Mail the customer, once a request; the record of the first mail stays. Returns and raises as ``mail_once``."""
    mail_once(compose_repetition(message, site=site), job_key=message.job_key)
