"""The purge in the background: it comes by itself, in chunks, survives the database, and ends when told."""

import asyncio
import uuid
from typing import Any

import pytest

from minitickets_api.services import retention
from minitickets_api.services.retention import purge, start_retention
from tests.fixtures.catalogue import opened
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration


async def add_old_rows(pool: Any, count: int) -> None:
    await pool.execute(
        "insert into outbox (outbox_id, body, correlation_id, sent_at)"
        " select gen_random_uuid(), '{}', 'c', now() - interval '8 days' from generate_series(1, $1)",
        count,
    )


async def until_empty(pool: Any) -> None:
    async with asyncio.timeout(10):
        while await pool.fetchval("select count(*) from outbox"):  # noqa: ASYNC110 - the state is the database's
            await asyncio.sleep(0.02)


def test_it_comes_by_itself_again_and_again_and_ends_when_told(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            running = start_retention(pool=pool, every_seconds=0.05)
            await add_old_rows(pool, 3)
            await until_empty(pool)
            await pool.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
            await add_old_rows(pool, 3)
            await until_empty(pool)
            await running.stop()
            await add_old_rows(pool, 1)
            await asyncio.sleep(0.3)
            assert await pool.fetchval("select count(*) from outbox") == 1

    asyncio.run(run())


def test_it_deletes_all_that_is_old_in_chunks(migrated_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "CHUNK", 10)

    async def run() -> None:
        async with opened(migrated_database) as pool:
            await add_old_rows(pool, 35)
            assert (await purge(pool))["sent outbox rows"] == 35

    asyncio.run(run())


def test_a_row_that_somebody_holds_is_left_for_the_next_time(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            await add_old_rows(pool, 2)
            async with pool.acquire() as holder, holder.transaction():
                held: uuid.UUID = await holder.fetchval("select outbox_id from outbox limit 1 for update")
                async with asyncio.timeout(3):
                    assert (await purge(pool))["sent outbox rows"] == 1
            assert await pool.fetchval("select outbox_id from outbox") == held

    asyncio.run(run())
