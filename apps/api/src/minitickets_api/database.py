"""The pool of database connections, and what an unreachable database means for a request."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from minitickets_api.refusals import Code, Refusal
from minitickets_api.settings import DatabaseSettings

# Amazon's certificates for RDS, which no system ships; the image puts them here. Absent, the system's own count.
RDS_CA_BUNDLE = Path("/etc/ssl/certs/rds-global-bundle.pem")

CONNECT_SECONDS = 3.0
ACQUIRE_SECONDS = 3.0
# The client's own end of waiting: later than the server's, whose answer says more.
COMMAND_SECONDS = 10.0
# A request is worth a few seconds; a row lock is held for one commit, so whoever waits longer waits for a fault.
_SERVER_SETTINGS = {
    "statement_timeout": "8s",
    # Longer than a transaction that lost its client lives on: whoever settles it waits for its locks.
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "3s",
    "timezone": "UTC",
    # Short queries by the primary key: compiling one costs more than it ever saves.
    "jit": "off",
}

UNAVAILABLE_MESSAGE = (
    "The database cannot be used just now. Try again shortly; with the same idempotency key nothing happens twice."
)

_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
_UNUSABLE = (
    asyncpg.ReadOnlySQLTransactionError,  # a failover left us on the old primary
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
)
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.05

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Database:
    """The pool, and whether its password still holds.

    ``password_refused``: RDS rotated the password (28P01) and this process holds the old one, so it must turn unready
    and end; its successor is given the new one.
    """

    def __init__(self) -> None:
        self.pool: asyncpg.Pool
        self.password_refused = False

    async def close(self, *, seconds: float = 5.0) -> None:
        """Close the pool; connections that are still in use after ``seconds`` are cut."""
        try:
            async with asyncio.timeout(seconds):
                await self.pool.close()
        except TimeoutError:
            self.pool.terminate()

    async def is_reachable(self, *, seconds: float = 2.0) -> bool:
        """Whether the database answers a query within ``seconds``."""
        try:
            async with asyncio.timeout(seconds), connection(self.pool) as database:
                await database.fetchval("select 1")
        except (Refusal, TimeoutError):
            return False
        return True


async def connect(
    *,
    host: str,
    port: int,
    name: str,
    user: str,
    password: str,
    sslmode: str,
    application_name: str = "minitickets-api",
    max_size: int = 10,
) -> Database:
    """A pool of at most ``max_size`` connections, each opened when it is first needed: a database that is down now
    is no reason not to start. ``sslmode`` is ``verify-full`` or ``disable``."""
    database = Database()

    async def open_connection(*arguments: Any, **options: Any) -> Any:
        try:
            opened = await asyncpg.connect(*arguments, **options)
        except asyncpg.InvalidPasswordError:
            if not database.password_refused:
                _log.error("the database refuses our password: it was rotated, and this process must end")
            database.password_refused = True
            raise
        database.password_refused = False
        return opened

    database.pool = await asyncpg.create_pool(
        host=host,
        port=port,
        database=name,
        user=user,
        password=password,
        ssl=tls(sslmode),
        connect=open_connection,
        reset=_keep_session,
        min_size=0,
        max_size=max_size,
        timeout=CONNECT_SECONDS,
        command_timeout=COMMAND_SECONDS,
        server_settings={**_SERVER_SETTINGS, "application_name": application_name},
    )
    return database


@asynccontextmanager
async def command_pool(settings: DatabaseSettings, *, application_name: str) -> AsyncIterator[asyncpg.Pool]:
    """A pool of one connection, for a command; closed when the context is left."""
    database = await connect(
        host=settings.host,
        port=settings.port,
        name=settings.name,
        user=settings.user,
        password=settings.password.get_secret_value(),
        sslmode=settings.sslmode,
        application_name=application_name,
        max_size=1,
    )
    try:
        yield database.pool
    finally:
        await database.close()


def connection_is_lost(error: BaseException) -> bool:
    """Whether ``error`` says that the connection is of no use any more: what was sent on it may or may not have
    happened. A read-only server's connection counts, because a new one may lead to the primary."""
    if isinstance(error, asyncpg.DataError):  # an argument that asyncpg cannot encode; by descent an InterfaceError
        return False
    return isinstance(error, (*_LOST, asyncpg.ReadOnlySQLTransactionError))


def is_unavailable(error: BaseException) -> bool:
    """Whether ``error`` says that the database cannot be used just now, through no fault of the statement."""
    return connection_is_lost(error) or isinstance(error, _UNUSABLE)


@asynccontextmanager
async def acquired(pool: asyncpg.Pool) -> AsyncIterator[Any]:
    """A connection of the pool, with asyncpg's own errors. One that turned out to be broken, or to lead to a read-only
    server, is dropped, not given back."""
    async with pool.acquire(timeout=ACQUIRE_SECONDS) as acquired_connection:
        try:
            yield acquired_connection
        except Exception as error:
            if connection_is_lost(error):
                acquired_connection.terminate()
            raise


@asynccontextmanager
async def connection(pool: asyncpg.Pool) -> AsyncIterator[Any]:
    """A connection of the pool. Raises Refusal(SERVICE_UNAVAILABLE) when the database cannot be used just now."""
    try:
        async with acquired(pool) as acquired_connection:
            yield acquired_connection
    except Exception as error:
        if not is_unavailable(error):
            raise
        raise unavailable(error) from error


def unavailable(error: BaseException) -> Refusal:
    """The refusal that ``error`` is to whoever asked, after a line in the log."""
    _log.warning("the database cannot be used: %s", type(error).__name__)
    return Refusal(Code.SERVICE_UNAVAILABLE, UNAVAILABLE_MESSAGE)


async def until_decided(attempt: Callable[[], Awaitable[T]]) -> T:
    """Run a transaction until its end is known: again, in a new one, when the connection was lost.

    The reply to a COMMIT may be what was lost. So ``attempt`` must first take the locks that its forerunner held, which
    waits for that one's end, and then look up what it may have left behind. Raises the last error after three times.
    """
    for pause in range(1, _ATTEMPTS):
        try:
            return await attempt()
        except Exception as error:
            if not connection_is_lost(error):
                raise
            _log.warning("the connection was lost (%s): settling the transaction in a new one", type(error).__name__)
        await asyncio.sleep(pause * _PAUSE_SECONDS)
    return await attempt()


async def transact(pool: asyncpg.Pool, work: Callable[[Any], Awaitable[T]]) -> T:
    """What ``work`` returns for a connection in a transaction, once that is committed; as ``until_decided`` asks of an
    attempt, ``work`` first takes locks and looks. Raises Refusal(SERVICE_UNAVAILABLE) when it stays undecided."""

    async def attempt() -> T:
        async with acquired(pool) as connection, connection.transaction():
            return await work(connection)

    try:
        return await until_decided(attempt)
    except Exception as error:
        if is_unavailable(error):
            raise unavailable(error) from error
        raise


async def _keep_session(_: object) -> None:
    """Instead of asyncpg's reset query, which costs a round trip a release: nobody here sets what outlives a
    transaction, and asyncpg itself rolls an open one back."""


def tls(sslmode: str) -> ssl.SSLContext | bool:
    """What asyncpg calls ``ssl``: certificate and host name are verified (``verify-full``), or no TLS (``disable``)."""
    if sslmode == "disable":
        return False
    if sslmode != "verify-full":
        raise ValueError(f"sslmode must be verify-full or disable, not {sslmode!r}")
    context = ssl.create_default_context()
    if RDS_CA_BUNDLE.exists():
        context.load_verify_locations(cafile=RDS_CA_BUNDLE)
    return context
