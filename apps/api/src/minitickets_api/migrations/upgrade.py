"""Alembic on SQLAlchemy's asyncpg dialect (ADR 0008). Importing it takes the better part of a second."""

import ssl
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, pool
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import create_async_engine


async def upgrade(*, host: str, port: int, name: str, user: str, password: str, ssl: ssl.SSLContext | bool) -> None:
    """Run all migrations that the database has not seen. The caller holds the lock that keeps others away."""
    url = URL.create("postgresql+asyncpg", username=user, password=password, host=host, port=port, database=name)
    options = {"ssl": ssl, "server_settings": {"application_name": "minitickets-migrate"}}
    engine = create_async_engine(url, connect_args=options, poolclass=pool.NullPool)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(_run)
    finally:
        await engine.dispose()


def configuration() -> Config:
    """Alembic's configuration, without a file of its own."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _run(connection: Connection) -> None:
    config = configuration()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
