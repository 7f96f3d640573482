"""The calendar file of a booking (RFC 5545), which later mails about the booking replace (RFC 5546)."""

from datetime import UTC, datetime
from enum import StrEnum

from icalendar import Calendar, Event, vCalAddress

from minitickets_contracts.messages import BookingMessage
from minitickets_worker.mail import Attachment
from minitickets_worker.site import Site
from minitickets_worker.zone_rules import zone_name, zone_of, zone_rules


class Method(StrEnum):
    """What a calendar shall do with the file. Nobody is asked for an answer, so it is no REQUEST (ADR 0014)."""

    PUBLISH = "PUBLISH"
    CANCEL = "CANCEL"


def calendar_file(message: BookingMessage, *, method: Method, site: Site) -> Attachment:
    """``booking.ics``: the same bytes for the same message, whenever and wherever it is composed.

    One booking is one entry (UID), of which the highest SEQUENCE counts. A cancellation follows every move. There is
    no end: nobody has said how long the event lasts.
    """
    event = message.event
    start = datetime.fromisoformat(event.starts_at)
    zone = zone_of(event.time_zone, start)
    calendar = Calendar()
    calendar.add("version", "2.0")
    calendar.add("prodid", "-//MiniTickets//Bookings//EN")
    calendar.add("calscale", "GREGORIAN")
    calendar.add("method", str(method))
    entry = Event()
    entry.add("uid", f"{message.booking_id}@minitickets")
    entry.add("dtstamp", datetime.fromisoformat(message.occurred_at).astimezone(UTC).replace(microsecond=0))
    entry.add("sequence", event.sequence + (method is Method.CANCEL))
    entry.add("status", "CANCELLED" if method is Method.CANCEL else "CONFIRMED")
    entry.add("organizer", vCalAddress(f"mailto:{site.sender}"))
    if zone is UTC:
        entry.add("dtstart", start.replace(tzinfo=UTC))
    else:
        calendar.add_component(zone_rules(zone, year=start.year))
        entry.add("dtstart", start.replace(tzinfo=None), parameters={"TZID": zone_name(zone)})
    entry.add("summary", event.title)
    entry.add("location", event.venue)
    entry.add("description", "\n".join(_description(message)))
    if (booking := site.link(f"/bookings/{message.booking_id}")) is not None:
        entry.add("url", booking)
    calendar.add_component(entry)
    return Attachment(
        file_name="booking.ics",
        # Outlook refuses a file whose method is not repeated here.
        content_type=f"text/calendar; method={method}; charset=utf-8",
        content=calendar.to_ical(),
    )


def _description(message: BookingMessage) -> list[str]:
    return [
        f"{'Seat' if len(message.seats) == 1 else 'Seats'}: {', '.join(message.seats)}",
        f"Booking {message.booking_id}",
    ]
