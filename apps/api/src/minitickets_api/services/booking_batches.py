"""One transaction for all bookings of a batch: lock the events, look, decide, insert."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

import asyncpg

from minitickets_api.database import acquired, is_unavailable, unavailable, until_decided
from minitickets_api.queries.bookings import BookingView
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import idempotency
from minitickets_api.services.booking_decisions import (
    BookingRequest,
    Decisions,
    LockedEvent,
    NewBooking,
    Situation,
    decide,
)

PROCEDURE = "bookings.create"
_EVENTS_AT_A_TIME = 4
_ACCOUNT_IS_GONE = ("bookings_user_id_fkey", "idempotency_keys_user_id_fkey")

# Every statement here finds its rows by a primary key. On a table that was never analysed the planner may think
# otherwise, and a generic plan keeps its mistake while the table grows; so the other ways are closed.
BEGIN = """
begin;
set local enable_seqscan = off;
set local enable_hashjoin = off;
set local enable_mergejoin = off;
"""
BEGIN_IMPATIENTLY = f"{BEGIN}set local lock_timeout = '500ms';"

# Ordered, so that two processes with the same events in their batches never wait for one another in a circle.
# NO KEY UPDATE, so that foreign keys to the event can still be checked. clock_timestamp, because waiting takes time.
LOCK_EVENTS = """
select event_id, title, venue, starts_at, time_zone, price_minor, currency, published_at is not null as is_published,
    sequence, clock_timestamp() as locked_at
from events where event_id = any($1::uuid[]) order by event_id for no key update
"""

# A statement of its own after the lock: one that waited for it would see the seats as they were before.
FIND_SEATS = """
select s.event_id, s.seat, b.seat is not null as is_taken
from unnest($1::uuid[], $2::text[]) as wanted(event_id, seat)
join seats s on s.event_id = wanted.event_id and s.seat = wanted.seat
left join booked_seats b on b.event_id = s.event_id and b.seat = s.seat
"""

# An array of arrays would come out flat, so a booking's seats travel joined: no seat's name has a comma.
INSERT_BOOKINGS = """
with batch as (
    select booking_id, user_id, event_id, string_to_array(seats, ',') as seats, total_minor, currency,
        correlation_id, booked_at, message_id, body, key, input_hash, result
    from unnest(
        $1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::text[],
        $7::text[], $8::timestamptz[], $9::uuid[], $10::text[], $11::text[], $12::bytea[], $13::text[]
    ) as b(
        booking_id, user_id, event_id, seats, total_minor, currency,
        correlation_id, booked_at, message_id, body, key, input_hash, result
    )
), new_bookings as (
    insert into bookings (booking_id, user_id, event_id, seats, total_minor, currency, correlation_id, created_at)
    select booking_id, user_id, event_id, seats, total_minor, currency, correlation_id, booked_at from batch
), new_seats as (
    insert into booked_seats (event_id, seat, booking_id)
    select event_id, unnest(seats), booking_id from batch
), new_keys as (
    insert into idempotency_keys (user_id, procedure, key, input_hash, result)
    select user_id, $14, key, input_hash, result::jsonb from batch
)
insert into outbox (outbox_id, booking_id, body, correlation_id)
select message_id, booking_id, body, correlation_id from batch
"""


class BookingBatches:
    """Commits batches of booking requests. ``on_commit`` is called after each that booked something."""

    def __init__(self, *, pool: asyncpg.Pool, on_commit: Callable[[], None]) -> None:
        self._pool = pool
        self._on_commit = on_commit

    async def run(self, requests: Sequence[BookingRequest], *, begin: str = BEGIN) -> list[BookingView | Exception]:
        """The outcome of each request, in order. A database error is the outcome of the request that caused it, not of
        its neighbours: they are tried again without it. ``begin`` opens each transaction."""
        try:
            return list(await self._decided(requests, begin))
        except asyncpg.LockNotAvailableError as error:
            return await self._run_by_event(requests, error)
        except Exception as error:  # noqa: BLE001 - each waiting request is told
            if is_unavailable(error):
                return [unavailable(error) for _ in requests]
            if len(requests) == 1:
                return [_as_outcome(error)]
        middle = len(requests) // 2
        return [*await self.run(requests[:middle], begin=begin), *await self.run(requests[middle:], begin=begin)]

    async def _decided(self, requests: Sequence[BookingRequest], begin: str) -> Sequence[BookingView | Exception]:
        try:
            return await until_decided(lambda: self._commit(requests, begin))
        except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError):
            # A key was used for two events at once, or someone wrote without the event's lock: now that shows.
            return await until_decided(lambda: self._commit(requests, begin))

    async def _run_by_event(
        self, requests: Sequence[BookingRequest], error: Exception
    ) -> list[BookingView | Exception]:
        """Somebody else holds one of the events, and all have waited for it: each on its own now, and not for long."""
        positions: defaultdict[UUID, list[int]] = defaultdict(list)
        for position, request in enumerate(requests):
            positions[request.event_id].append(position)
        if len(positions) == 1:
            return [unavailable(error) for _ in requests]
        slots = asyncio.Semaphore(_EVENTS_AT_A_TIME)

        async def run_event(of_event: Sequence[int]) -> list[BookingView | Exception]:
            async with slots:
                return await self.run([requests[position] for position in of_event], begin=BEGIN_IMPATIENTLY)

        outcomes: dict[int, BookingView | Exception] = {}
        results = await asyncio.gather(*(run_event(of_event) for of_event in positions.values()))
        for of_event, result in zip(positions.values(), results, strict=True):
            outcomes.update(zip(of_event, result, strict=True))
        return [outcomes[position] for position in range(len(requests))]

    async def _commit(self, requests: Sequence[BookingRequest], begin: str) -> Sequence[BookingView | Exception]:
        async with acquired(self._pool) as connection, _transaction(connection, begin):
            decisions = await _decide_under_locks(connection, requests)
            if decisions.new:
                await _insert(connection, decisions.new)
        if decisions.new:
            self._on_commit()
        return decisions.outcomes


@asynccontextmanager
async def _transaction(connection: Any, begin: str) -> AsyncIterator[None]:
    """A transaction that ``begin`` opens with its settings in one round trip, which asyncpg's own cannot."""
    await connection.execute(begin)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # the error that led here says more; the pool rolls back what is still open
            await connection.execute("rollback", timeout=2)
        raise
    await connection.execute("commit")


