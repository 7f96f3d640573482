"""Moving an event on a real PostgreSQL, while it is booked and cancelled: nobody is left with the old date."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from minitickets_api.queries.event_bookings import all_event_bookings
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.accounts import User
from minitickets_api.services.bookings import BookingCustomer, BookingDesk
from minitickets_api.services.own_events import EditedEvent, EventChanges, OwnEvents
from minitickets_contracts.messages import (
    BookingCancelled,
    BookingConfirmed,
    BookingMailRequested,
    EventMoved,
    PreviousSchedule,
    message_type,
)
from tests.fixtures.catalogue import add_customer, add_event, opened
from tests.fixtures.reply_dropper import Loss, reply_dropper
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

STARTS_AT = datetime(2027, 1, 1, 4, 0, tzinfo=UTC)  # New Year's Eve, 20:00, in Los Angeles
OLD, NEW = "2026-12-31T20:00:00-08:00", "2027-01-02T21:00:00-08:00"
NEW_LOCAL = datetime(2027, 1, 2, 21, 0)


class Stage:
    """A published event with seats A-1 to A-20, its organiser, a customer, and the desk."""

    def __init__(self, pool: Any, event_id: str, organiser: User, customer: BookingCustomer) -> None:
        self.pool = pool
        self.event_id = event_id
        self.organiser = organiser
        self.customer = customer
        self.wakes = 0
        self.desk = BookingDesk(pool=pool, on_commit=self._wake)
        self.own_events = OwnEvents(pool=pool, on_commit=self._wake)

    def _wake(self) -> None:
        self.wakes += 1

    async def book(self, *seats: str) -> str:
        view = await self.desk.create(
            customer=self.customer,
            event_id=self.event_id,
            seats=seats,
            idempotency_key=str(uuid.uuid4()),
            correlation_id="booking",
        )
        return view.booking_id

    async def cancel(self, booking_id: str) -> None:
        await self.desk.cancel(
            user_id=self.customer.user_id,
            booking_id=booking_id,
            idempotency_key=booking_id,
            correlation_id="cancelling",
        )

    async def resend(self, booking_id: str) -> str:
        customer = User(**vars(self.customer), is_organiser=False)
        return await self.desk.request_mail(
            user=customer, booking_id=booking_id, idempotency_key=str(uuid.uuid4()), correlation_id="resending"
        )

    async def move(self, key: str | None = None, **changes: Any) -> EditedEvent:
        return await self.own_events.update(
            organiser=self.organiser,
            event_id=self.event_id,
            changes=EventChanges(**(changes or {"starts_at": NEW_LOCAL})),
            idempotency_key=key or str(uuid.uuid4()),
            correlation_id="moving",
        )

    async def bodies(self, type_: str, booking_id: str | None = None) -> list[str]:
        """The bodies of one type, the oldest first."""
        rows = await self.pool.fetch(
            "select body from outbox where $1::uuid is null or booking_id = $1 order by created_at",
            UUID(booking_id) if booking_id else None,
        )
        return [row["body"] for row in rows if message_type(row["body"]) == type_]

    async def until_somebody_waits(self, count: int = 1) -> None:
        """Until ``count`` connections wait for a lock."""
        waiting = (
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
        async with asyncio.timeout(5):
            while await self.pool.fetchval(waiting) < count:  # noqa: ASYNC110 - the state is the database's
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def held(self, statement: str, *arguments: object) -> Any:
        """A transaction that has run ``statement`` and waits."""
        async with self.pool.acquire() as connection, connection.transaction():
            await connection.execute(statement, *arguments)
            yield connection


Scenario = Callable[[Stage], Awaitable[None]]


async def on_stage(pool: Any, scenario: Scenario, *, seats: int = 20) -> None:
    event_id = await add_event(pool, seats=[f"A-{n}" for n in range(1, seats + 1)], starts_at=STARTS_AT)
    row = await pool.fetchrow("select user_id, email, name from events join users on user_id = organiser_id")
    organiser = User(user_id=str(row["user_id"]), email=row["email"], name=row["name"], is_organiser=True)
    stage = Stage(pool, event_id, organiser, await add_customer(pool))
    await scenario(stage)
    await stage.desk.close()


def run(database: Database, scenario: Scenario, *, seats: int = 20) -> None:
    async def whole() -> None:
        async with opened(database) as pool:
            await on_stage(pool, scenario, seats=seats)

    asyncio.run(whole())


def test_each_live_booking_is_told_what_was_and_what_is_in_the_transaction_of_the_move(
    migrated_database: Database,
) -> None:
    async def scenario(stage: Stage) -> None:
        booked, gone = await stage.book("A-2", "A-1"), await stage.book("A-3")
        await stage.cancel(gone)
        wakes = stage.wakes
        edited = await stage.move(starts_at=NEW_LOCAL, venue="New Mill")

        assert edited.told_bookings == 1
        assert edited.event.starts_at == NEW
        assert stage.wakes == wakes + 1
        [body] = await stage.bodies("event.moved")
        message = EventMoved.from_json(body)
        assert message.booking_id == booked
        assert message.correlation_id == "moving"
        assert message.customer.email == stage.customer.email
        assert message.seats == ("A-2", "A-1")
        assert message.total_minor == 5_000
        assert (message.event.starts_at, message.event.venue, message.event.sequence) == (NEW, "New Mill", 1)
        assert message.previous == PreviousSchedule(starts_at=OLD, time_zone="America/Los_Angeles", venue="Town Hall")
        row = await stage.pool.fetchrow("select * from outbox where body = $1", body)
        assert (str(row["outbox_id"]), str(row["booking_id"]), row["correlation_id"]) == (
            message.message_id,
            booked,
            "moving",
        )
        transactions = await stage.pool.fetch(
            "select xmin::text from outbox where body = $1 union select xmin::text from events"
            " union select xmin::text from idempotency_keys where procedure = 'events.update'",
            body,
        )
        assert len(transactions) == 1

    run(migrated_database, scenario)


def test_what_is_booked_or_cancelled_after_a_move_carries_its_date_and_sequence(migrated_database: Database) -> None:
    async def scenario(stage: Stage) -> None:
        before = await stage.book("A-1")
        await stage.move()
        after = await stage.book("A-2")
        await stage.resend(before)
        await stage.cancel(before)

        first, second = [BookingConfirmed.from_json(body).event for body in await stage.bodies("booking.confirmed")]
        assert (first.starts_at, first.sequence) == (OLD, 0)
        assert (second.starts_at, second.sequence) == (NEW, 1)
        assert after == BookingConfirmed.from_json((await stage.bodies("booking.confirmed"))[1]).booking_id
        [again] = await stage.bodies("booking.mail-requested")
        resent = BookingMailRequested.from_json(again)
        assert (resent.event.starts_at, resent.event.sequence, resent.correlation_id) == (NEW, 1, "resending")
        [gone] = await stage.bodies("booking.cancelled")
        cancelled = BookingCancelled.from_json(gone)
        assert (cancelled.event.starts_at, cancelled.event.sequence, cancelled.correlation_id) == (NEW, 1, "cancelling")
        row = await stage.pool.fetchrow("select cancelled_at from bookings where booking_id = $1", UUID(before))
        assert datetime.fromisoformat(cancelled.cancelled_at) == row["cancelled_at"]

    run(migrated_database, scenario)


async def assert_nobody_has_only_the_old_date(stage: Stage) -> None:
    """Every live booking's newest message about a date has the event's own."""
    moved = {EventMoved.from_json(body).booking_id: body for body in await stage.bodies("event.moved")}
    rows = await stage.pool.fetch("select booking_id from bookings where cancelled_at is null")
    for booking_id in (str(row["booking_id"]) for row in rows):
        [confirmed] = await stage.bodies("booking.confirmed", booking_id)
        event = BookingConfirmed.from_json(confirmed).event
        # Told of the old date and of the move, or of the new date and of no move.
        expected = {(OLD, 0): True, (NEW, 1): False}[event.starts_at, event.sequence]
        assert (booking_id in moved) is expected, event


@pytest.mark.parametrize("first", ["booking", "move"])
def test_a_booking_and_a_move_that_wait_for_one_another_agree_on_the_date(
    first: str, migrated_database: Database
) -> None:
    async def scenario(stage: Stage) -> None:
        # Both wait for the event's row, in the order in which they came, and go on in that order.
        works: dict[str, Callable[[], Awaitable[object]]] = {
            "booking": lambda: stage.book("A-1", "A-2"),
            "move": stage.move,
        }
        order = [first, *(name for name in works if name != first)]
        lock = "select 1 from events where event_id = $1 for update"
        async with stage.held(lock, UUID(stage.event_id)):
            tasks = {}
            for count, name in enumerate(order, start=1):
                tasks[name] = asyncio.ensure_future(works[name]())
                await stage.until_somebody_waits(count)
        await asyncio.gather(*tasks.values())

        assert len(await stage.bodies("event.moved")) == (1 if first == "booking" else 0)
        await assert_nobody_has_only_the_old_date(stage)

    run(migrated_database, scenario)


def test_in_a_crowd_no_booking_is_left_with_the_old_date_alone(migrated_database: Database) -> None:
    async def scenario(stage: Stage) -> None:
        for round_ in range(5):
            booked = [asyncio.create_task(stage.book(f"A-{round_ * 16 + n}")) for n in range(1, 9)]
            await asyncio.sleep(0.003 * round_)
            if round_ == 2:
                moving = asyncio.create_task(stage.move())
            booked += [asyncio.create_task(stage.book(f"A-{round_ * 16 + n}")) for n in range(9, 17)]
            await asyncio.gather(*booked)
        edited = await moving
        assert edited.told_bookings == len(await stage.bodies("event.moved"))
        assert 32 <= edited.told_bookings <= 80
        await assert_nobody_has_only_the_old_date(stage)

    run(migrated_database, scenario, seats=80)


def test_a_booking_that_is_being_cancelled_is_waited_for_and_not_told_of_the_move(
    migrated_database: Database,
) -> None:
    async def scenario(stage: Stage) -> None:
        gone, stays = await stage.book("A-1"), await stage.book("A-2")
        # What a cancellation does, stopped before it commits.
        cancel = "update bookings set cancelled_at = now() where booking_id = $1"
        async with stage.held(cancel, UUID(gone)):
            moving = asyncio.create_task(stage.move())
            await stage.until_somebody_waits()
            assert not moving.done()
        await moving
        assert [EventMoved.from_json(body).booking_id for body in await stage.bodies("event.moved")] == [stays]

    run(migrated_database, scenario)


@pytest.mark.parametrize("work", ["cancel", "resend"])
def test_who_cancels_or_asks_for_a_mail_while_the_event_moves_is_told_the_new_date(
    work: str, migrated_database: Database
) -> None:
    async def scenario(stage: Stage) -> None:
        booking_id = await stage.book("A-1")
        moving = "select 1 from bookings where booking_id = $1 for share"
        async with stage.held(moving, UUID(booking_id)) as mover:
            await mover.execute(
                "update events set starts_at = $2, sequence = 1 where event_id = $1",
                UUID(stage.event_id),
                datetime.fromisoformat(NEW),
            )
            task = asyncio.create_task(stage.cancel(booking_id) if work == "cancel" else stage.resend(booking_id))
            await stage.until_somebody_waits()
        await task
        type_ = {"cancel": "booking.cancelled", "resend": "booking.mail-requested"}[work]
        [body] = await stage.bodies(type_)
        event = json.loads(body)["event"]
        assert (event["startsAt"], event["sequence"]) == (NEW, 1)

    run(migrated_database, scenario)


def test_moves_and_cancellations_and_bookings_at_once_end_without_a_deadlock(migrated_database: Database) -> None:
    async def scenario(stage: Stage) -> None:
        booked = [await stage.book(f"A-{n}") for n in range(1, 13)]
        async with asyncio.timeout(20):
            await asyncio.gather(
                *(stage.cancel(booking_id) for booking_id in booked[:6]),
                *(stage.resend(booking_id) for booking_id in booked[6:]),
                *(stage.move(starts_at=NEW_LOCAL + timedelta(hours=n)) for n in range(4)),
                *(stage.book(f"A-{n}") for n in range(13, 21)),
            )
        assert await stage.pool.fetchval("select sequence from events") == 4
        for booking_id in booked[:6]:
            bodies = await stage.bodies("booking.cancelled", booking_id)
            sequence = BookingCancelled.from_json(bodies[0]).event.sequence
            # Told of each move before the cancellation, and of none after it.
            told = [EventMoved.from_json(body).event.sequence for body in await stage.bodies("event.moved", booking_id)]
            assert sorted(told) == list(range(1, sequence + 1))
        for booking_id in booked[6:]:
            told = [EventMoved.from_json(body).event.sequence for body in await stage.bodies("event.moved", booking_id)]
            assert sorted(told) == [1, 2, 3, 4]

    run(migrated_database, scenario)


def test_a_seat_cannot_be_sold_while_its_row_is_being_taken_away(migrated_database: Database) -> None:
    from minitickets_api.services.seat_rows import SeatRow

    async def scenario(stage: Stage) -> None:
        lock = "select 1 from events where event_id = $1 for update"
        async with stage.held(lock, UUID(stage.event_id)):
            shrinking = asyncio.create_task(stage.move(rows=(SeatRow(label="A", seats=10),)))
            await stage.until_somebody_waits()
            booking = asyncio.create_task(stage.book("A-10", "A-11"))
            await stage.until_somebody_waits(2)
        await shrinking
        with pytest.raises(Refusal) as caught:
            await booking
        assert (caught.value.code, caught.value.details) == (Code.BAD_REQUEST, {"seats": ["A-11"]})
        assert await stage.pool.fetchval("select count(*) from booked_seats") == 0

    run(migrated_database, scenario)


@pytest.mark.parametrize("loss", [Loss.APPLIED, Loss.LATE, Loss.NEVER])
def test_a_lost_reply_to_the_commit_of_a_move_tells_each_booking_once(loss: Loss, migrated_database: Database) -> None:
    async def whole() -> None:
        async with (
            reply_dropper(upstream_port=migrated_database.port) as dropper,
            opened(migrated_database, port=dropper.port) as pool,
        ):

            async def scenario(stage: Stage) -> None:
                await stage.book("A-1")
                dropper.losses = [loss]
                edited = await stage.move()
                assert dropper.losses == []
                assert (edited.told_bookings, edited.event.starts_at) == (1, NEW)
                assert len(await stage.bodies("event.moved")) == 1
                assert await stage.pool.fetchval("select sequence from events") == 1

            await on_stage(pool, scenario)

    asyncio.run(whole())


def test_thousands_of_bookings_are_told_in_one_transaction_that_the_database_does_not_cut_off(
    migrated_database: Database,
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.pool.execute(
            "insert into bookings (booking_id, user_id, event_id, seats, total_minor, currency, correlation_id)"
            " select gen_random_uuid(), $1, $2, array['A-1'], 2500, 'USD', 'c' from generate_series(1, 5000)",
            UUID(stage.customer.user_id),
            UUID(stage.event_id),
        )
        edited = await stage.move()
        assert edited.told_bookings == 5000
        assert await stage.pool.fetchval("select count(distinct booking_id) from outbox") == 5000

    run(migrated_database, scenario)


def test_all_bookings_come_in_pieces_and_a_refusal_before_the_first(migrated_database: Database) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.pool.execute(
            "insert into bookings (booking_id, user_id, event_id, seats, total_minor, currency, correlation_id)"
            " select gen_random_uuid(), $1, $2, array['A-1'], 2500, 'USD', 'c' from generate_series(1, 250)",
            UUID(stage.customer.user_id),
            UUID(stage.event_id),
        )
        pieces = all_event_bookings(stage.pool, organiser_id=UUID(stage.organiser.user_id), event_id=stage.event_id)
        sizes = []
        seen: set[str] = set()
        async for piece in pieces:
            assert stage.pool.get_idle_size() == stage.pool.get_size()  # no connection is held meanwhile
            sizes.append(len(piece))
            seen.update(booking.booking_id for booking in piece)
        assert sizes == [100, 100, 50]
        assert len(seen) == 250

        somebodys = all_event_bookings(stage.pool, organiser_id=UUID(stage.customer.user_id), event_id=stage.event_id)
        with pytest.raises(Refusal) as caught:
            await anext(somebodys)
        assert caught.value.code is Code.NOT_FOUND

    run(migrated_database, scenario)
