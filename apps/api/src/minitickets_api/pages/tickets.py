"""My tickets: what is shown at the door, also where there is no network."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from starlette.responses import Response

from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import bookings, tickets
from minitickets_api.procedures.bookings import Booking, MyBookings
from minitickets_api.queries.bookings import by_id
from minitickets_api.refusals import Code, Refusal
from minitickets_api.trpc.registry import NoInput

# An evening's tickets stay on top until it is surely over.
_OVER_AFTER = timedelta(hours=12)
_BOOKINGS_A_QUERY = 100
_MAX_QUERIES = 10


@dataclass(frozen=True, kw_only=True)
class SeatTicket:
    """``status`` is None until the ticket has been made, then the ticket's own."""

    booking_id: str
    seat: str
    status: str | None

    @property
    def is_ready(self) -> bool:
        return self.status not in (None, "creating")

    @property
    def is_used(self) -> bool:
        return self.status == "checked-in"

    @property
    def image_path(self) -> str:
        return f"/tickets/{self.booking_id}/{self.seat}.png"


@dataclass(frozen=True, kw_only=True)
class BookingTickets:
    """A booking's seats, in its own order."""

    booking_id: str
    seats: tuple[SeatTicket, ...]

    @property
    def is_ready(self) -> bool:
        return all(seat.is_ready for seat in self.seats)


@dataclass(frozen=True, kw_only=True)
class EventTickets:
    """What somebody has for one event. ``starts_at`` is the venue's local time with its UTC offset."""

    event_id: str
    title: str
    venue: str
    starts_at: str
    time_zone: str
    bookings: tuple[BookingTickets, ...]

    @property
    def count(self) -> int:
        return sum(len(booking.seats) for booking in self.bookings)


async def mine(visit: Visit) -> Response:
    issued = (await tickets.mine(visit.call, NoInput())).tickets
    statuses = {(ticket.booking_id, ticket.seat): ticket.status for ticket in issued}
    groups = by_event(await _confirmed(visit), statuses)
    limit = datetime.now(UTC) - _OVER_AFTER
    return await visit.page(
        "tickets.html",
        section="tickets",
        coming=[group for group in groups if datetime.fromisoformat(group.starts_at) >= limit],
        over=[group for group in reversed(groups) if datetime.fromisoformat(group.starts_at) < limit],
    )


async def image(visit: Visit) -> Response:
    """The QR code of one seat, from here and not from the bucket: only its owner sees it, and it can be kept."""
    booking_id, seat = visit.id("bookingId"), visit.request.path_params["seat"]
    user, services = await visit.call.require_session(), visit.call.services
    booking = await by_id(services.database.pool, user_id=user.user_id, booking_id=booking_id)
    if booking.status != "confirmed" or seat not in booking.seats:
        raise Refusal(Code.NOT_FOUND, "You have no such ticket.")
    # A ticket's image never changes, so its name is mark enough; whose it is, is asked each time.
    mark = f'"{booking_id}-{seat}"'
    headers = {"cache-control": "private, no-cache", "etag": mark, "vary": "cookie"}
    if visit.request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers=headers)
    png = await services.aws.run(
        lambda: services.assets.read_ticket(event_id=booking.event_id, booking_id=booking_id, seat=seat)
    )
    if png is None:
        raise Refusal(Code.NOT_FOUND, "This ticket is still being made. Try again in a moment.")
    return Response(png, media_type="image/png", headers=headers)


def by_event(confirmed: Iterable[Booking], statuses: Mapping[tuple[str, str], str]) -> list[EventTickets]:
    """``confirmed`` bookings by event, the soonest first; ``statuses`` of the tickets that there are, by booking and
    seat. A ticket whose booking is not among them is left out: Postgres decides what counts."""
    ordered = sorted(confirmed, key=lambda booking: (datetime.fromisoformat(booking.starts_at), booking.event_id))
    return [
        EventTickets(
            event_id=event_id,
            title=group[0].event_title,
            venue=group[0].venue,
            starts_at=group[0].starts_at,
            time_zone=group[0].time_zone,
            bookings=tuple(
                BookingTickets(
                    booking_id=booking.booking_id,
                    seats=tuple(
                        SeatTicket(
                            booking_id=booking.booking_id, seat=seat, status=statuses.get((booking.booking_id, seat))
                        )
                        for seat in booking.seats
                    ),
                )
                for booking in group
            ),
        )
        for event_id, group in (
            (event_id, list(found)) for event_id, found in groupby(ordered, key=lambda booking: booking.event_id)
        )
    ]


async def _confirmed(visit: Visit) -> list[Booking]:
    """All confirmed bookings: they say what is still to come, where no ticket is there yet."""
    found: list[Booking] = []
    cursor: str | None = None
    for _ in range(_MAX_QUERIES):
        page = await bookings.mine(visit.call, MyBookings(cursor=cursor, limit=_BOOKINGS_A_QUERY))
        found += [booking for booking in page.bookings if booking.status == "confirmed"]
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def add_to(site: Site) -> None:
    """Register this module's pages."""
    site.get("/tickets", session=True)(mine)
    site.get("/tickets/{bookingId}/{seat}.png", session=True)(image)
