"""An organiser's own events: made, edited, published, and how they sell."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from minitickets_api.organisers import require_organiser
from minitickets_api.procedures.call import Call
from minitickets_api.procedures.events import Event, EventId, EventList, ListEvents, show
from minitickets_api.procedures.fields import (
    Currency,
    Cursor,
    Id,
    IdempotencyKey,
    LocalStart,
    PageSize,
    PriceMinor,
    Text,
    TimeZone,
)
from minitickets_api.queries import events
from minitickets_api.queries.event_bookings import event_bookings
from minitickets_api.queries.sales import sales
from minitickets_api.services import seat_rows
from minitickets_api.services.own_events import EventChanges, NewEvent
from minitickets_api.trpc.registry import Input, Output, Registry


class Row(Input):
    """`seats` seats, numbered from 1: row `A` has `A-1`, `A-2` and so on. After the seats `aisleAfter` people walk."""

    label: Annotated[str, Field(pattern=r"^[A-Z0-9]{1,4}$")]
    seats: Annotated[int, Field(ge=1, le=seat_rows.MAX_SEATS_PER_ROW)]
    aisle_after: list[int] = Field(default_factory=list, max_length=seat_rows.MAX_SEATS_PER_ROW)

    def planned(self) -> seat_rows.SeatRow:
        """As the service takes it. Raises ValueError for an aisle where none can be."""
        return seat_rows.SeatRow(label=self.label, seats=self.seats, aisle_after=tuple(sorted(set(self.aisle_after))))


def _a_hall(rows: list[Row]) -> list[Row]:
    seat_rows.check_rows([row.planned() for row in rows])
    return rows


Rows = Annotated[
    list[Row],
    Field(min_length=1, max_length=seat_rows.MAX_ROWS, description=f"At most {seat_rows.MAX_SEATS} seats together."),
    AfterValidator(_a_hall),
]


class CreateEvent(Input):
    """`startsAt` is what clocks at the venue show, such as `2026-12-31T20:00`.

    Of an hour that comes twice it means the first, unless it carries its UTC offset; one that never comes is refused.
    """

    title: Text
    venue: Text
    starts_at: LocalStart
    time_zone: TimeZone
    rows: Rows
    price_minor: PriceMinor
    currency: Currency
    idempotency_key: IdempotencyKey


class UpdateEvent(Input):
    """What is left out stays as it is; `rows`, if given, are all rows. A zone without a start keeps the time on the
    door."""

    event_id: Id
    title: Text | None = None
    venue: Text | None = None
    starts_at: LocalStart | None = None
    time_zone: TimeZone | None = None
    rows: Rows | None = None
    price_minor: PriceMinor | None = None
    currency: Currency | None = None
    idempotency_key: IdempotencyKey


class PublishEvent(Input):
    """Which event."""

    event_id: Id
    idempotency_key: IdempotencyKey


class UpdatedEvent(Event):
    """`toldBookings` is how many bookings a mail about the move goes out to."""

    told_bookings: int


class SalesDay(Output):
    """What was booked on a day of the venue's calendar, and not cancelled since."""

    day: date
    bookings: int
    seats: int
    revenue_minor: int


class Sales(Output):
    """`sold` and `left` are seats; `days` are those with bookings, in order, and add up to the rest."""

    event_id: str
    sold: int
    left: int
    bookings: int
    cancelled_bookings: int
    revenue_minor: int
    currency: str
    days: list[SalesDay]


class ListEventBookings(Input):
    """A page of the list. `search` is a part of a name or an address, a seat, or a booking's id."""

    event_id: Id
    search: Annotated[str, Field(max_length=200)] | None = None
    cursor: Cursor | None = None
    limit: PageSize = 50


class EventBooking(Output):
    """Times are in UTC; `mailRequestedAt` is when its mail was last asked for again."""

    booking_id: str
    name: str
    email: str
    seats: list[str]
    total_minor: int
    currency: str
    status: Literal["confirmed", "cancelled"]
    booked_at: str
    cancelled_at: str | None
    mail_requested_at: str | None


class EventBookings(Output):
    """`nextCursor` is null on the last page."""

    bookings: list[EventBooking]
    next_cursor: str | None


