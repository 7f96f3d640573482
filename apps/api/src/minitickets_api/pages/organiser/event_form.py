"""The form of an event: a new one's, and one's to change."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import BaseModel
from starlette.responses import Response

from minitickets_api.pages.forms import Form, read_input
from minitickets_api.pages.organiser.access import organiser, own_event
from minitickets_api.pages.organiser.amounts import amount_input, read_amount
from minitickets_api.pages.organiser.seat_rows import read_rows, rows_of, rows_text
from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import own_events
from minitickets_api.procedures.events import EventWithSeats, ListEvents
from minitickets_api.refusals import Code, Refusal
from minitickets_api.venue_time import known_zones
from minitickets_contracts.wording import amount_text

_LABELS = {
    "title": "Title",
    "venue": "Venue",
    "startsAt": "Start",
    "timeZone": "Time zone of the venue",
    "rows": "Rows and seats",
    "price": "Price of a seat",
    "currency": "Currency",
}
# Where people live; the rest are older names for the same, and offsets.
_REGIONS = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)
# One says what the other means, so they are changed together.
_TOGETHER = (("startsAt", "timeZone"), ("price", "currency"))
_MARK_CHARACTERS = 16
_MAX_PRICE_MINOR = 1_000_000_000  # the procedure's and the table's
_CURRENCIES = ("AUD", "BRL", "CAD", "CHF", "CZK", "DKK", "EUR", "GBP", "INR", "JPY", "NOK", "NZD", "PLN", "SEK", "USD")

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class _Filled:
    """What stands in the form before anybody has typed, as browsers want it."""

    title: str = ""
    venue: str = ""
    starts_at: str = ""
    time_zone: str = ""
    rows: str = ""
    price: str = ""
    currency: str = ""

    def by_field(self) -> Mapping[str, str]:
        """By the form's names, in its order."""
        values = (self.title, self.venue, self.starts_at, self.time_zone, self.rows, self.price, self.currency)
        return dict(zip(_LABELS, values, strict=True))


async def new_form(visit: Visit) -> Response:
    return await _new_page(visit, Form())


async def create(visit: Visit) -> Response:
    await organiser(visit)
    form = await visit.form()
    try:
        made = await own_events.create(visit.call, _read(own_events.CreateEvent, form, fields=tuple(_LABELS)))
    except Refusal as reason:
        if not _is_about_the_form(reason):
            raise
        return await _new_page(visit, form, refusal=reason)
    return visit.go(f"/organiser/events/{made.event_id}", notice="created")


async def edit_form(visit: Visit) -> Response:
    return await _edit_page(visit, await own_event(visit), Form())


async def update(visit: Visit) -> Response:
    event = await own_event(visit)
    form = await visit.form()
    fields = [name for name in _changed(form) if name != "rows" or rows_of(event.seats) is not None]
    try:
        wanted = _read(own_events.UpdateEvent, form, fields=fields, eventId=event.event_id)
        updated = await own_events.update(visit.call, wanted)
    except Refusal as reason:
        if not _is_about_the_form(reason):
            raise
        return await _edit_page(visit, event, form, refusal=reason)
    return visit.go(f"/organiser/events/{event.event_id}", notice="moved" if updated.told_bookings else "changed")


def _changed(form: Form) -> list[str]:
    """The fields that somebody changed.

    The rest is left as it is by now: a form that was opened before another edit must not take that back, least of all
    a move that everybody was mailed about.
    """
    marks = form.text("asShown").split()
    if len(marks) != len(_LABELS):  # not our page's form: all that it says is meant
        return list(_LABELS)
    changed = {name for name, mark in zip(_LABELS, marks, strict=True) if _mark(form.text(name)) != mark}
    changed.update(name for pair in _TOGETHER if changed & set(pair) for name in pair)
    return [name for name in _LABELS if name in changed]


def _mark(text: str) -> str:
    """What tells whether a field was changed; browsers send lines with their own ends."""
    lines = "\n".join(text.strip().splitlines())
    return hashlib.sha256(lines.encode()).hexdigest()[:_MARK_CHARACTERS]


def _is_about_the_form(reason: Refusal) -> bool:
    return reason.code in (Code.BAD_REQUEST, Code.CONFLICT)


async def _new_page(visit: Visit, form: Form, *, refusal: Refusal | None = None) -> Response:
    await organiser(visit)
    # Most people's events are in one country.
    latest = (await own_events.mine(visit.call, read_input(ListEvents, {"limit": 1}))).events
    return await _page(
        visit,
        form,
        event=None,
        refusal=refusal,
        action="/organiser/events/new",
        given=_Filled(time_zone=latest[0].time_zone, currency=latest[0].currency) if latest else _Filled(),
        has_rows=True,
    )


async def _edit_page(visit: Visit, event: EventWithSeats, form: Form, *, refusal: Refusal | None = None) -> Response:
    rows = rows_of(event.seats)
    given = _Filled(
        title=event.title,
        venue=event.venue,
        starts_at=event.starts_at[:19].removesuffix(":00"),
        time_zone=event.time_zone,
        rows="" if rows is None else rows_text(rows),
        price=amount_input(event.price_minor, event.currency),
        currency=event.currency,
    )
    return await _page(
        visit,
        form,
        event=event,
        refusal=refusal,
        action=f"/organiser/events/{event.event_id}/edit",
        given=given,
        has_rows=rows is not None,
    )


