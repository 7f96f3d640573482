"""The services end in the time that a container has, each in its own share of it."""

import asyncio
import time
from typing import Any

import pytest

from minitickets_api import app
from minitickets_api.app import STOP_SECONDS, open_services
from minitickets_api.services.outbox import RelayTiming
from minitickets_api.services.topic import CONNECT_SECONDS, READ_SECONDS
from minitickets_api.settings import Settings
from tests.fixtures.catalogue import add_customer, add_event, opened
from tests.fixtures.running_api import api_environment
from tests.fixtures.servers import Cache, Database


@pytest.mark.unit
def test_a_stopping_relay_waits_longer_than_a_call_of_the_topic_takes() -> None:
    assert RelayTiming.stop > CONNECT_SECONDS + READ_SECONDS


@pytest.mark.unit
def test_a_part_that_does_not_end_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    began = time.monotonic()
    asyncio.run(app._within(0.05, "desk", never))

    assert time.monotonic() - began < 2
    assert [(record.message, record.__dict__["part"]) for record in caplog.records] == [
        ("ended without waiting any longer", "desk")
    ]


@pytest.mark.integration
def test_a_batch_that_waits_for_somebody_elses_lock_is_rolled_back_at_the_end(
    migrated_database: Database, cache: Cache, aws_is_down: None
) -> None:
    async def body() -> None:
        settings = Settings.from_environment(api_environment(migrated_database, cache))
        async with opened(migrated_database) as pool:
            event_id, customer = await add_event(pool, seats=["A-1"]), await add_customer(pool)
            async with pool.acquire() as somebody:
                await somebody.execute("begin; select 1 from events for update")
                async with open_services(settings, end=lambda: None) as (services, _):
                    booking = asyncio.create_task(
                        services.desk.create(
                            customer=customer, event_id=event_id, seats=["A-1"], idempotency_key="k", correlation_id="c"
                        )
                    )
                    await until_somebody_waits(pool)
                    booking.cancel()  # as uvicorn does to what has not ended after its drain
                    began = time.monotonic()
                assert time.monotonic() - began < STOP_SECONDS
                await somebody.execute("rollback")
            assert await pool.fetchval("select count(*) from bookings") == 0
            still_open = "select count(*) from pg_stat_activity where xact_start is not null and"
            assert await pool.fetchval(f"{still_open} pid <> pg_backend_pid() and datname = current_database()") == 0

    asyncio.run(body())


async def until_somebody_waits(pool: Any) -> None:
    async with asyncio.timeout(10):
        waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        while not await pool.fetchval(waits):  # noqa: ASYNC110 - the state is the database's
            await asyncio.sleep(0.01)
