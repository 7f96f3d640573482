"""Many bookings at once on a real PostgreSQL: what one batch owes to each of its requests."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import asyncpg
import pytest

from local.processes import free_port
from local.servers.postgres import PostgresServer
from minitickets_api.database import connection, connection_is_lost
from minitickets_api.queries.bookings import BookingView
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import booking_batches, idempotency
from minitickets_api.services.bookings import BookingCustomer, BookingDesk
from tests.fixtures.catalogue import add_customer, add_event, opened
from tests.fixtures.reply_dropper import Loss, reply_dropper
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

SEATS = [f"{row}-{number}" for row in "ABCDEFGH" for number in range(1, 17)]


def book(
    desk: BookingDesk,
    customer: BookingCustomer,
    event_id: str,
    *seats: str,
    key: str | None = None,
    correlation_id: str = "correlation",
) -> Coroutine[Any, Any, BookingView]:
    return desk.create(
        customer=customer,
        event_id=event_id,
        seats=seats,
        idempotency_key=key or str(uuid.uuid4()),
        correlation_id=correlation_id,
    )


async def together(bookings: Sequence[Awaitable[BookingView]]) -> list[BookingView | BaseException]:
    return list(await asyncio.gather(*bookings, return_exceptions=True))


def codes(outcomes: Sequence[BookingView | BaseException]) -> list[str]:
    """``booked``, a refusal's code, or the name of another error."""
    return [
        "booked"
        if isinstance(outcome, BookingView)
        else outcome.code.name
        if isinstance(outcome, Refusal)
        else type(outcome).__name__
        for outcome in outcomes
    ]


async def transactions(pool: Any) -> int:
    """How many transactions made the bookings that there are: each row knows the one that wrote it."""
    count: int = await pool.fetchval("select count(distinct xmin::text) from bookings")
    return count


def run(database: Database, scenario: Callable[[Any, BookingDesk], Awaitable[None]]) -> None:
    async def body() -> None:
        async with opened(database) as pool:
            desk = BookingDesk(pool=pool, on_commit=lambda: None)
            await scenario(pool, desk)
            await desk.close()

    asyncio.run(body())


