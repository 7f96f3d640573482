"""``python -m minitickets_api.migrate``: bring the database's schema up to date. Safe to run twice, and at once."""

import asyncio
import re
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg

from minitickets_api.database import CONNECT_SECONDS, connection_is_lost, tls
from minitickets_api.settings import DatabaseSettings, SettingsError

WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.5
# Any number will do, as long as nobody else in this database takes it.
_ADVISORY_LOCK = 4_011_874_163
_MIGRATIONS = Path(__file__).parent / "migrations"
_REVISION_FILE = re.compile(r"(\d{4})_\w+\.py")
_CURRENT = "select version_num from alembic_version"


class MigrationError(RuntimeError):
    """The schema is not up to date; the message says why and what to do."""


async def migrate(
    *, host: str, port: int, name: str, user: str, password: str, sslmode: str, wait_seconds: float = WAIT_SECONDS
) -> list[str]:
    """Run the migrations that are missing, in order; the revisions that were run.

    Waits for the database, and for another migration that is running, up to ``wait_seconds`` each. Raises
    MigrationError when either takes longer, or when the schema is newer than this program.
    """
    connection = await _connect(
        wait_seconds,
        host=host,
        port=port,
        database=name,
        user=user,
        password=password,
        ssl=tls(sslmode),
        timeout=CONNECT_SECONDS,
        server_settings={"application_name": "minitickets-migrate"},
    )
    try:
        await _lock(connection, wait_seconds)
        known = _known_revisions()
        current = await _current_revision(connection)
        if current is not None and current not in known:
            raise MigrationError(
                f"migrate: the database is at revision {current}, which this program does not know; "
                "deploy the program that made it, or a newer one"
            )
        missing = [revision for revision in known if current is None or revision > current]
        if missing:
            # Only now: SQLAlchemy and Alembic take the better part of a second to import.
            from minitickets_api.migrations.upgrade import upgrade

            await upgrade(host=host, port=port, name=name, user=user, password=password, ssl=tls(sslmode))
        return missing
    finally:
        await connection.close()  # and with it the advisory lock is free


async def _connect(wait_seconds: float, **options: Any) -> Any:
    end = time.monotonic() + wait_seconds
    while True:
        try:
            return await asyncpg.connect(**options)
        except Exception as error:
            if not connection_is_lost(error) and not isinstance(error, asyncpg.TooManyConnectionsError):
                # A wrong password or name does not get better by waiting.
                raise MigrationError(f"migrate: the database refuses the connection: {error}") from error
            if time.monotonic() > end:
                where = f"{options['host']}:{options['port']}"
                raise MigrationError(
                    f"migrate: no database answers at {where} after {wait_seconds:g} s ({type(error).__name__}); "
                    "check that it is on and that its security group lets this task in"
                ) from error
        await asyncio.sleep(_PAUSE_SECONDS)


async def _lock(connection: Any, wait_seconds: float) -> None:
    end = time.monotonic() + wait_seconds
    while not await connection.fetchval("select pg_try_advisory_lock($1)", _ADVISORY_LOCK):
        if time.monotonic() > end:
            raise MigrationError(
                f"migrate: another migration still runs after {wait_seconds:g} s; "
                "look at pg_stat_activity for application_name minitickets-migrate, then try again"
            )
        await asyncio.sleep(_PAUSE_SECONDS / 5)


async def _current_revision(connection: Any) -> str | None:
    try:
        revision: str | None = await connection.fetchval(_CURRENT)
    except asyncpg.UndefinedTableError:
        return None
    return revision


def _known_revisions() -> list[str]:
    """From the files' names, which a test compares with what Alembic reads in them."""
    names = (path.name for path in (_MIGRATIONS / "versions").iterdir())
    return sorted(match[1] for name in names if (match := _REVISION_FILE.fullmatch(name)))


def main() -> int:
    """The command: exit code 0 when the schema is up to date."""
    try:
        settings = DatabaseSettings.from_environment()
        ran = asyncio.run(
            migrate(
                host=settings.host,
                port=settings.port,
                name=settings.name,
                user=settings.user,
                password=settings.password.get_secret_value(),
                sslmode=settings.sslmode,
            )
        )
    except (SettingsError, MigrationError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"migrate: ran {', '.join(ran)}\n" if ran else "migrate: nothing to do\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
