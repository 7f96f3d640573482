"""``event.moved``: the date or the venue of a booking is another."""

from minitickets_contracts.messages import EventMoved
from minitickets_worker.booking_mails import compose_move
from minitickets_worker.mail_once import MailOnce
from minitickets_worker.site import Site


def handle_event_moved(message: EventMoved, *, site: Site, mail_once: MailOnce) -> None:
    """Mail the customer, once a booking and move. Returns and raises as ``mail_once``."""
    mail_once(compose_move(message, site=site), job_key=message.job_key)
