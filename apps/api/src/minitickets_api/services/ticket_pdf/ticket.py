"""What is printed of a ticket; apart from how, for which a library is loaded when somebody prints."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class PrintedTicket:
    """What stands on one page. ``starts_at`` is the venue's local time with its UTC offset."""

    event_title: str
    venue: str
    starts_at: str
    time_zone: str
    seat: str
    holder: str
    booking_id: str
    token: str = field(repr=False)
