"""Pages of events: what is on, and one event with its seats to book."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode
from uuid import uuid4

from starlette.responses import Response

from minitickets_api.pages.forms import Form, read_input
from minitickets_api.pages.seat_marks import seat_marks
from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import bookings, events
from minitickets_api.procedures.events import Seat
from minitickets_api.refusals import Code, Refusal
from minitickets_contracts.fields import MAX_SEATS_PER_BOOKING
from minitickets_contracts.wording import minor_digits

_EVENTS_A_PAGE = 24


@dataclass(frozen=True, kw_only=True)
class SeatRow:
    """Seats that stand side by side. ``label`` is empty for seats in no row."""

    label: str
    seats: Sequence[Seat]


async def upcoming(visit: Visit) -> Response:
    wanted = read_input(events.ListEvents, {"cursor": visit.query("cursor") or None, "limit": _EVENTS_A_PAGE})
    found = await events.list_events(visit.call, wanted)
    return await visit.page(
        "events.html",
        section="events",
        bucket_url=next((event.poster_url for event in found.events if event.poster_url), None),
        events=found.events,
        next_cursor=found.next_cursor,
        is_first=wanted.cursor is None,
    )


async def event(visit: Visit) -> Response:
    chosen = visit.request.query_params.getlist("seat")
    return await _event_page(visit, Form(), chosen=chosen, view=visit.query("view"))


async def book_form(visit: Visit) -> Response:
    return visit.go(f"/events/{visit.id('eventId')}")


async def book(visit: Visit) -> Response:
    event_id = visit.id("eventId")
    form = await visit.form()
    chosen, view = form.texts("seat"), form.text("view")
    given = {"eventId": event_id, "seats": chosen, "idempotencyKey": form.text("idempotencyKey"), **_offer(form)}
    try:
        wanted = read_input(bookings.CreateBooking, given)
        if await visit.call.user() is None:
            seats = urlencode([("seat", seat) for seat in wanted.seats] + [("view", "list")] * (view == "list"))
            return visit.go_to_login(f"/events/{event_id}?{seats}")
        booking = await bookings.create(visit.call, wanted)
    except Refusal as reason:
        # Not found at all, or a draft, which its organiser sees.
        return await _event_page(visit, form, chosen=chosen, view=view, refusal=reason)
    return visit.go(f"/bookings/{booking.booking_id}", notice="booked")


async def _event_page(
    visit: Visit, form: Form, *, chosen: Collection[str], view: str, refusal: Refusal | None = None
) -> Response:
    wanted = read_input(events.EventId, {"eventId": visit.id("eventId")})
    found = await events.by_id(visit.call, wanted)
    kept, lost = still_free(found.seats, chosen)
    return await visit.page(
        "event.html",
        section="events",
        refusal=refusal,
        bucket_url=found.poster_url,
        event=found,
        rows=seat_rows(found.seats),
        seat_marks=seat_marks,
        chosen=frozenset(kept),
        lost=lost,
        form=form if refusal is None else form.refused(_told(refusal, kept), fields=["seats"]),
        is_list=view == "list",
        most=MAX_SEATS_PER_BOOKING,
        digits=minor_digits(found.currency),
        # Always new: whoever sends a form again after it was refused means another wish.
        key=str(uuid4()),
    )


def _offer(form: Form) -> Mapping[str, object]:
    """What the page that was sent had shown of price, start and place."""
    shown = {name: form.text(name) for name in ("priceMinor", "currency", "startsAt", "venue")}
    if not any(shown.values()):
        return {}
    price = shown["priceMinor"]
    return {"offer": {**shown, "priceMinor": int(price) if price.isdecimal() and len(price) < 12 else price}}


def still_free(seats: Iterable[Seat], chosen: Collection[str]) -> tuple[list[str], list[str]]:
    """Of the ``chosen`` names, in the order of the hall: the seats that are free, and those that were sold since.

    That happens on the way through the login, or a moment before the booking.
    """
    names = frozenset(chosen)  # once: a form, or an address, may name thousands
    wanted = [seat for seat in seats if seat.name in names]
    return [seat.name for seat in wanted if not seat.is_taken], [seat.name for seat in wanted if seat.is_taken]


def seat_rows(seats: Iterable[Seat]) -> list[SeatRow]:
    """The seats by row, in the order in which they come."""
    return [SeatRow(label=label, seats=list(row)) for label, row in groupby(seats, key=lambda seat: seat.row)]


def _told(reason: Refusal, kept: Collection[str]) -> Refusal:
    """``reason`` as somebody reads it who has a seat map before them."""
    if reason.code is Code.NOT_FOUND:
        return Refusal(reason.code, "This is a draft. Its seats can be booked once you have published it.")
    named = reason.details.get("seats")
    taken = named if isinstance(named, list) else []
    if reason.code is Code.BAD_REQUEST and taken:
        rest = "The rest of your choice is still here." if kept else "Choose others."
        return Refusal(reason.code, f"There is no seat {', '.join(map(str, taken))} any more. {rest}")
    if reason.code is not Code.CONFLICT:
        return reason
    if "offer" in reason.details:
        return Refusal(
            Code.CONFLICT,
            "The event was changed while you were choosing. Look at its price, start and venue once more: they are as"
            " this page shows them now. Book if that suits you.",
        )
    if not taken:
        return Refusal(Code.CONFLICT, "This form had been sent before. Look at your bookings, or send it again.")
    names = ", ".join(str(seat) for seat in taken)
    was = "was" if len(taken) == 1 else "were"
    rest = "The rest of your choice is still here: book it, or choose others." if kept else "Choose others."
    return Refusal(Code.CONFLICT, f"{names} {was} booked by somebody else a moment ago. {rest}")


def add_to(site: Site) -> None:
    """Register this module's pages."""
    site.get("/")(upcoming)
    site.get("/events/{eventId}")(event)
    site.get("/events/{eventId}/book")(book_form)
    site.post("/events/{eventId}/book")(book)