def test_64_bookings_at_once_take_at_most_8_transactions(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        outcomes = await together([book(desk, customer, event_id, seat) for seat in SEATS[:64]])
        assert codes(outcomes) == ["booked"] * 64
        assert await transactions(pool) <= 8
        assert await pool.fetchval("select count(distinct seat) from booked_seats") == 64
        assert await pool.fetchval("select count(*) from outbox") == 64

    run(migrated_database, scenario)


def test_while_one_batch_commits_the_next_collects(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        pending = []
        for seat in SEATS[:64]:
            pending.append(asyncio.create_task(book(desk, customer, event_id, seat)))
            await asyncio.sleep(0)  # each arrives in a turn of the loop of its own
        outcomes = await together(pending)
        assert codes(outcomes) == ["booked"] * 64
        assert 2 <= await transactions(pool) <= 8

    run(migrated_database, scenario)


def test_one_with_a_bad_seat_fails_alone(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        wanted = [*SEATS[:31], "Z-99", *SEATS[31:63]]
        outcomes = await together([book(desk, customer, event_id, seat) for seat in wanted])
        assert codes(outcomes) == ["booked"] * 31 + ["BAD_REQUEST"] + ["booked"] * 32
        assert await transactions(pool) <= 8

    run(migrated_database, scenario)


def test_of_twenty_bookings_of_one_seat_one_wins(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id = await add_event(pool, seats=SEATS)
        customers = [await add_customer(pool) for _ in range(20)]
        outcomes = await together([book(desk, customer, event_id, "A-1") for customer in customers])
        assert sorted(codes(outcomes)) == ["CONFLICT"] * 19 + ["booked"]
        refusals = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
        assert all(refusal.details == {"seats": ["A-1"]} for refusal in refusals)
        assert await pool.fetchval("select count(*) from outbox") == 1
        assert await pool.fetchval("select count(*) from idempotency_keys") == 1

    run(migrated_database, scenario)


def test_a_booking_that_lost_a_seat_to_a_refused_batch_mate_gets_it(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        await book(desk, customer, event_id, "A-2")
        outcomes = await together(
            [
                book(desk, customer, event_id, "A-1", "A-2"),  # refused, so A-1 stays free
                book(desk, customer, event_id, "A-1", "A-3"),
                book(desk, customer, event_id, "A-3"),
            ]
        )
        assert codes(outcomes) == ["CONFLICT", "booked", "CONFLICT"]

    run(migrated_database, scenario)


def test_a_cancelled_request_cancels_only_itself(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        requests = [asyncio.create_task(book(desk, customer, event_id, seat)) for seat in SEATS[:10]]
        await asyncio.sleep(0)
        requests[4].cancel()
        outcomes = await together(requests)
        assert codes(outcomes) == ["booked"] * 4 + ["CancelledError"] + ["booked"] * 5
        assert await pool.fetchval("select count(*) from bookings where $1 = any(seats)", SEATS[4]) == 0

    run(migrated_database, scenario)


def test_a_request_cancelled_while_its_batch_commits_cancels_only_itself(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        async with pool.acquire() as blocker, blocker.transaction():
            await blocker.execute("select 1 from events where event_id = $1 for update", uuid.UUID(event_id))
            requests = [asyncio.create_task(book(desk, customer, event_id, seat, key=seat)) for seat in SEATS[:6]]
            await until_blocked(pool, 1)
            requests[2].cancel()
        outcomes = await together(requests)
        assert codes(outcomes) == ["booked"] * 2 + ["CancelledError"] + ["booked"] * 3
        # Its fate is the batch's; whoever asks again with the key learns it.
        assert (await book(desk, customer, event_id, SEATS[2], key=SEATS[2])).seats == (SEATS[2],)
        assert await pool.fetchval("select count(*) from bookings") == 6

    run(migrated_database, scenario)


_BLOCKED = """
select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
"""


async def until_blocked(pool: Any, sessions: int) -> None:
    """Until ``sessions`` of this database wait for a lock."""
    async with asyncio.timeout(5):
        while await pool.fetchval(_BLOCKED) < sessions:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)


def test_after_a_thousand_cancelled_requests_the_desk_works_on(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        for round_ in range(10):
            requests = [asyncio.create_task(book(desk, customer, event_id, "H-16")) for _ in range(100)]
            for _ in range(round_):
                await asyncio.sleep(0.001)
            for request in requests:
                request.cancel()
            await together(requests)
        assert (await book(desk, customer, event_id, "A-1")).status == "confirmed"
        async with asyncio.timeout(5):
            held = [await pool.acquire() for _ in range(pool.get_max_size())]
        for acquired in held:
            await pool.release(acquired)

    run(migrated_database, scenario)


def test_a_database_error_fails_only_the_booking_that_causes_it(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        await pool.execute(
            """
            create function poison() returns trigger language plpgsql as $$
            begin
                if new.correlation_id = 'poison' then raise exception 'poisoned'; end if;
                return new;
            end $$;
            create trigger poison before insert on bookings for each row execute function poison();
            """
        )
        outcomes = await together(
            [
                book(desk, customer, event_id, seat, correlation_id="poison" if seat == "B-5" else "sound")
                for seat in SEATS[:64]
            ]
        )
        expected = ["RaiseError" if seat == "B-5" else "booked" for seat in SEATS[:64]]
        assert codes(outcomes) == expected
        assert await pool.fetchval("select count(*) from outbox") == 63

    run(migrated_database, scenario)


def test_an_event_that_no_message_can_describe_fails_alone(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        customer = await add_customer(pool)
        sound, broken = await add_event(pool, seats=SEATS), await add_event(pool, seats=SEATS, title="a\nb")
        outcomes = await together(
            [
                book(desk, customer, sound, "A-1"),
                book(desk, customer, broken, "A-1"),
                book(desk, customer, sound, "A-2"),
            ]
        )
        assert codes(outcomes) == ["booked", "ContractError", "booked"]
        assert await pool.fetchval("select count(*) from bookings") == 2

    run(migrated_database, scenario)


def test_bookings_of_several_events_share_a_transaction(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        customer = await add_customer(pool)
        events = [await add_event(pool, seats=SEATS) for _ in range(8)]
        outcomes = await together([book(desk, customer, event, seat) for seat in SEATS[:4] for event in events])
        assert codes(outcomes) == ["booked"] * 32
        assert await transactions(pool) == 1

    run(migrated_database, scenario)


def test_two_processes_lock_the_same_events_in_the_same_order(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        customer = await add_customer(pool)
        events = [await add_event(pool, seats=SEATS) for _ in range(6)]
        other = BookingDesk(pool=pool, on_commit=lambda: None)
        for seat, other_seat in zip(SEATS[:20], SEATS[20:40], strict=True):
            outcomes = await together(
                [
                    *(book(desk, customer, event, seat) for event in events),
                    *(book(other, customer, event, other_seat) for event in reversed(events)),
                ]
            )
            assert codes(outcomes) == ["booked"] * 12
        await other.close()

    run(migrated_database, scenario)


def test_events_are_locked_in_the_order_of_their_ids(
    postgres_server: PostgresServer, migrated_database: Database
) -> None:
    plan = planned(postgres_server, migrated_database, booking_batches.LOCK_EVENTS).splitlines()
    assert plan[0].startswith("LockRows")
    assert any("Sort Key: event_id" in line or "Index Scan using events_pkey" in line for line in plan)


def planned(server: PostgresServer, database: Database, statement: str) -> str:
    """The plan of ``statement`` for any arguments, in a booking's transaction."""
    return server.run_sql(
        f"{booking_batches.BEGIN} explain (generic_plan, costs off) {statement}; rollback", database=database.name
    )


def test_one_locked_event_does_not_hold_up_the_others_of_its_batch_for_long(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        customer = await add_customer(pool)
        stuck, free = await add_event(pool, seats=SEATS), await add_event(pool, seats=SEATS)
        async with pool.acquire() as blocker, blocker.transaction():
            await blocker.execute("set local idle_in_transaction_session_timeout = 0")
            await blocker.execute("select 1 from events where event_id = $1 for update", uuid.UUID(stuck))
            of_stuck = asyncio.create_task(book(desk, customer, stuck, "A-1"))
            of_free = asyncio.create_task(book(desk, customer, free, "A-1"))
            await until_blocked(pool, 1)
            # What comes while the batch is stuck shares nothing with it.
            third = await add_event(pool, seats=SEATS)
            async with asyncio.timeout(2):
                assert (await book(desk, customer, third, "A-1")).status == "confirmed"
            async with asyncio.timeout(9):
                assert (await of_free).status == "confirmed"
            assert codes(await together([of_stuck])) == ["SERVICE_UNAVAILABLE"]
        assert (await book(desk, customer, stuck, "A-1")).status == "confirmed"

    run(migrated_database, scenario)


def test_one_key_used_many_times_at_once_is_one_booking(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        other = BookingDesk(pool=pool, on_commit=lambda: None)
        outcomes = await together(
            [book(each, customer, event_id, "A-1", key="k") for each in (desk, other) for _ in range(10)]
        )
        assert codes(outcomes) == ["booked"] * 20
        assert len({outcome.booking_id for outcome in outcomes if isinstance(outcome, BookingView)}) == 1
        assert await pool.fetchval("select count(*) from outbox") == 1
        await other.close()

    run(migrated_database, scenario)


def test_one_key_used_for_two_events_at_once_is_one_booking_and_a_conflict(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        customer = await add_customer(pool)
        events = [await add_event(pool, seats=SEATS) for _ in range(2)]
        other = BookingDesk(pool=pool, on_commit=lambda: None)
        for number in range(10):
            outcomes = await together(
                [
                    book(desk, customer, events[0], SEATS[number], key=f"k{number}"),
                    book(other, customer, events[1], SEATS[number], key=f"k{number}"),
                ]
            )
            assert sorted(codes(outcomes)) == ["CONFLICT", "booked"]
        assert await pool.fetchval("select count(*) from bookings") == 10
        await other.close()

    run(migrated_database, scenario)


UNLOCKED = booking_batches.LOCK_EVENTS.replace("for no key update", "")


@pytest.mark.parametrize(
    ("lock", "is_unique", "sold"),
    [(True, True, 1), (True, False, 1), (False, True, 1), (False, False, 2)],
    ids=["as it is", "without the unique seat", "without the lock", "without both: oversold"],
)
def test_a_seat_is_sold_once_by_the_lock_and_by_its_uniqueness(
    migrated_database: Database, monkeypatch: pytest.MonkeyPatch, lock: bool, is_unique: bool, sold: int
) -> None:
    if not lock:
        assert booking_batches.LOCK_EVENTS != UNLOCKED
        monkeypatch.setattr(booking_batches, "LOCK_EVENTS", UNLOCKED)

    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        if not is_unique:
            await pool.execute("alter table booked_seats drop constraint booked_seats_pkey")
        # Whoever has looked takes a while to write, so that the other looks meanwhile.
        await pool.execute(
            """
            create function dawdle() returns trigger language plpgsql as $$
            begin perform pg_sleep(0.3); return new; end $$;
            create trigger dawdle before insert on booked_seats for each row execute function dawdle();
            """
        )
        other = BookingDesk(pool=pool, on_commit=lambda: None)
        outcomes = await together([book(each, customer, event_id, "A-1") for each in (desk, other)])
        assert codes(outcomes).count("booked") == sold
        assert codes(outcomes).count("CONFLICT") == 2 - sold
        assert await pool.fetchval("select count(*) from booked_seats") == sold
        await other.close()

    run(migrated_database, scenario)


@pytest.mark.parametrize("loss", list(Loss))
def test_when_the_reply_to_a_commit_is_lost_each_booking_is_settled(migrated_database: Database, loss: Loss) -> None:
    async def body() -> None:
        async with (
            reply_dropper(upstream_port=migrated_database.port) as dropper,
            opened(migrated_database) as direct,
            opened(migrated_database, port=dropper.port) as pool,
        ):
            event_id, customer = await add_event(direct, seats=SEATS), await add_customer(direct)
            desk = BookingDesk(pool=pool, on_commit=lambda: None)
            dropper.losses = [loss]
            outcomes = await together([book(desk, customer, event_id, seat) for seat in SEATS[:20]])
            assert codes(outcomes) == ["booked"] * 20
            assert dropper.losses == []
            ids = {str(row["booking_id"]) for row in await direct.fetch("select booking_id from bookings")}
            assert ids == {outcome.booking_id for outcome in outcomes if isinstance(outcome, BookingView)}
            assert await direct.fetchval("select count(*) from outbox") == 20
            await desk.close()

    asyncio.run(body())


def test_what_stays_undecided_is_told_so_and_the_same_key_tells_its_fate(migrated_database: Database) -> None:
    async def body() -> None:
        async with (
            reply_dropper(upstream_port=migrated_database.port) as dropper,
            opened(migrated_database) as direct,
            opened(migrated_database, port=dropper.port) as pool,
        ):
            event_id, customer = await add_event(direct, seats=SEATS), await add_customer(direct)
            desk = BookingDesk(pool=pool, on_commit=lambda: None)
            dropper.losses = [Loss.APPLIED] * 3
            with pytest.raises(Refusal, match="same idempotency key") as caught:
                await book(desk, customer, event_id, "A-1", key="k")
            assert caught.value.code is Code.SERVICE_UNAVAILABLE
            view = await book(desk, customer, event_id, "A-1", key="k")
            assert view.seats == ("A-1",)
            assert await direct.fetchval("select count(*) from bookings") == 1
            await desk.close()

    asyncio.run(body())


def test_a_cancellation_whose_reply_is_lost_is_settled(migrated_database: Database) -> None:
    async def body() -> None:
        async with (
            reply_dropper(upstream_port=migrated_database.port) as dropper,
            opened(migrated_database) as direct,
            opened(migrated_database, port=dropper.port) as pool,
        ):
            event_id, customer = await add_event(direct, seats=SEATS), await add_customer(direct)
            desk = BookingDesk(pool=pool, on_commit=lambda: None)
            view = await book(desk, customer, event_id, "A-1")
            dropper.losses = [Loss.APPLIED]
            cancelled = await desk.cancel(
                user_id=customer.user_id, booking_id=view.booking_id, idempotency_key="cancel", correlation_id="c"
            )
            assert cancelled.status == "cancelled"
            assert dropper.losses == []
            await desk.close()

    asyncio.run(body())


def test_a_read_only_server_is_unavailable_and_recovers(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        name = await pool.fetchval("select current_database()")
        await pool.execute(f'alter database "{name}" set default_transaction_read_only = on')
        await pool.expire_connections()
        assert codes(await together([book(desk, customer, event_id, "A-1")])) == ["SERVICE_UNAVAILABLE"]
        async with pool.acquire() as repair:
            await repair.execute("set default_transaction_read_only = off")
            await repair.execute(f'alter database "{name}" reset default_transaction_read_only')
            await repair.execute("reset default_transaction_read_only")
        await pool.expire_connections()
        assert codes(await together([book(desk, customer, event_id, "A-1")])) == ["booked"]

    run(migrated_database, scenario)


def test_a_severed_connection_costs_no_booking(migrated_database: Database) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
        await book(desk, customer, event_id, "A-1")
        async with connection(pool) as killer:
            for _ in range(3):
                await killer.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and pid <> pg_backend_pid()"
                )
                outcomes = await together([book(desk, customer, event_id, seat) for seat in SEATS[1:4]])
                assert codes(outcomes) in (["booked"] * 3, ["CONFLICT"] * 3)
        assert await pool.fetchval("select count(*) from booked_seats") == 4

    run(migrated_database, scenario)


@pytest.mark.parametrize(
    ("seats", "is_analysed"), [(3, True), (20_000, False)], ids=["small, and planned for that", "never analysed"]
)
def test_no_plan_scans_a_table_however_small_it_was_when_it_was_made(
    postgres_server: PostgresServer, migrated_database: Database, seats: int, is_analysed: bool
) -> None:
    async def scenario(pool: Any, desk: BookingDesk) -> None:
        tables = ("seats", "booked_seats", "events", "idempotency_keys", "bookings")
        for table in tables:
            await pool.execute(f"alter table {table} set (autovacuum_enabled = off)")
        await add_event(pool, seats=[f"S-{number}" for number in range(seats)])
        await pool.execute(
            "insert into idempotency_keys (user_id, procedure, key, input_hash, result)"
            " select user_id, 'bookings.create', n::text, '', '{}' from users, generate_series(1, $1) n",
            seats,
        )
        await pool.execute(
            "insert into bookings (booking_id, user_id, event_id, seats, total_minor, currency, correlation_id)"
            " select gen_random_uuid(), organiser_id, event_id, '{S-1}', 0, 'USD', 'c' from events"
        )
        await pool.execute(
            "insert into booked_seats (event_id, seat, booking_id)"
            " select s.event_id, seat, booking_id from seats s cross join bookings"
        )
        if is_analysed:
            await pool.execute(f"analyze {', '.join(tables)}")

    run(migrated_database, scenario)
    for statement in (booking_batches.LOCK_EVENTS, booking_batches.FIND_SEATS, idempotency.FIND):
        plan = planned(postgres_server, migrated_database, statement)
        assert "Index" in plan
        assert "Seq Scan" not in plan, plan
        assert "Hash Join" not in plan, plan


def test_a_closed_desk_takes_nothing_new_and_decides_what_waits(migrated_database: Database) -> None:
    async def body() -> None:
        async with opened(migrated_database) as pool:
            event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
            desk = BookingDesk(pool=pool, on_commit=lambda: None)
            waiting = [asyncio.create_task(book(desk, customer, event_id, seat)) for seat in SEATS[:5]]
            await asyncio.sleep(0)
            await desk.close()
            assert codes(await together(waiting)) == ["booked"] * 5
            assert codes(await together([book(desk, customer, event_id, "B-1")])) == ["SERVICE_UNAVAILABLE"]

    asyncio.run(body())


def test_the_relay_is_woken_once_a_transaction_and_only_after_it(migrated_database: Database) -> None:
    async def body() -> None:
        async with opened(migrated_database) as pool:
            event_id, customer = await add_event(pool, seats=SEATS), await add_customer(pool)
            wakes = []
            desk = BookingDesk(pool=pool, on_commit=lambda: wakes.append(1))
            await together([book(desk, customer, event_id, seat) for seat in SEATS[:10]])
            assert len(wakes) == await transactions(pool) == 1
            await together([book(desk, customer, event_id, "A-1")])
            assert len(wakes) == 1
            await desk.close()

    asyncio.run(body())


def test_a_database_that_is_down_is_told_in_time(migrated_database: Database) -> None:
    async def body() -> None:
        customer = BookingCustomer(user_id=str(uuid.uuid4()), email="a@example.com", name="Ada")
        async with opened(migrated_database, port=free_port()) as pool:
            desk = BookingDesk(pool=pool, on_commit=lambda: None)
            async with asyncio.timeout(5):
                outcomes = await together([book(desk, customer, str(uuid.uuid4()), "A-1") for _ in range(3)])
            assert codes(outcomes) == ["SERVICE_UNAVAILABLE"] * 3
            await desk.close()

    asyncio.run(body())


def test_asyncpg_has_no_error_of_bad_input_among_lost_connections() -> None:
    assert not connection_is_lost(asyncpg.DataError("value out of range"))
    assert connection_is_lost(asyncpg.InterfaceError("connection is closed"))
