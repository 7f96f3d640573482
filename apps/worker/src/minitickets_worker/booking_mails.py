"""The mails about a booking."""

from minitickets_contracts.messages import (
    BookingCancelled,
    BookingConfirmed,
    BookingMailRequested,
    BookingMessage,
    EventMoved,
)
from minitickets_contracts.wording import amount_text, instant_text, start_text
from minitickets_worker.calendar_file import Method, calendar_file
from minitickets_worker.letter import Letter, Paragraph, letter_html, letter_text
from minitickets_worker.mail import Mail, subject_line
from minitickets_worker.site import Site

Facts = tuple[tuple[str, str], ...]


def compose_confirmation(message: BookingConfirmed, *, site: Site) -> Mail:
    """The mail that tells a customer of a confirmed booking, and where its tickets are."""
    return _booking(message, lead="your booking is confirmed.", site=site)


def compose_repetition(message: BookingMailRequested, *, site: Site) -> Mail:
    """The mail of a booking once more, as the booking stands now."""
    return _booking(message, lead="here is the mail of your booking again.", site=site)


def compose_move(message: EventMoved, *, site: Site) -> Mail:
    """The mail that tells what of an event was, what is now, and that the tickets stay valid."""
    event, previous = message.event, message.previous
    now, then = (start_text(place.starts_at, place.time_zone) for place in (event, previous))
    date: Facts = (("When", now),) if now == then else (("New date", now), ("Old date", then))
    venue: Facts = (
        (("Where", event.venue),)
        if event.venue == previous.venue
        else (("New venue", event.venue), ("Old venue", previous.venue))
    )
    differing = [name for name, fact in (("date", date), ("venue", venue)) if len(fact) > 1]
    return _mail(
        message,
        subject=f"Changed: {event.title}",
        lead=f"your event has another {' and another '.join(differing)}.",
        facts=(*date, *venue, _seats(message)),
        paragraphs=(
            Paragraph(text="Your seats and your tickets stay valid."),
            _tickets(site),
            Paragraph(text="The attached calendar file replaces the earlier one."),
            # Mails can overtake one another.
            Paragraph(
                text=f"Changed on {instant_text(message.occurred_at)}."
                " If several mails tell you of changes, the latest change counts."
            ),
        ),
        method=Method.PUBLISH,
        site=site,
    )


def compose_cancellation(message: BookingCancelled, *, site: Site) -> Mail:
    """The mail that tells which seats are given back, and that their tickets are void."""
    one = len(message.seats) == 1
    return _mail(
        message,
        subject=f"Cancelled: {message.event.title}",
        lead="your booking is cancelled.",
        facts=(*_place(message), _seats(message), ("Cancelled", instant_text(message.cancelled_at))),
        paragraphs=(
            Paragraph(
                text="The seat is free again, and its ticket is void: it does not open the door any more."
                if one
                else "The seats are free again, and their tickets are void: they do not open the door any more."
            ),
            Paragraph(text="The attached calendar file takes the event out of your calendar."),
        ),
        method=Method.CANCEL,
        site=site,
    )


def _booking(message: BookingMessage, *, lead: str, site: Site) -> Mail:
    return _mail(
        message,
        subject=f"Your booking: {message.event.title}",
        lead=lead,
        facts=(*_place(message), _seats(message), ("Total", amount_text(message.total_minor, message.currency))),
        paragraphs=(_tickets(site), Paragraph(text="The attached file puts the event into your calendar.")),
        method=Method.PUBLISH,
        site=site,
    )


def _mail(
    message: BookingMessage,
    *,
    subject: str,
    lead: str,
    facts: Facts,
    paragraphs: tuple[Paragraph, ...],
    method: Method,
    site: Site,
) -> Mail:
    letter = Letter(
        name=message.customer.name,
        lead=lead,
        heading=message.event.title,
        facts=facts,
        paragraphs=paragraphs,
        closing=f"Booking {message.booking_id}",
    )
    line = subject_line(subject)
    return Mail(
        recipient=message.customer.email,
        subject=line,
        text=letter_text(letter),
        html=letter_html(letter, subject=line),
        attachments=(calendar_file(message, method=method, site=site),),
    )


def _place(message: BookingMessage) -> Facts:
    event = message.event
    return (("When", start_text(event.starts_at, event.time_zone)), ("Where", event.venue))


def _seats(message: BookingMessage) -> tuple[str, str]:
    return ("Seat" if len(message.seats) == 1 else "Seats", ", ".join(message.seats))


def _tickets(site: Site) -> Paragraph:
    url = site.link("/tickets")
    if url is None:
        return Paragraph(text="You find your tickets where you booked.")
    return Paragraph(text="Your tickets are at", url=url)
