"""Who booked an event: the list with its search, a mail once more, the table for a spreadsheet."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from urllib.parse import quote
from uuid import uuid4

from starlette.responses import Response, StreamingResponse

from minitickets_api.organisers import require_organiser
from minitickets_api.pages.forms import read_input
from minitickets_api.pages.organiser import bookings_csv
from minitickets_api.pages.organiser.access import organiser, own_event
from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import bookings, own_events
from minitickets_api.queries.event_bookings import EventBooking, all_event_bookings
from minitickets_api.refusals import Code, Refusal
from minitickets_api.venue_time import local_start

_BOOKINGS_A_PAGE = 50


async def event_bookings(visit: Visit) -> Response:
    return await _bookings_page(visit, search=visit.query("search"), cursor=visit.query("cursor"))


async def resend(visit: Visit) -> Response:
    event = await own_event(visit)
    form = await visit.form()
    search, cursor = form.text("search"), form.text("cursor")
    given = {"bookingId": form.text("bookingId"), "idempotencyKey": form.text("idempotencyKey")}
    try:
        await bookings.resend_mail(visit.call, read_input(bookings.ResendMail, given))
    except Refusal as reason:
        if reason.code not in (Code.BAD_REQUEST, Code.NOT_FOUND, Code.CONFLICT, Code.TOO_MANY_REQUESTS):
            raise
        return await _bookings_page(visit, search=search, cursor=cursor, refusal=reason)
    where = {name: value for name, value in (("search", search), ("cursor", cursor)) if value}
    return visit.go(f"/organiser/events/{event.event_id}/bookings", notice="resent", **where)


async def download(visit: Visit) -> Response:
    event = await own_event(visit)
    pieces = all_event_bookings(
        visit.call.services.database.pool,
        organiser_id=require_organiser(await organiser(visit)),
        event_id=event.event_id,
    )
    # Before anything is sent: what is refused is a page, not half a file.
    first = await anext(pieces)
    name = quote(f"Bookings of {event.title}.csv", safe="")
    headers = {
        "cache-control": "no-store",
        "content-disposition": f"attachment; filename=\"bookings.csv\"; filename*=UTF-8''{name}",
    }
    if visit.request.method == "HEAD":
        return Response(headers=headers, media_type="text/csv")
    return StreamingResponse(bookings_csv.table(_after(first, pieces)), headers=headers, media_type="text/csv")


async def _bookings_page(visit: Visit, *, search: str, cursor: str, refusal: Refusal | None = None) -> Response:
    event = await own_event(visit)
    wanted = read_input(
        own_events.ListEventBookings,
        {
            "eventId": event.event_id,
            "search": search or None,
            "cursor": cursor or None,
            "limit": _BOOKINGS_A_PAGE,
        },
    )
    found = await own_events.list_bookings(visit.call, wanted)
    return await visit.page(
        "organiser/bookings.html",
        section="organiser",
        refusal=refusal,
        event=event,
        # A key a booking: each button is a wish of its own.
        bookings=[(booking, str(uuid4())) for booking in found.bookings],
        at_venue=partial(_clock_text, time_zone=event.time_zone),
        next_cursor=found.next_cursor,
        is_first=not cursor,
        search=search.strip(),
        cursor=cursor,
        problem=refusal.message if refusal else "",
    )


def _clock_text(moment: str, *, time_zone: str) -> str:
    """``29 November 2026, 10:45``: an ISO 8601 time as the venue's clocks and calendar, and so its sales, show it."""
    when = datetime.fromisoformat(local_start(datetime.fromisoformat(moment), time_zone))
    return f"{when.day} {when:%B} {when.year}, {when:%H:%M}"


async def _after(
    first: Sequence[EventBooking], rest: AsyncIterator[Sequence[EventBooking]]
) -> AsyncIterator[Sequence[EventBooking]]:
    yield first
    async for piece in rest:
        yield piece


def add_to(site: Site) -> None:
    """Register this module's pages."""
    site.get("/organiser/events/{eventId}/bookings", session=True)(event_bookings)
    site.post("/organiser/events/{eventId}/bookings", session=True)(resend)
    site.get("/organiser/events/{eventId}/bookings.csv", session=True)(download)
