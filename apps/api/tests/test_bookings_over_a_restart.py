"""PostgreSQL goes away and comes back while people book."""

import asyncio
import uuid
from pathlib import Path

import pytest

from local.processes import free_port
from local.servers.postgres import PostgresServer
from minitickets_api.migrate import migrate
from minitickets_api.queries.bookings import BookingView
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.bookings import BookingCustomer, BookingDesk
from tests.fixtures.catalogue import add_customer, add_event, opened
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

PASSWORD = "known-to-this-test-alone"


def test_what_was_acknowledged_is_kept_and_the_rest_is_told_to_ask_again(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path / "postgres", port=free_port(), log=tmp_path / "server.log")
    server.prepare()
    server.start()
    try:
        server.run_sql(f"create role booker login password '{PASSWORD}'")
        server.run_sql("create database box_office owner booker")
        database = Database(host="127.0.0.1", port=server.port, name="box_office", user="booker", password=PASSWORD)
        asyncio.run(book_over_a_restart(server, database))
    finally:
        server.stop()


async def book_over_a_restart(server: PostgresServer, database: Database) -> None:
    await migrate(
        host=database.host,
        port=database.port,
        name=database.name,
        user=database.user,
        password=database.password,
        sslmode="disable",
    )
    async with opened(database) as pool:
        seats = [f"S-{number}" for number in range(5_000)]
        event_id, customer = await add_event(pool, seats=seats), await add_customer(pool)
        desk = BookingDesk(pool=pool, on_commit=lambda: None)
        left = iter(seats)
        acknowledged: dict[str, BookingView] = {}
        told_to_ask_again: dict[str, str] = {}
        codes: set[Code] = set()
        is_over = asyncio.Event()

        async def keep_booking() -> None:
            while not is_over.is_set():
                seat, key = next(left), str(uuid.uuid4())
                try:
                    acknowledged[key] = await book(desk, customer, event_id, seat, key)
                except Refusal as refusal:
                    codes.add(refusal.code)
                    told_to_ask_again[key] = seat
                    await asyncio.sleep(0.05)

        async def acknowledgements(more: int) -> None:
            wanted = len(acknowledged) + more
            async with asyncio.timeout(30):
                while len(acknowledged) < wanted:  # noqa: ASYNC110 - filled by tasks that know nothing of us
                    await asyncio.sleep(0.01)

        customers = [asyncio.create_task(keep_booking()) for _ in range(10)]
        await acknowledgements(20)
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start)
        await acknowledgements(20)
        is_over.set()
        await asyncio.gather(*customers)

        assert codes == {Code.SERVICE_UNAVAILABLE}
        for key, seat in told_to_ask_again.items():
            acknowledged[key] = await book(desk, customer, event_id, seat, key)
        kept = {str(row["booking_id"]) for row in await pool.fetch("select booking_id from bookings")}
        assert kept == {view.booking_id for view in acknowledged.values()}
        assert await pool.fetchval("select count(*) from booked_seats") == len(acknowledged)
        assert await pool.fetchval("select count(*) from outbox") == len(acknowledged)
        await desk.close()


async def book(desk: BookingDesk, customer: BookingCustomer, event_id: str, seat: str, key: str) -> BookingView:
    return await desk.create(
        customer=customer, event_id=event_id, seats=[seat], idempotency_key=key, correlation_id="c"
    )
