"""An organiser's own events: made, edited, published. What is sold stays sold, and who booked is told of a move."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from minitickets_api.database import transact
from minitickets_api.organisers import no_such_event, require_organiser
from minitickets_api.queries.events import EVENT_SUMMARY, EventSummary, event_summary
from minitickets_api.refusals import Code, Refusal, wrong_field
from minitickets_api.services import idempotency
from minitickets_api.services.accounts import User
from minitickets_api.services.event_moves import announce_move
from minitickets_api.services.event_seats import put_seats, replace_seats
from minitickets_api.services.idempotency import Memory
from minitickets_api.services.seat_rows import SeatRow, seats_of
from minitickets_api.venue_time import local_start, start_moment, zone
from minitickets_contracts.messages import PreviousSchedule

LATEST_START = timedelta(days=3653)  # ten years: a slip in the year is found before anybody buys a ticket
# Seconds since then are the numbers that moves count on from after a rewind: no event moves once a second, so none was
# given out before. The contract's MAX_SEQUENCE, 10^9, lasts until 2057.
_REWINDS_COUNT_FROM = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class NewEvent:
    """``starts_at`` is the venue's local time; of an hour that comes twice the first, unless it carries its offset."""

    title: str
    venue: str
    starts_at: datetime
    time_zone: str
    rows: tuple[SeatRow, ...]
    price_minor: int
    currency: str


@dataclass(frozen=True, kw_only=True)
class EventChanges:
    """What is None stays as it is. A zone without a start keeps the time on the door."""

    title: str | None = None
    venue: str | None = None
    starts_at: datetime | None = None
    time_zone: str | None = None
    rows: tuple[SeatRow, ...] | None = None
    price_minor: int | None = None
    currency: str | None = None


@dataclass(frozen=True, kw_only=True)
class EditedEvent:
    """``told_bookings`` is how many bookings a message about the move is on its way to."""

    event: EventSummary
    told_bookings: int


class OwnEvents:
    """Events of the organiser who asks. ``on_commit`` is called when a transaction left messages in the outbox.

    ``rewound_at`` is when the database last went back to an older snapshot. Mails, tickets and calendars may know of
    moves that it does not, and would take the number of one of those for old news: moves count on from that moment.

    Everything raises Refusal, and has then changed nothing: FORBIDDEN for who is no organiser, NOT_FOUND for an event
    that is not theirs, BAD_REQUEST for what cannot be (its ``issues`` name the fields), CONFLICT for what contradicts
    bookings and for a key that was used otherwise, SERVICE_UNAVAILABLE when it is undecided.
    """

    def __init__(
        self, *, pool: asyncpg.Pool, on_commit: Callable[[], None], rewound_at: datetime | None = None
    ) -> None:
        self._pool = pool
        self._on_commit = on_commit
        self._moves_before = (
            0 if rewound_at is None else max(0, int((rewound_at - _REWINDS_COUNT_FROM).total_seconds()))
        )

    async def create(self, *, organiser: User, event: NewEvent, idempotency_key: str) -> EventSummary:
        """A draft, which its organiser alone sees."""
        organiser_id = require_organiser(organiser)
        memory = _memory("events.create", organiser_id, idempotency_key, asdict(event))

        async def work(database: Any) -> EventSummary:
            await memory.lock(database)
            if (known := await memory.recall(database)) is not None:
                return EventSummary.from_document(known)
            starts_at = _moment(event.starts_at, event.time_zone)
            _require_ahead(starts_at)
            event_id = uuid4()
            await database.execute(
                _INSERT_EVENT,
                event_id,
                organiser_id,
                event.title,
                event.venue,
                starts_at,
                event.time_zone,
                event.price_minor,
                event.currency,
            )
            await put_seats(database, event_id, seats_of(event.rows))
            made = await _summary(database, event_id)
            await memory.keep(database, made.to_document())
            return made

        return await transact(self._pool, work)

    async def publish(self, *, organiser: User, event_id: str, idempotency_key: str) -> EventSummary:
        """The event, which everybody sees from now on; published before: the same answer again."""
        organiser_id = require_organiser(organiser)
        memory = _memory("events.publish", organiser_id, idempotency_key, {"eventId": event_id})

        async def work(database: Any) -> EventSummary:
            await memory.lock(database)
            before = await _lock(database, event_id, organiser_id)
            if (known := await memory.recall(database)) is not None:
                return EventSummary.from_document(known)
            if not before.is_published:
                if before.starts_at <= datetime.now(UTC):
                    raise wrong_field("startsAt", "this event's start has passed; set another before you publish it")
                await database.execute(
                    "update events set published_at = now(), updated_at = now() where event_id = $1", before.event_id
                )
            published = await _summary(database, before.event_id)
            await memory.keep(database, published.to_document())
            return published

        return await transact(self._pool, work)

    async def update(
        self, *, organiser: User, event_id: str, changes: EventChanges, idempotency_key: str, correlation_id: str
    ) -> EditedEvent:
        """The event as changed. Another start, zone or venue of a published one is a move: whoever booked is told.

        A new price holds for later bookings. CONFLICT: a seat that is sold would go (``seats`` names them), or the
        currency of what is sold would change. BAD_REQUEST: it has begun.
        """
        organiser_id = require_organiser(organiser)
        input_ = {"eventId": event_id, **asdict(changes)}
        memory = _memory("events.update", organiser_id, idempotency_key, input_)

        async def work(database: Any) -> EditedEvent:
            await memory.lock(database)
            # The lock that bookings take: until this commits none is made, and afterwards each sees the new date.
            before = await _lock(database, event_id, organiser_id)
            if (known := await memory.recall(database)) is not None:
                return EditedEvent(
                    event=EventSummary.from_document(known["event"]), told_bookings=known["toldBookings"]
                )
            told = await _change(database, before, changes, correlation_id, moves_before=self._moves_before)
            edited = EditedEvent(event=await _summary(database, before.event_id), told_bookings=told)
            await memory.keep(database, {"event": edited.event.to_document(), "toldBookings": told})
            return edited

        edited = await transact(self._pool, work)
        if edited.told_bookings:
            self._on_commit()
        return edited