async def _decide_under_locks(connection: Any, requests: Sequence[BookingRequest]) -> Decisions:
    event_ids = sorted({request.event_id for request in requests})
    events = {
        row["event_id"]: LockedEvent(**dict(row.items())) for row in await connection.fetch(LOCK_EVENTS, event_ids)
    }
    remembered = await idempotency.find(
        connection, procedure=PROCEDURE, keys=sorted({request.key for request in requests})
    )
    wanted = sorted({(request.event_id, seat) for request in requests for seat in request.seats})
    rows = await connection.fetch(FIND_SEATS, [event_id for event_id, _ in wanted], [seat for _, seat in wanted])
    seats = {(row["event_id"], row["seat"]): row["is_taken"] for row in rows}
    return decide(requests, Situation(events=events, seats=seats, remembered=remembered))


async def _insert(connection: Any, new: Sequence[NewBooking]) -> None:
    await connection.execute(
        INSERT_BOOKINGS,
        [booking.request.booking_id for booking in new],
        [booking.request.user_id for booking in new],
        [booking.request.event_id for booking in new],
        [",".join(booking.request.seats) for booking in new],
        [booking.view.total_minor for booking in new],
        [booking.view.currency for booking in new],
        [booking.request.correlation_id for booking in new],
        [booking.booked_at for booking in new],
        [booking.request.message_id for booking in new],
        [booking.body for booking in new],
        [booking.request.idempotency_key for booking in new],
        [booking.request.input_hash for booking in new],
        [booking.result for booking in new],
        PROCEDURE,
    )


def _as_outcome(error: Exception) -> Exception:
    if isinstance(error, asyncpg.ForeignKeyViolationError) and error.constraint_name in _ACCOUNT_IS_GONE:
        return Refusal(Code.UNAUTHORIZED, "This account no longer exists. Log in again.")
    return error
