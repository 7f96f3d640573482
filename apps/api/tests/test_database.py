"""The pool: what an unusable database means to a request, and that it recovers."""

import asyncio
import ssl
from typing import Any

import asyncpg
import pytest

from local.processes import free_port
from local.servers.postgres import PostgresServer
from minitickets_api.database import connect, connection, tls
from minitickets_api.refusals import Code, Refusal
from tests.fixtures.catalogue import opened
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

KILL_OTHERS = """
select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""


async def ask(pool: Any) -> object:
    async with connection(pool) as database:
        return await database.fetchval("select 1")


async def refusal_of(pool: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await ask(pool)
    return caught.value


def test_a_rotated_password_is_unavailability_that_readiness_can_see(
    postgres_server: PostgresServer, empty_database: Database
) -> None:
    async def run() -> None:
        database = await connect(
            host=empty_database.host,
            port=empty_database.port,
            name=empty_database.name,
            user=empty_database.user,
            password=empty_database.password,
            sslmode="disable",
        )
        assert await ask(database.pool) == 1
        seen = [database.password_refused]
        postgres_server.run_sql(f"alter role {empty_database.user} password 'rotated'")
        await database.pool.expire_connections()
        assert (await refusal_of(database.pool)).code is Code.SERVICE_UNAVAILABLE
        seen.append(database.password_refused)
        assert seen == [False, True]
        assert not await database.is_reachable()
        await database.close()

    asyncio.run(run())


def test_a_database_that_is_down_is_unavailable_and_no_reason_not_to_start() -> None:
    async def run() -> None:
        database = await connect(
            host="127.0.0.1", port=free_port(), name="n", user="u", password="p", sslmode="disable"
        )
        assert (await refusal_of(database.pool)).code is Code.SERVICE_UNAVAILABLE
        assert not await database.is_reachable()
        await database.close()

    asyncio.run(run())


def test_severed_connections_are_replaced(empty_database: Database) -> None:
    async def run() -> None:
        async with opened(empty_database, max_size=3) as pool:
            await asyncio.gather(*(ask(pool) for _ in range(10)))
            async with connection(pool) as killer:
                await killer.execute(KILL_OTHERS)
            results = await asyncio.gather(*(ask(pool) for _ in range(10)), return_exceptions=True)
            assert results.count(1) >= 8
            assert await asyncio.gather(*(ask(pool) for _ in range(10))) == [1] * 10

    asyncio.run(run())


def test_a_connection_that_breaks_in_use_is_not_given_back(empty_database: Database) -> None:
    async def run() -> None:
        async with opened(empty_database, max_size=1) as pool:
            with pytest.raises(Refusal):
                async with connection(pool) as database:
                    await database.fetch("select pg_terminate_backend(pg_backend_pid())")
            assert await ask(pool) == 1

    asyncio.run(run())


def test_a_connection_that_leads_to_a_read_only_server_is_left_behind_at_its_first_refusal(
    empty_database: Database,
) -> None:
    async def run() -> None:
        async with opened(empty_database, max_size=1) as pool:
            async with connection(pool) as database:
                # As a failover leaves it: the connection is whole, and every write on it is refused.
                await database.execute("set default_transaction_read_only = on")
                stale = database.get_server_pid()

            async def write() -> int:
                async with connection(pool) as database:
                    await database.execute("create table written ()")
                    return int(database.get_server_pid())

            with pytest.raises(Refusal) as caught:
                await write()
            assert caught.value.code is Code.SERVICE_UNAVAILABLE
            assert await write() != stale

    asyncio.run(run())


def test_when_all_connections_are_busy_a_request_is_told_so_in_time(empty_database: Database) -> None:
    async def run() -> None:
        async with opened(empty_database, max_size=1) as pool:
            async with connection(pool):
                async with asyncio.timeout(5):
                    assert (await refusal_of(pool)).code is Code.SERVICE_UNAVAILABLE
            assert await ask(pool) == 1

    asyncio.run(run())


def test_a_transaction_left_open_is_rolled_back_before_the_next_request(empty_database: Database) -> None:
    async def run() -> None:
        async with opened(empty_database, max_size=1) as pool:
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # asyncpg reports it, as it should
            async with connection(pool) as database:
                await database.execute("create table t (a integer)")
                await database.execute("begin; insert into t values (1)")
            async with connection(pool) as database:
                assert await database.fetchval("select count(*) from t") == 0

    asyncio.run(run())


def test_every_wait_on_the_server_has_an_end(empty_database: Database) -> None:
    async def run() -> dict[str, str]:
        async with opened(empty_database) as pool, connection(pool) as database:
            names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "application_name")
            return {name: await database.fetchval(f"show {name}") for name in names}

    shown = asyncio.run(run())
    assert shown == {
        "statement_timeout": "8s",
        "lock_timeout": "5s",
        "idle_in_transaction_session_timeout": "3s",
        "application_name": "minitickets-api",
    }


def test_a_fault_of_ours_is_not_called_an_outage(empty_database: Database) -> None:
    async def run() -> None:
        async with opened(empty_database) as pool:
            with pytest.raises(asyncpg.UndefinedTableError):
                async with connection(pool) as database:
                    await database.fetch("select * from nowhere")
            with pytest.raises(asyncpg.DataError):
                async with connection(pool) as database:
                    await database.fetch("select $1::integer", 2**40)

    asyncio.run(run())


def test_verify_full_verifies_the_certificate_and_the_name_and_never_falls_back(empty_database: Database) -> None:
    context = tls("verify-full")
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED

    async def run() -> None:
        database = await connect(
            host=empty_database.host,
            port=empty_database.port,
            name=empty_database.name,
            user=empty_database.user,
            password=empty_database.password,
            sslmode="verify-full",
        )
        assert (await refusal_of(database.pool)).code is Code.SERVICE_UNAVAILABLE  # this server has no TLS
        await database.close()

    asyncio.run(run())


@pytest.mark.parametrize("sslmode", ["prefer", "require", ""])
def test_weaker_modes_are_refused(sslmode: str) -> None:
    with pytest.raises(ValueError, match="verify-full or disable"):
        tls(sslmode)
