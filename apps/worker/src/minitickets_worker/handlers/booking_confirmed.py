"""``booking.confirmed``: one mail with all seats of the booking."""

from minitickets_contracts.messages import BookingConfirmed
from minitickets_worker.booking_mails import compose_confirmation
from minitickets_worker.mail_once import MailOnce
from minitickets_worker.site import Site


def handle_booking_confirmed(message: BookingConfirmed, *, site: Site, mail_once: MailOnce) -> None:
    """Mail the customer, once a booking. Returns and raises as ``mail_once``."""
    mail_once(compose_confirmation(message, site=site), job_key=message.job_key)
