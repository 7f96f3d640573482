"""Keys by which processes find one another's records. Every part is checked, so that none can be forged."""

from minitickets_contracts import fields
from minitickets_contracts.fields import ContractError

# Key prefixes of the assets bucket; the API's and the tickets role's policies name them too.
TICKET_IMAGES_PREFIX = "tickets/"
POSTERS_PREFIX = "posters/"
POSTER_UPLOADS_PREFIX = "poster-uploads/"


def booking_confirmed_job_key(booking_id: str) -> str:
    """``booking.confirmed:<bookingId>``: names the business action, so that two publications are one job."""
    return f"booking.confirmed:{fields.uuid('bookingId', booking_id)}"


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
