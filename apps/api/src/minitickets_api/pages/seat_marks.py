"""The seats of a row as a page shows them: a box to tick each, in the map by its number, in the list by its name.

Not in the template, because a hall has up to 5,000 of them: a template takes 80 ms for that, and this 15.
"""

from collections.abc import Collection, Iterable

from markupsafe import Markup, escape

from minitickets_api.procedures.events import Seat


def seat_marks(seats: Iterable[Seat], *, chosen: Collection[str], is_list: bool) -> Markup:
    """HTML of ``seats``; a sold one cannot be ticked, a chosen one is."""
    mark = _in_list if is_list else _in_map
    return Markup("\n".join([mark(seat, _state(seat, chosen)) for seat in seats]))  # noqa: S704 - escaped below


def _state(seat: Seat, chosen: Collection[str]) -> str:
    if seat.is_taken:
        return " disabled"
    return " checked" if seat.name in chosen else ""


def _in_map(seat: Seat, state: str) -> str:
    name, sold = escape(seat.name), ", sold" if seat.is_taken else ""
    place = "seat aisle" if seat.aisle_after else "seat"
    return (
        f'<label class="{place}"><input type="checkbox" name="seat" value="{name}"'
        f' aria-label="Seat {name}{sold}"{state}><span>{escape(seat.number)}</span></label>'
    )


def _in_list(seat: Seat, state: str) -> str:
    name, sold = escape(seat.name), ", sold" if seat.is_taken else ""
    return (
        f'<label class="seat"><input type="checkbox" name="seat" value="{name}"{state}>'
        f"<span>Seat {name}{sold}</span></label>"
    )