@dataclass(frozen=True, kw_only=True)
class _Locked:
    event_id: UUID
    title: str
    venue: str
    starts_at: datetime
    time_zone: str
    price_minor: int
    currency: str
    is_published: bool
    locked_at: datetime


async def _lock(database: Any, event_id: str, organiser_id: UUID) -> _Locked:
    row = await database.fetchrow(_LOCK_EVENT, event_id, organiser_id)
    if row is None:
        raise no_such_event()
    return _Locked(**dict(row.items()))


async def _change(
    database: Any, before: _Locked, changes: EventChanges, correlation_id: str, *, moves_before: int
) -> int:
    """How many bookings are told."""
    if before.is_published and before.starts_at <= before.locked_at:
        raise Refusal(Code.BAD_REQUEST, "This event has begun, so it can no longer be changed.")
    time_zone = changes.time_zone or before.time_zone
    starts_at = _changed_start(before, changes.starts_at, time_zone)
    if starts_at != before.starts_at:
        _require_ahead(starts_at)
    venue = changes.venue or before.venue
    currency = changes.currency or before.currency
    if currency != before.currency and await database.fetchval(_IS_BOOKED, before.event_id):
        problem = f"cannot change while seats are sold in {before.currency}"
        raise wrong_field("currency", problem, code=Code.CONFLICT)
    is_moved = (starts_at, time_zone, venue) != (before.starts_at, before.time_zone, before.venue)
    await database.execute(
        _UPDATE_EVENT,
        before.event_id,
        changes.title or before.title,
        venue,
        starts_at,
        time_zone,
        before.price_minor if changes.price_minor is None else changes.price_minor,
        currency,
        is_moved and before.is_published,
        moves_before,
    )
    if changes.rows is not None:
        await replace_seats(database, before.event_id, seats_of(changes.rows))
    if not (is_moved and before.is_published):
        return 0
    previous = PreviousSchedule(
        starts_at=local_start(before.starts_at, before.time_zone), time_zone=before.time_zone, venue=before.venue
    )
    return await announce_move(
        database,
        event_id=before.event_id,
        previous=previous,
        moved_at=before.locked_at,
        correlation_id=correlation_id,
    )


def _changed_start(before: _Locked, wanted: datetime | None, time_zone: str) -> datetime:
    on_the_door = before.starts_at.astimezone(zone(before.time_zone)).replace(tzinfo=None)
    # What a form shows and sends back must not move it, be it the second of an hour that comes twice.
    if time_zone == before.time_zone and wanted in (None, on_the_door):
        return before.starts_at
    return _moment(wanted or on_the_door, time_zone)


def _moment(local: datetime, time_zone: str) -> datetime:
    try:
        return start_moment(local, time_zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        problem = str(error) if isinstance(error, ValueError) else "is beyond the calendar"
        raise wrong_field("startsAt", problem) from None


def _require_ahead(starts_at: datetime) -> None:
    now = datetime.now(UTC)
    if starts_at <= now:
        raise wrong_field("startsAt", "must lie ahead")
    if starts_at > now + LATEST_START:
        raise wrong_field("startsAt", "must be within ten years")


async def _summary(database: Any, event_id: UUID) -> EventSummary:
    return event_summary(await database.fetchrow(f"{EVENT_SUMMARY} where e.event_id = $1", event_id))


def _memory(procedure: str, organiser_id: UUID, key: str, input_: dict[str, Any]) -> Memory:
    moment = input_.get("starts_at")
    comparable = {**input_, "starts_at": None if moment is None else moment.isoformat()}
    return Memory(
        procedure=procedure,
        user_id=organiser_id,
        key=idempotency.checked_key(key),
        input_hash=idempotency.hash_input(comparable),
    )


_INSERT_EVENT = """
insert into events (event_id, organiser_id, title, venue, starts_at, time_zone, price_minor, currency)
values ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_LOCK_EVENT = """
select event_id, title, venue, starts_at, time_zone, price_minor, currency, published_at is not null as is_published,
    clock_timestamp() as locked_at
from events where event_id = $1 and organiser_id = $2 for no key update
"""
_UPDATE_EVENT = """
update events set title = $2, venue = $3, starts_at = $4, time_zone = $5, price_minor = $6, currency = $7,
    sequence = case when $8 then greatest(sequence, $9::integer) + 1 else sequence end, updated_at = now()
where event_id = $1
"""
_IS_BOOKED = "select exists (select from bookings where event_id = $1 and cancelled_at is null)"
