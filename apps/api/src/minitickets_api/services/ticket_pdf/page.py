"""What a printed ticket looks like: one A4 page a seat, whose upper part holds all, so that Letter paper does too."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas

from minitickets_api.services.ticket_pdf.lines import Block, fit
from minitickets_api.services.ticket_pdf.qr import dark_runs
from minitickets_api.services.ticket_pdf.ticket import PrintedTicket
from minitickets_api.services.ticket_pdf.typefaces import REPLACEMENT
from minitickets_contracts.wording import clock_text, day_text, zone_text

QR_POINTS: float = 72 * mm
_WIDTH, _HEIGHT = A4
_SIDE = 20 * mm
_TOP = 22 * mm
_INNER = _WIDTH - 2 * _SIDE
_COLUMN = _SIDE + QR_POINTS + 10 * mm
_COLUMN_WIDTH = _WIDTH - _SIDE - _COLUMN
_LEADING = 1.3
_INK, _QUIET, _LINE = (0.1, 0.1, 0.12), (0.36, 0.36, 0.4), (0.8, 0.8, 0.82)

# Font sizes in points, the largest that fits first, and how many lines each may take: the longest of 200 characters
# must leave the code where it is.
_TITLE = ((26, 2), (20, 3), (15, 4), (11, 5))
_FACT = ((13, 2), (11, 3), (9, 4))
_NAME = ((13, 2), (11, 3), (9, 5))
_SEAT = ((44, 1), (32, 1), (22, 1))
_SMALL = ((8.5, 3),)


def draw(tickets: Sequence[PrintedTicket]) -> bytes:
    """The PDF, the same bytes for the same tickets. Takes one core some 20 ms a page; call it from a thread."""
    content = BytesIO()
    canvas: Any = Canvas(content, pagesize=A4, pageCompression=1, invariant=1, lang="en")
    canvas.setTitle(f"{'Ticket' if len(tickets) == 1 else 'Tickets'}: {tickets[0].event_title}")
    canvas.setAuthor("")
    canvas.setSubject(f"Booking {tickets[0].booking_id}")
    canvas.setCreator("MiniTickets")
    for number, ticket in enumerate(tickets, 1):
        _Page(canvas).draw(ticket, number=number, of=len(tickets))
        canvas.showPage()
    canvas.save()
    return content.getvalue()


class _Page:
    """One page, drawn from the top. ``y`` is where the next thing begins, in points from the bottom."""

    def __init__(self, canvas: Any) -> None:
        self._canvas = canvas
        self._y: float = _HEIGHT - _TOP
        self._lacks_some = False
        self._needs_readers_fonts = False

    def draw(self, ticket: PrintedTicket, *, number: int, of: int) -> None:
        self._text(f"Ticket {number} of {of}", sizes=((10, 1),), colour=_QUIET)
        self._space(2 * mm)
        self._text(ticket.event_title, sizes=_TITLE, is_bold=True)
        self._space(5 * mm)
        when = f"{day_text(ticket.starts_at)}, {clock_text(ticket.starts_at)}"
        self._fact("When", when, beside=zone_text(ticket.starts_at, ticket.time_zone))
        self._fact("Where", ticket.venue)
        self._rule()
        below = self._code(ticket.token)
        row, _, place = ticket.seat.rpartition("-")
        column = {"x": _COLUMN, "width_points": _COLUMN_WIDTH}
        if row:
            self._fact("Row", row, sizes=_SEAT, is_bold=True, **column)
        self._fact("Seat", place, sizes=_SEAT, is_bold=True, **column)
        self._fact("Name", ticket.holder, sizes=_NAME, **column)
        self._y = min(self._y, below)
        self._rule()
        self._text(
            "Show this code at the door, on paper or on your phone. It lets one person in, once: do not share a picture"
            " of it.",
            sizes=((10, 2),),
        )
        self._space(1.5 * mm)
        self._note(f"Booking {ticket.booking_id} · Seat {ticket.seat}")
        if self._lacks_some:
            self._note(f"{REPLACEMENT} stands for a character that this print has no letter for.")
        if self._needs_readers_fonts:
            self._note("If characters are missing above, open this file where fonts for their language are installed.")
        if self._lacks_some or self._needs_readers_fonts:
            self._note("The ticket is valid all the same: the code decides.")

    def _note(self, text: str) -> None:
        self._text(text, sizes=_SMALL, colour=_QUIET)

    def _fact(
        self,
        label: str,
        value: str,
        *,
        beside: str | None = None,
        sizes: Sequence[tuple[float, int]] = _FACT,
        is_bold: bool = False,
        x: float = _SIDE,
        width_points: float = _INNER,
    ) -> None:
        self._text(label, sizes=((9, 1),), colour=_QUIET, x=x, width_points=width_points)
        self._text(value, sizes=sizes, is_bold=is_bold, x=x, width_points=width_points)
        if beside is not None:
            self._text(beside, sizes=((10, 1), (8, 2)), colour=_QUIET, x=x, width_points=width_points)
        self._space(3 * mm)

    def _text(
        self,
        text: str,
        *,
        sizes: Sequence[tuple[float, int]],
        colour: tuple[float, float, float] = _INK,
        is_bold: bool = False,
        x: float = _SIDE,
        width_points: float = _INNER,
    ) -> None:
        block: Block = fit(text, width_points=width_points, sizes=sizes, is_bold=is_bold)
        self._lacks_some |= block.lacks_some
        self._needs_readers_fonts |= block.needs_readers_fonts
        self._canvas.setFillColorRGB(*colour)
        for line in block.lines:
            self._y -= block.size * _LEADING
            words = self._canvas.beginText(x, self._y + 0.3 * block.size)
            for run in line:
                words.setFont(run.font, block.size)
                words.textOut(run.text)
            self._canvas.drawText(words)

    def _code(self, token: str) -> float:
        """The QR code at the left, from here downwards; where it ends."""
        modules, runs = dark_runs(token)
        module: float = QR_POINTS / modules
        path = self._canvas.beginPath()
        for row, column, length in runs:
            path.rect(_SIDE + column * module, self._y - (row + 1) * module, length * module, module)
        self._canvas.setFillColorRGB(0, 0, 0)
        # One path, so that no reader shows a hair of white between two rows.
        self._canvas.drawPath(path, stroke=0, fill=1)
        return self._y - QR_POINTS

    def _rule(self) -> None:
        self._space(2 * mm)
        self._canvas.setStrokeColorRGB(*_LINE)
        self._canvas.setLineWidth(0.6)
        self._canvas.line(_SIDE, self._y, _WIDTH - _SIDE, self._y)
        self._space(5 * mm)

    def _space(self, points: float) -> None:
        self._y -= points