async def _page(
    visit: Visit,
    form: Form,
    *,
    event: EventWithSeats | None,
    refusal: Refusal | None,
    action: str,
    given: _Filled,
    has_rows: bool,
) -> Response:
    return await visit.page(
        "organiser/edit.html",
        section="organiser",
        refusal=refusal,
        event=event,
        sold=0 if event is None else event.seats_total - event.seats_free,
        form=form if refusal is None else form.refused(_by_field(refusal), fields=list(_LABELS)),
        labels=_LABELS,
        action=action,
        given=given,
        # A refused form still shows what its first page did.
        as_shown=form.text("asShown") or " ".join(map(_mark, given.by_field().values())),
        has_rows=has_rows,
        zones=_zones(),
        currencies=_CURRENCIES,
        key=str(uuid4()),
    )


def _read(model: type[M], form: Form, *, fields: Sequence[str], **more: str) -> M:
    """The form as a procedure's input. Raises Refusal (BAD_REQUEST) with everything that is wrong, by field."""
    issues: dict[str, str] = {}
    given: dict[str, Any] = {**more, "idempotencyKey": form.text("idempotencyKey")}
    for name in fields:
        text = form.text(name).strip()
        if not text:
            issues[name] = "Fill this in."
            continue
        try:
            given |= _value(name, text, currency=form.text("currency").strip().upper())
        except ValueError as error:
            issues[name] = str(error)
    try:
        wanted = read_input(model, given)
    except Refusal as reason:
        found = _by_field(reason).details["issues"]
        for issue in found if isinstance(found, list) else []:
            if issue["path"] not in issues and (issue["path"] in fields or not issues):
                issues[issue["path"]] = issue["message"]
    if issues:
        # In the order of the form.
        ordered = sorted(issues.items(), key=lambda issue: list(_LABELS).index(issue[0]) if issue[0] in _LABELS else -1)
        raise Refusal(
            Code.BAD_REQUEST,
            "Something needs another look.",
            issues=[{"path": path, "message": message} for path, message in ordered],
        )
    return wanted


def _value(name: str, text: str, *, currency: str) -> Mapping[str, Any]:
    """A field of the form as one of the procedure's. Raises ValueError with what to write instead."""
    match name:
        case "price":
            # In a currency that is none, as in most: that it is none is said beside it.
            known = currency if _is_currency(currency) else "EUR"
            if (minor := read_amount(text, known)) > _MAX_PRICE_MINOR:
                raise ValueError(f"A seat costs at most {amount_text(_MAX_PRICE_MINOR, known)}.")
            return {"priceMinor": minor}
        case "currency":
            if not _is_currency(currency):
                raise ValueError("Write the three letters of a currency, such as EUR.")
            return {"currency": currency}
        case "timeZone":
            return {"timeZone": _zone(text)}
        case "rows":
            rows = read_rows(text)
            return {
                "rows": [{"label": row.label, "seats": row.seats, "aisleAfter": list(row.aisle_after)} for row in rows]
            }
        case _:
            return {name: text}


def _is_currency(text: str) -> bool:
    return len(text) == 3 and text.isascii() and text.isalpha()


def _by_field(reason: Refusal) -> Refusal:
    """The refusal with issues by the form's names, which has no minor units."""
    found = reason.details.get("issues")
    if not isinstance(found, list):
        return reason
    issues = [
        {"path": "price" if issue["path"] == "priceMinor" else str(issue["path"]).partition(".")[0],
         "message": issue["message"]}
        for issue in found
    ]  # fmt: skip
    return Refusal(reason.code, reason.message, **{**reason.details, "issues": issues})


@cache
def _zones() -> tuple[str, ...]:
    """What is offered, in the order of the alphabet; all that the procedure knows may be typed."""
    return ("UTC", *sorted(zone for zone in known_zones() if zone.partition("/")[0] in _REGIONS))


@cache
def _zones_by_name() -> Mapping[str, str]:
    """By name in any case, and by city where only one zone has it."""
    cities: dict[str, list[str]] = {}
    for zone in _zones():
        cities.setdefault(zone.rpartition("/")[2].replace("_", " ").casefold(), []).append(zone)
    alone = {city: zones[0] for city, zones in cities.items() if len(zones) == 1}
    return {**alone, **{zone.casefold(): zone for zone in known_zones()}}


def _zone(text: str) -> str:
    wanted = text.casefold()
    by_name = _zones_by_name()
    found = by_name.get(wanted) or by_name.get(wanted.replace("_", " ")) or by_name.get(wanted.replace(" ", "_"))
    if found is None:
        raise ValueError("Choose a zone from the list, such as Europe/Berlin.")
    return found


def add_to(site: Site) -> None:
    """Register this module's pages, before those of an event: ``new`` is no event's id."""
    site.get("/organiser/events/new", session=True)(new_form)
    site.post("/organiser/events/new", session=True)(create)
    site.get("/organiser/events/{eventId}/edit", session=True)(edit_form)
    site.post("/organiser/events/{eventId}/edit", session=True)(update)
