"""An organiser's events: the list, one with its sales, and its publication."""

import asyncio
from collections.abc import Sequence
from datetime import date
from uuid import uuid4

from starlette.responses import Response

from minitickets_api.pages.forms import Form, read_input
from minitickets_api.pages.organiser import sales_plot
from minitickets_api.pages.organiser.access import organiser, own_event
from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import own_events
from minitickets_api.procedures.events import EventId, ListEvents
from minitickets_api.refusals import Code, Refusal

_EVENTS_A_PAGE = 24
# A picture runs nothing; its own style stands in it.
_PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"


async def mine(visit: Visit) -> Response:
    await organiser(visit)
    wanted = read_input(ListEvents, {"cursor": visit.query("cursor") or None, "limit": _EVENTS_A_PAGE})
    found = await own_events.mine(visit.call, wanted)
    return await visit.page(
        "organiser/events.html",
        section="organiser",
        events=found.events,
        next_cursor=found.next_cursor,
        is_first=wanted.cursor is None,
    )


async def overview(visit: Visit) -> Response:
    event = await own_event(visit)
    sales = await own_events.event_sales(visit.call, _event_id(visit))
    sold = _by_day(sales.days)
    bars = sales_plot.bars(sold)
    return await visit.page(
        "organiser/event.html",
        section="organiser",
        bucket_url=event.poster_url,
        event=event,
        sales=sales,
        days=[(_day_text(day), seats) for day, seats in sold],
        plot=_plot_text(bars) if bars else None,
        days_a_bar=(bars[0][1] - bars[0][0]).days + 1 if bars else 0,
        wide=sales_plot.WIDE,
        narrow=sales_plot.NARROW,
    )


async def plot(visit: Visit) -> Response:
    await organiser(visit)
    sales = await own_events.event_sales(visit.call, _event_id(visit))
    # Off the event loop: it takes some 10 ms, and the first one a tenth of a second more.
    size = sales_plot.NARROW if visit.query("for") == "phone" else sales_plot.WIDE
    picture = await asyncio.to_thread(sales_plot.draw, _by_day(sales.days), size=size)
    headers = {"cache-control": "no-store", "content-security-policy": _PICTURE_POLICY}
    return Response(picture, media_type="image/svg+xml", headers=headers)


async def publish_form(visit: Visit) -> Response:
    return await _publish_page(visit, Form())


async def publish(visit: Visit) -> Response:
    form = await visit.form()
    event_id = visit.id("eventId")
    given = {"eventId": event_id, "idempotencyKey": form.text("idempotencyKey")}
    try:
        await own_events.publish(visit.call, read_input(own_events.PublishEvent, given))
    except Refusal as reason:
        if reason.code not in (Code.BAD_REQUEST, Code.CONFLICT):
            raise
        return await _publish_page(visit, form.refused(reason), refusal=reason)
    return visit.go(f"/organiser/events/{event_id}", notice="published")


async def _publish_page(visit: Visit, form: Form, *, refusal: Refusal | None = None) -> Response:
    event = await own_event(visit)
    if event.is_published:
        return visit.go(f"/organiser/events/{event.event_id}")
    return await visit.page(
        "organiser/publish.html",
        section="organiser",
        refusal=refusal,
        event=event,
        form=form,
        key=str(uuid4()),
    )


def _event_id(visit: Visit) -> EventId:
    return read_input(EventId, {"eventId": visit.id("eventId")})


def _by_day(days: Sequence[own_events.SalesDay]) -> list[tuple[date, int]]:
    return [(day.day, day.seats) for day in days]


def _plot_text(bars: Sequence[tuple[date, date, int]]) -> str:
    """What the plot shows, in words, for who cannot see it."""
    most = max(seats for *_, seats in bars)
    first, last = bars[0][0], bars[-1][1]
    return (
        f"A bar chart of the seats sold from {_day_text(first)} to {_day_text(last)}. The tallest bar is {most:,}. "
        "The numbers are in the table that follows."
    )


def _day_text(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


def add_to(site: Site) -> None:
    """Register this module's pages."""
    site.get("/organiser", session=True)(mine)
    site.get("/organiser/events/{eventId}", session=True)(overview)
    site.get("/organiser/events/{eventId}/sales.svg", session=True)(plot)
    site.get("/organiser/events/{eventId}/publish", session=True)(publish_form)
    site.post("/organiser/events/{eventId}/publish", session=True)(publish)
