"""``booking.cancelled``: the seats are free again."""

from minitickets_contracts.messages import BookingCancelled
from minitickets_worker.booking_mails import compose_cancellation
from minitickets_worker.mail_once import MailOnce
from minitickets_worker.site import Site


def handle_booking_cancelled(message: BookingCancelled, *, site: Site, mail_once: MailOnce) -> None:
    """Mail the customer, once a booking. Returns and raises as ``mail_once``."""
    mail_once(compose_cancellation(message, site=site), job_key=message.job_key)
