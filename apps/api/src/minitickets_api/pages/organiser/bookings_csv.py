"""The bookings of an event as a table for a spreadsheet."""

import csv
import io
import re
from collections.abc import AsyncIterator, Sequence

from minitickets_api.pages.organiser.amounts import amount_input
from minitickets_api.queries.event_bookings import EventBooking

_HEADINGS = (
    "Booking", "Name", "Mail address", "Seats", "Number of seats", "Total", "Currency", "Status",
    "Booked at (UTC)", "Cancelled at (UTC)", "Mail asked for again at (UTC)",
)  # fmt: skip
# A spreadsheet takes a cell that begins so for a formula, and runs it: names are whatever somebody typed.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - some read wide forms too
# Where decimals have a comma, spreadsheets part a line at its semicolons, and others at whatever they guess: what
# follows one in a name begins a cell there; so may a quote, where quotes are doubled.
_LATER_FORMULA = re.compile(f'([,;|"][\\s"\']*)(?=[{re.escape("".join(_FORMULA))}])')
_BYTE_ORDER_MARK = "\ufeff"  # without it, Excel takes UTF-8 for something else


async def table(pieces: AsyncIterator[Sequence[EventBooking]]) -> AsyncIterator[bytes]:
    """UTF-8 with a byte order mark, CRLF, a line a booking, in parts as the bookings come."""
    part = io.StringIO()
    writer = csv.writer(part)
    part.write(_BYTE_ORDER_MARK)
    writer.writerow(_HEADINGS)
    async for bookings in pieces:
        writer.writerows([defused(cell) for cell in _cells(booking)] for booking in bookings)
        yield part.getvalue().encode()
        part.seek(0)
        part.truncate()


def defused(cell: str) -> str:
    """``cell`` as text to every spreadsheet: an apostrophe before all that would be a formula."""
    cell = _LATER_FORMULA.sub(r"\1'", cell)
    return f"'{cell}" if cell.startswith(_FORMULA) or cell.lstrip().startswith(_FORMULA) else cell


def _cells(booking: EventBooking) -> tuple[str, ...]:
    return (
        booking.booking_id,
        booking.name,
        booking.email,
        " ".join(booking.seats),
        str(len(booking.seats)),
        amount_input(booking.total_minor, booking.currency),
        booking.currency,
        booking.status,
        booking.booked_at,
        booking.cancelled_at or "",
        booking.mail_requested_at or "",
    )