async def create(call: Call, wanted: CreateEvent) -> Event:
    """Make a draft, which you alone see until it is published.

    BAD_REQUEST: `issues` name the fields. FORBIDDEN: you are no organiser.
    """
    made = await call.services.own_events.create(
        organiser=await call.require_session(),
        event=NewEvent(
            title=wanted.title,
            venue=wanted.venue,
            starts_at=datetime.fromisoformat(wanted.starts_at),
            time_zone=wanted.time_zone,
            rows=tuple(row.planned() for row in wanted.rows),
            price_minor=wanted.price_minor,
            currency=wanted.currency,
        ),
        idempotency_key=wanted.idempotency_key,
    )
    [event] = await show(call, [made])
    return event


async def update(call: Call, wanted: UpdateEvent) -> UpdatedEvent:
    """Change an event. Who booked is mailed if its start, zone or venue changes; a new price is for later bookings.

    CONFLICT: seats that are sold would go (`seats` names them), or the currency of what is sold would change.
    BAD_REQUEST: it has begun, or `issues` name the fields. FORBIDDEN: you are no organiser. NOT_FOUND: you have no such
    event.
    """
    edited = await call.services.own_events.update(
        organiser=await call.require_session(),
        event_id=wanted.event_id,
        changes=EventChanges(
            title=wanted.title,
            venue=wanted.venue,
            starts_at=None if wanted.starts_at is None else datetime.fromisoformat(wanted.starts_at),
            time_zone=wanted.time_zone,
            rows=None if wanted.rows is None else tuple(row.planned() for row in wanted.rows),
            price_minor=wanted.price_minor,
            currency=wanted.currency,
        ),
        idempotency_key=wanted.idempotency_key,
        correlation_id=call.correlation_id,
    )
    [event] = await show(call, [edited.event])
    return UpdatedEvent(**event.model_dump(), told_bookings=edited.told_bookings)


async def publish(call: Call, wanted: PublishEvent) -> Event:
    """Let everybody see and book it. Published already: the same answer again.

    BAD_REQUEST: its start has passed. FORBIDDEN: you are no organiser. NOT_FOUND: you have no such event.
    """
    published = await call.services.own_events.publish(
        organiser=await call.require_session(), event_id=wanted.event_id, idempotency_key=wanted.idempotency_key
    )
    [event] = await show(call, [published])
    return event


async def mine(call: Call, wanted: ListEvents) -> EventList:
    """Your events, drafts too, the one that begins last first. FORBIDDEN: you are no organiser."""
    organiser_id = require_organiser(await call.require_session())
    page = await events.of_organiser(
        call.services.database.pool, organiser_id=organiser_id, limit=wanted.limit, cursor=wanted.cursor
    )
    return EventList(events=await show(call, page.events), next_cursor=page.next_cursor)


async def event_sales(call: Call, wanted: EventId) -> Sales:
    """How your event sells. FORBIDDEN: you are no organiser. NOT_FOUND: you have no such event."""
    organiser_id = require_organiser(await call.require_session())
    return Sales.model_validate(
        await sales(call.services.database.pool, organiser_id=organiser_id, event_id=wanted.event_id)
    )


async def list_bookings(call: Call, wanted: ListEventBookings) -> EventBookings:
    """Who booked your event, the newest first, cancelled ones too.

    FORBIDDEN: you are no organiser. NOT_FOUND: you have no such event.
    """
    organiser_id = require_organiser(await call.require_session())
    page = await event_bookings(
        call.services.database.pool,
        organiser_id=organiser_id,
        event_id=wanted.event_id,
        search=(wanted.search or "").strip() or None,
        cursor=wanted.cursor,
        limit=wanted.limit,
    )
    return EventBookings.model_validate(page)


def add_to(registry: Registry[Call]) -> None:
    """Register this module's procedures."""
    registry.mutation("events.create", session=True)(create)
    registry.mutation("events.update", session=True)(update)
    registry.mutation("events.publish", session=True)(publish)
    registry.query("events.mine", session=True)(mine)
    registry.query("events.sales", session=True)(event_sales)
    registry.query("events.bookings", session=True)(list_bookings)
