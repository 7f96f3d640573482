"""The schema: how it comes up to date, and what its migrations are."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from alembic.script import ScriptDirectory

from local.processes import free_port
from minitickets_api import migrate
from minitickets_api.migrations.upgrade import configuration
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration


async def migrated(database: Database, *, wait_seconds: float = 30) -> list[str]:
    return await migrate.migrate(
        host=database.host,
        port=database.port,
        name=database.name,
        user=database.user,
        password=database.password,
        sslmode="disable",
        wait_seconds=wait_seconds,
    )


async def connected(database: Database) -> asyncpg.Connection:
    return await asyncpg.connect(
        host=database.host,
        port=database.port,
        database=database.name,
        user=database.user,
        password=database.password,
    )


def environment(database: Database) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "DB_HOST": database.host,
        "DB_PORT": str(database.port),
        "DB_NAME": database.name,
        "DB_USER": database.user,
        "DB_PASSWORD": database.password,
        "DB_SSLMODE": "disable",
    }


def run_command(variables: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "minitickets_api.migrate"], env=variables, capture_output=True, text=True, timeout=60
    )


def test_a_second_run_does_nothing(empty_database: Database) -> None:
    first = run_command(environment(empty_database))
    assert (first.returncode, first.stdout) == (0, "migrate: ran 0001, 0002\n"), first.stderr
    second = run_command(environment(empty_database))
    assert (second.returncode, second.stdout) == (0, "migrate: nothing to do\n"), second.stderr


def test_of_two_runs_at_once_one_migrates_and_the_other_waits_for_it(empty_database: Database) -> None:
    async def both() -> list[list[str]]:
        return list(await asyncio.gather(migrated(empty_database), migrated(empty_database)))

    assert sorted(asyncio.run(both())) == [[], ["0001", "0002"]]


def test_a_migration_that_fails_leaves_nothing_behind(empty_database: Database) -> None:
    async def run() -> tuple[list[str], list[str]]:
        connection = await connected(empty_database)
        # The last table of the migration is there already, so its last statements fail.
        await connection.execute("create table idempotency_keys (a integer)")
        with pytest.raises(Exception, match="already exists"):
            await migrated(empty_database)
        rows = await connection.fetch("select tablename from pg_tables where schemaname = 'public' order by 1")
        left = [row["tablename"] for row in rows]
        await connection.execute("drop table idempotency_keys")
        ran = await migrated(empty_database)
        await connection.close()
        return left, ran

    left, ran = asyncio.run(run())
    assert set(left) <= {"alembic_version", "idempotency_keys"}
    assert ran == ["0001", "0002"]


async def at_revision_0001(database: Database) -> asyncpg.Connection:
    """The schema as the version before left it; a connection to it."""
    connection = await connected(database)
    script = Path(migrate.__file__).parent / "migrations" / "versions" / "0001_booking_flow.sql"
    await connection.execute(script.read_text(encoding="utf-8"))
    await connection.execute("create table alembic_version (version_num varchar(32) primary key)")
    await connection.execute("insert into alembic_version values ('0001')")
    return connection


# What a task of the version before sends, word for word: it serves on while 0002 runs, and after it.
OLD_STATEMENTS = (
    "insert into users (user_id, email, name, password_hash) values ($1, $2, 'Ada', 'none')",
    """
    insert into events (
        event_id, organiser_id, title, venue, starts_at, time_zone, price_minor, currency, published_at
    ) values ($1, $2, 'Night', 'Mill', now() + interval '1 day', 'UTC', 100, 'USD', now())
    """,
    """
    insert into seats (event_id, seat, position)
    select $1, seat, place from unnest($2::text[]) with ordinality as named(seat, place)
    on conflict (event_id, seat) do update set position = excluded.position
        where seats.position <> excluded.position
    """,
    """
    insert into bookings (booking_id, user_id, event_id, seats, total_minor, currency, correlation_id, created_at)
    values ($1, $2, $3, '{A-1}', 100, 'USD', 'c', now())
    """,
    "insert into booked_seats (event_id, seat, booking_id) values ($1, 'A-1', $2)",
    "insert into outbox (outbox_id, booking_id, body, correlation_id) values ($1, $2, '{}', 'c')",
    """
    update outbox set sent_at = clock_timestamp(), owner = null, lease_until = null, last_error = null
    where outbox_id = any($1::uuid[]) and owner = $2 and sent_at is null
    """,
)


async def book_as_before(connection: asyncpg.Connection) -> None:
    user, event, booking, message = uuid4(), uuid4(), uuid4(), uuid4()
    arguments: list[tuple[object, ...]] = [
        (user, f"{user.hex}@example.org"),
        (event, user),
        (event, ["A-1", "A-2"]),
        (booking, user, event),
        (event, booking),
        (message, booking),
        ([message], user),
    ]
    for statement, values in zip(OLD_STATEMENTS, arguments, strict=True):
        await connection.execute(statement, *values)


def test_a_task_of_the_version_before_books_while_the_schema_changes_and_afterwards(empty_database: Database) -> None:
    async def run() -> None:
        connection = await at_revision_0001(empty_database)
        await book_as_before(connection)  # and its statements are prepared
        migrating = asyncio.create_task(migrated(empty_database))
        booked_meanwhile = 0
        while not migrating.done():
            await asyncio.wait_for(book_as_before(connection), timeout=2)
            booked_meanwhile += 1
        assert await migrating == ["0002"]
        assert booked_meanwhile > 0
        await book_as_before(connection)
        rows = await connection.fetch(
            "select distinct sequence, aisle_after, is_secret, mail_requested_at from events"
            " join seats using (event_id) join bookings using (event_id) join outbox using (booking_id)"
        )
        assert [tuple(row) for row in rows] == [(0, False, False, None)]
        await connection.close()

    asyncio.run(run())


def test_a_change_of_the_schema_that_was_cut_off_anywhere_goes_on_where_it_stopped(empty_database: Database) -> None:
    async def run() -> None:
        connection = await at_revision_0001(empty_database)
        # Bookings come, so that the index, which is built last, has a table to wait for.
        await book_as_before(connection)
        script = ScriptDirectory.from_config(configuration()).get_revision("0002").module
        schema_changes = [statement for statement in script._STATEMENTS if not statement.startswith("set ")]
        for count in range(len(schema_changes) + 1):
            for statement in schema_changes[:count]:
                await connection.execute(statement)
            assert await migrated(empty_database) == ["0002"]
            await connection.execute("update alembic_version set version_num = '0001'")
        assert await connection.fetchval(
            "select indisvalid from pg_index where indexrelid = 'outbox_booking_id'::regclass"
        )
        await connection.close()

    asyncio.run(run())


def test_a_change_of_the_schema_does_not_hold_requests_up_for_longer_than_they_wait(empty_database: Database) -> None:
    async def run() -> float:
        reader, holder = await at_revision_0001(empty_database), await connected(empty_database)
        await holder.execute("begin; lock table events in access share mode")  # a report that never ends, say
        migrating = asyncio.create_task(migrated(empty_database))
        waiting = "select count(*) from pg_locks where not granted and relation = 'events'::regclass"
        async with asyncio.timeout(20):
            while not await reader.fetchval(waiting):  # noqa: ASYNC110 - the state is the database's
                await asyncio.sleep(0.05)
        began = time.monotonic()
        await reader.execute(
            "insert into users (user_id, email, name, password_hash) values ($1, 'a', 'a', 'a')", uuid4()
        )
        await reader.fetchval("select count(*) from events")
        waited = time.monotonic() - began
        with pytest.raises(Exception, match="lock timeout"):
            await migrating
        await holder.execute("commit")
        assert await migrated(empty_database) == ["0002"]
        await holder.close()
        await reader.close()
        return waited

    assert asyncio.run(run()) < 4.5


def test_it_waits_for_the_database_and_then_says_what_to_check(empty_database: Database) -> None:
    nobody = Database(host="127.0.0.1", port=free_port(), name="none", user="none", password="none")
    began = time.monotonic()
    with pytest.raises(migrate.MigrationError, match=r"no database answers at 127\.0\.0\.1"):
        asyncio.run(migrated(nobody, wait_seconds=1))
    assert 1 <= time.monotonic() - began < 5


def test_a_wrong_password_is_told_at_once_without_being_shown(empty_database: Database) -> None:
    variables = environment(empty_database) | {"DB_PASSWORD": "wrong-canary"}
    done = run_command(variables)
    assert done.returncode == 1
    assert "password authentication failed" in done.stderr
    assert "wrong-canary" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_a_missing_variable_is_named_on_one_line(empty_database: Database) -> None:
    variables = environment(empty_database)
    del variables["DB_HOST"]
    done = run_command(variables)
    assert done.returncode == 1
    assert "DB_HOST" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_migration_that_never_ends_is_waited_for_and_named(empty_database: Database) -> None:
    async def run() -> None:
        connection = await connected(empty_database)
        await connection.execute("select pg_advisory_lock($1)", migrate._ADVISORY_LOCK)
        with pytest.raises(migrate.MigrationError, match="another migration still runs"):
            await migrated(empty_database, wait_seconds=0.3)
        await connection.close()

    asyncio.run(run())


def test_a_schema_newer_than_the_program_is_left_alone(migrated_database: Database) -> None:
    async def run() -> None:
        connection = await connected(migrated_database)
        await connection.execute("update alembic_version set version_num = '9999'")
        with pytest.raises(migrate.MigrationError, match="revision 9999"):
            await migrated(migrated_database)
        await connection.close()

    asyncio.run(run())


def test_the_files_names_say_what_alembic_reads_in_them() -> None:
    script = ScriptDirectory.from_config(configuration())
    chain = [revision.revision for revision in script.walk_revisions()][::-1]
    assert chain == migrate._known_revisions()


def test_an_up_to_date_database_is_told_without_loading_alembic() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, minitickets_api.migrate; print([m for m in ('alembic', 'sqlalchemy') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert loaded.stdout.strip() == "[]"
