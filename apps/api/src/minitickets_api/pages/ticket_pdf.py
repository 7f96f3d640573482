"""A booking's tickets as a PDF, for who likes paper."""

from starlette.responses import Response

from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.queries import bookings
from minitickets_api.queries.bookings import BookingView
from minitickets_api.queries.tickets import IssuedTicket
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.accounts import User
from minitickets_api.services.rate_limits import PRINT_BY_USER
from minitickets_api.services.ticket_pdf.ticket import PrintedTicket

_RETRY_SECONDS = 5


async def ticket_pdf(visit: Visit) -> Response:
    """One page a seat. Only the booking's owner gets it, while the booking stands, once all its tickets are ready."""
    user = await visit.call.require_session()
    services = visit.call.services
    await services.rate_limits.spend((PRINT_BY_USER, user.user_id))
    booking_id = visit.id("bookingId")
    booking = await bookings.by_id(services.database.pool, user_id=user.user_id, booking_id=booking_id)
    if booking.status != "confirmed":
        raise Refusal(Code.CONFLICT, "This booking was cancelled: its tickets are void, and its seats are free again.")
    issued = await services.tickets.of_booking(user_id=user.user_id, booking_id=booking_id)
    ready = {ticket.seat: ticket for ticket in issued if ticket.is_ready}
    pending = [seat for seat in booking.seats if seat not in ready]
    if pending:
        return await _pending_page(visit, booking, pending)
    pdf = await services.ticket_printer.print([_printed(booking, ready[seat], user) for seat in booking.seats])
    headers = {
        # To be kept and printed, not shown: a browser's own viewer would run under this page's strict policy.
        "content-disposition": f'attachment; filename="tickets-{booking_id[:8]}.pdf"',
        "cache-control": "private, no-store",
    }
    return Response(pdf, media_type="application/pdf", headers=headers)


async def _pending_page(visit: Visit, booking: BookingView, pending: list[str]) -> Response:
    reason = Refusal(
        Code.CONFLICT, f"Still being made: {', '.join(pending)}.", seats=pending, retryAfterSeconds=_RETRY_SECONDS
    )
    return await visit.page(
        "ticket_pdf_pending.html", section="tickets", refusal=reason, booking=booking, pending=pending
    )


def _printed(booking: BookingView, ticket: IssuedTicket, user: User) -> PrintedTicket:
    return PrintedTicket(
        event_title=booking.event_title,
        venue=booking.venue,
        starts_at=booking.starts_at,
        time_zone=booking.time_zone,
        seat=ticket.seat,
        holder=user.name,
        booking_id=booking.booking_id,
        token=ticket.token,
    )


def add_to(site: Site) -> None:
    """Register this module's page."""
    site.get("/tickets/{bookingId}.pdf", session=True)(ticket_pdf)
