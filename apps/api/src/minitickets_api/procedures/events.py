"""What there is to see."""

from collections.abc import Sequence

from minitickets_api.procedures.call import Call
from minitickets_api.procedures.fields import Cursor, Id, PageSize
from minitickets_api.queries import events
from minitickets_api.queries.events import EventSummary
from minitickets_api.trpc.registry import Input, Output, Registry


class ListEvents(Input):
    """A page of the list."""

    cursor: Cursor | None = None
    limit: PageSize = 50


class EventId(Input):
    """Which event."""

    event_id: Id


class Event(Output):
    """`startsAt` is the venue's local time with its UTC offset; `priceMinor` is of one seat, in minor units.

    `posterUrl` lives 120 s.
    """

    event_id: str
    title: str
    venue: str
    starts_at: str
    time_zone: str
    price_minor: int
    currency: str
    is_published: bool
    has_begun: bool
    seats_total: int
    seats_free: int
    poster_url: str | None


class Seat(Output):
    """A seat and whether somebody has it. `name` is `<row>-<number>`; after `aisleAfter` people walk."""

    name: str
    row: str
    number: str
    is_taken: bool
    aisle_after: bool


class EventWithSeats(Event):
    """`seats` are in the order in which people read them."""

    seats: list[Seat]


class EventList(Output):
    """`nextCursor` is null on the last page."""

    events: list[Event]
    next_cursor: str | None


async def list_events(call: Call, wanted: ListEvents) -> EventList:
    """Published events that have not begun, the soonest first. The first page may be two seconds old."""
    if wanted.cursor is not None:
        return await _page(call, wanted)

    async def load() -> bytes:
        return (await _page(call, wanted)).model_dump_json(by_alias=True).encode()

    return await call.services.event_cache.first_page(limit=wanted.limit, load=load, read=EventList.model_validate_json)


async def by_id(call: Call, wanted: EventId) -> EventWithSeats:
    """One event with all its seats. NOT_FOUND: there is none, or it is a draft of somebody else."""
    viewer = await call.user()
    found = await events.by_id(
        call.services.database.pool, event_id=wanted.event_id, user_id=None if viewer is None else viewer.user_id
    )
    [event] = await show(call, [found.event])
    return EventWithSeats(**event.model_dump(), seats=[Seat.model_validate(seat) for seat in found.seats])


async def _page(call: Call, wanted: ListEvents) -> EventList:
    page = await events.upcoming(call.services.database.pool, limit=wanted.limit, cursor=wanted.cursor)
    return EventList(events=await show(call, page.events), next_cursor=page.next_cursor)


async def show(call: Call, summaries: Sequence[EventSummary]) -> list[Event]:
    """The events with URLs of their posters."""
    keys = {summary.poster_key for summary in summaries if summary.poster_key is not None}
    assets = call.services.assets
    urls = await call.services.aws.sign(lambda: {key: assets.sign_get(key) for key in keys}) if keys else {}
    return [
        Event(
            event_id=summary.event_id,
            title=summary.title,
            venue=summary.venue,
            starts_at=summary.starts_at,
            time_zone=summary.time_zone,
            price_minor=summary.price_minor,
            currency=summary.currency,
            is_published=summary.is_published,
            has_begun=summary.has_begun,
            seats_total=summary.seats_total,
            seats_free=summary.seats_free,
            poster_url=urls.get(summary.poster_key) if summary.poster_key else None,
        )
        for summary in summaries
    ]


def add_to(registry: Registry[Call]) -> None:
    """Register this module's procedures."""
    registry.query("events.list", session=False)(list_events)
    registry.query("events.byId", session=False)(by_id)
