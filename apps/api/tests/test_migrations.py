"""The schema: how it comes up to date, and what its migrations are."""

import asyncio
import os
import subprocess
import sys
import time

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
    assert (first.returncode, first.stdout) == (0, "migrate: ran 0001\n"), first.stderr
    second = run_command(environment(empty_database))
    assert (second.returncode, second.stdout) == (0, "migrate: nothing to do\n"), second.stderr


def test_of_two_runs_at_once_one_migrates_and_the_other_waits_for_it(empty_database: Database) -> None:
    async def both() -> list[list[str]]:
        return list(await asyncio.gather(migrated(empty_database), migrated(empty_database)))

    assert sorted(asyncio.run(both())) == [[], ["0001"]]


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
    assert ran == ["0001"]


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
