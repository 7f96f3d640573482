"""Pages of bookings: all of somebody's, one and how far it has come, the mail once more, a cancellation."""

from uuid import uuid4

from starlette.responses import Response

from minitickets_api.pages.forms import Form, read_input
from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import bookings
from minitickets_api.queries.bookings import by_id
from minitickets_api.refusals import Code, Refusal

_BOOKINGS_A_PAGE = 20


async def mine(visit: Visit) -> Response:
    wanted = read_input(bookings.MyBookings, {"cursor": visit.query("cursor") or None, "limit": _BOOKINGS_A_PAGE})
    found = await bookings.mine(visit.call, wanted)
    return await visit.page(
        "bookings.html",
        section="bookings",
        bookings=found.bookings,
        next_cursor=found.next_cursor,
        is_first=wanted.cursor is None,
    )


async def booking(visit: Visit) -> Response:
    return await _booking_page(visit, Form())


async def mail_form(visit: Visit) -> Response:
    return visit.go(f"/bookings/{visit.id('bookingId')}")


async def mail(visit: Visit) -> Response:
    booking_id, form = visit.id("bookingId"), await visit.form()
    given = {"bookingId": booking_id, "idempotencyKey": form.text("idempotencyKey")}
    try:
        await bookings.resend_mail(visit.call, read_input(bookings.ResendMail, given))
    except Refusal as reason:
        if reason.code is Code.NOT_FOUND:
            raise
        return await _booking_page(visit, form.refused(reason), refusal=reason)
    return visit.go(f"/bookings/{booking_id}", notice="mail-again")


async def cancel_form(visit: Visit) -> Response:
    return await _cancel_page(visit, Form())


async def cancel(visit: Visit) -> Response:
    booking_id, form = visit.id("bookingId"), await visit.form()
    given = {"bookingId": booking_id, "idempotencyKey": form.text("idempotencyKey")}
    try:
        await bookings.cancel(visit.call, read_input(bookings.CancelBooking, given))
    except Refusal as reason:
        if reason.code is Code.NOT_FOUND:
            raise
        return await _cancel_page(visit, form.refused(reason), refusal=reason)
    return visit.go(f"/bookings/{booking_id}", notice="cancelled")


async def _booking_page(visit: Visit, form: Form, *, refusal: Refusal | None = None) -> Response:
    found = await bookings.by_id(visit.call, bookings.BookingId(bookingId=visit.id("bookingId")))
    return await visit.page(
        "booking.html",
        section="bookings",
        refusal=refusal,
        form=form,
        booking=found,
        is_cancelled=found.status == "cancelled",
        is_ready=found.tickets_ready == found.tickets_total,
        mail_key=str(uuid4()),
        cancel_key=str(uuid4()),
    )


async def _cancel_page(visit: Visit, form: Form, *, refusal: Refusal | None = None) -> Response:
    user = await visit.call.require_session()
    found = await by_id(visit.call.services.database.pool, user_id=user.user_id, booking_id=visit.id("bookingId"))
    if found.status == "cancelled":
        return visit.go(f"/bookings/{found.booking_id}")
    return await visit.page(
        "cancel.html", section="bookings", refusal=refusal, form=form, booking=found, key=str(uuid4())
    )


def add_to(site: Site) -> None:
    """Register this module's pages."""
    site.get("/bookings", session=True)(mine)
    site.get("/bookings/{bookingId}", session=True)(booking)
    site.get("/bookings/{bookingId}/mail", session=True)(mail_form)
    site.post("/bookings/{bookingId}/mail", session=True)(mail)
    site.get("/bookings/{bookingId}/cancel", session=True)(cancel_form)
    site.post("/bookings/{bookingId}/cancel", session=True)(cancel)
