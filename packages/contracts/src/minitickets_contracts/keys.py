"""Keys by which processes find one another's records. Every part is checked, so that none can be forged."""

from minitickets_contracts import fields
from minitickets_contracts.fields import ContractError

# Key prefixes of the assets bucket; the API's and the tickets role's policies name them too.
TICKET_IMAGES_PREFIX = "tickets/"
POSTERS_PREFIX = "posters/"
POSTER_UPLOADS_PREFIX = "poster-uploads/"

# How often an event can have moved: far beyond any real one, and its successor still is an iCalendar INTEGER.
MAX_SEQUENCE = 10**9


def booking_confirmed_job_key(booking_id: str) -> str:
    """``booking.confirmed:<bookingId>``: names the business action, so that two publications are one job."""
    return f"booking.confirmed:{fields.uuid('bookingId', booking_id)}"


def booking_mail_requested_job_key(message_id: str) -> str:
    """``booking.mail-requested:<messageId>``: each request is a job, and leaves the record of the first mail alone."""
    return f"booking.mail-requested:{fields.uuid('messageId', message_id)}"


def event_moved_job_key(booking_id: str, sequence: int) -> str:
    """``event.moved:<bookingId>:<sequence>``: each move is a job of each booking."""
    number = fields.integer("event.sequence", sequence, least=1, most=MAX_SEQUENCE)
    return f"event.moved:{fields.uuid('bookingId', booking_id)}:{number}"


def booking_cancelled_job_key(booking_id: str) -> str:
    """``booking.cancelled:<bookingId>``: a booking is cancelled once."""
    return f"booking.cancelled:{fields.uuid('bookingId', booking_id)}"


def password_reset_requested_job_key(message_id: str) -> str:
    """``password.reset-requested:<messageId>``: each request has a token, and so a mail, of its own."""
    return f"password.reset-requested:{fields.uuid('messageId', message_id)}"


def ticket_id(booking_id: str, seat: str) -> str:
    """``<bookingId>:<seat>``, the sort key of the tickets table."""
    return f"{fields.uuid('bookingId', booking_id)}:{fields.seat('seat', seat)}"


def split_ticket_id(value: str) -> tuple[str, str]:
    """The booking's id and the seat of a ticket id."""
    booking_id, separator, seat = value.partition(":")
    if not separator:
        raise ContractError("ticketId", "must be <bookingId>:<seat>")
    return fields.uuid("bookingId", booking_id), fields.seat("seat", seat)


def event_date(starts_at: str) -> str:
    """The date on the door: the first ten characters of the start (``2026-12-31``)."""
    return fields.starts_at("startsAt", starts_at)[:10]


def event_date_key(starts_at: str, ticket: str) -> str:
    """``<eventStartsAt>#<ticketId>``, the sort key of the index ``by-event-date``."""
    split_ticket_id(ticket)
    return f"{fields.starts_at('startsAt', starts_at)}#{ticket}"


def ticket_image_key(event_id: str, booking_id: str, seat: str) -> str:
    """``tickets/<eventId>/<bookingId>/<seat>.png`` in the assets bucket."""
    return (
        f"{TICKET_IMAGES_PREFIX}{fields.uuid('eventId', event_id)}/"
        f"{fields.uuid('bookingId', booking_id)}/{fields.seat('seat', seat)}.png"
    )
