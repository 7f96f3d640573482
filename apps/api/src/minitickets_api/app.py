"""The application: what it serves, what it starts with, what it ends with."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from minitickets_api.aws import Aws
from minitickets_api.database import connect
from minitickets_api.health import Health
from minitickets_api.middleware import RequestFrame
from minitickets_api.pages.site_map import site_map
from minitickets_api.procedures import auth, bookings, events, own_events, posters, tickets
from minitickets_api.procedures.call import Call, Services
from minitickets_api.queries.assets import Assets
from minitickets_api.queries.tickets import Tickets
from minitickets_api.services.accounts import Accounts
from minitickets_api.services.bookings import BookingDesk
from minitickets_api.services.cache import Cache
from minitickets_api.services.event_cache import EventCache
from minitickets_api.services.outbox import RelayTiming, start_outbox_relay
from minitickets_api.services.own_events import OwnEvents
from minitickets_api.services.password_resets import PasswordResets
from minitickets_api.services.passwords import Passwords
from minitickets_api.services.posters import Posters
from minitickets_api.services.rate_limits import RateLimits
from minitickets_api.services.retention import start_retention
from minitickets_api.services.sessions import SessionCookie, Sessions
from minitickets_api.services.ticket_pdf.printer import TicketPrinter
from minitickets_api.services.topic import SnsTopic, sns_client
from minitickets_api.settings import Settings
from minitickets_api.trpc import openapi
from minitickets_api.trpc.endpoint import Endpoint
from minitickets_api.trpc.registry import Registry

# The services' share of the 30 s that a container has between SIGTERM and SIGKILL; the farewell and the requests have
# 12 (server.py). Each part has its own, so that none takes the time in which another releases what it holds.
_DESK_SECONDS = 4.5  # nobody waits for an answer by now: a batch may still commit, or is rolled back
_RELAY_SECONDS = RelayTiming.stop + RelayTiming.release + 0.5
_RETENTION_SECONDS = 0.5
_CACHE_SECONDS = 0.5
_DATABASE_SECONDS = 1.0
STOP_SECONDS = _DESK_SECONDS + _RELAY_SECONDS + _RETENTION_SECONDS + _CACHE_SECONDS + _DATABASE_SECONDS
_PASSWORD_CHECK_SECONDS = 1
_log = logging.getLogger(__name__)


def registry() -> Registry[Call]:
    """All procedures."""
    procedures: Registry[Call] = Registry()
    for module in (auth, events, own_events, bookings, tickets, posters):
        module.add_to(procedures)
    return procedures


@asynccontextmanager
async def open_services(settings: Settings, *, end: Callable[[], None]) -> AsyncIterator[tuple[Services, Health]]:
    """All that runs beside the requests, until the context is left: then the relay finishes what it publishes.

    ``end`` is called when this process can do no more good (the database's password was rotated).
    """
    async with AsyncExitStack() as stack:
        database = await connect(
            host=settings.database.host,
            port=settings.database.port,
            name=settings.database.name,
            user=settings.database.user,
            password=settings.database.password.get_secret_value(),
            sslmode=settings.database.sslmode,
        )
        stack.push_async_callback(database.close, seconds=_DATABASE_SECONDS)
        aws = Aws(region=settings.region)
        stack.callback(aws.close)
        cache = Cache(
            host=settings.redis.host,
            port=settings.redis.port,
            token=settings.redis.token.get_secret_value(),
            tls=settings.redis.tls == "true",
        )
        stack.push_async_callback(_within, _CACHE_SECONDS, "cache", cache.close)
        passwords = Passwords()
        stack.callback(passwords.close)
        ticket_printer = TicketPrinter()
        stack.callback(ticket_printer.close)
        topic = SnsTopic(arn=settings.topic_arn, client=partial(sns_client, region=settings.region))
        relay = start_outbox_relay(pool=database.pool, topic=topic)
        stack.push_async_callback(_within, _RELAY_SECONDS, "relay", relay.stop)
        retention = start_retention(pool=database.pool)
        stack.push_async_callback(_within, _RETENTION_SECONDS, "retention", retention.stop)
        desk = BookingDesk(pool=database.pool, on_commit=relay.wake)
        stack.push_async_callback(_within, _DESK_SECONDS, "desk", partial(desk.close, seconds=_DESK_SECONDS / 2))
        background: dict[str, Callable[[], Awaitable[None]]] = {
            "cache": cache.warm,
            "aws": aws.warm,
            "password": partial(_end_when_password_is_refused, lambda: database.password_refused, end),
        }
        for name, work in background.items():
            stack.push_async_callback(_cancel, asyncio.create_task(_logged(name, work), name=name))

        assets = Assets(aws=aws, bucket=settings.assets_bucket)
        services = Services(
            database=database,
            aws=aws,
            accounts=Accounts(pool=database.pool),
            passwords=passwords,
            password_resets=PasswordResets(pool=database.pool),
            sessions=Sessions(pool=database.pool, void_before=settings.sessions_void_before),
            cookie=SessionCookie(is_https=settings.is_https),
            rate_limits=RateLimits(cache=cache),
            desk=desk,
            own_events=OwnEvents(pool=database.pool, on_commit=relay.wake, rewound_at=settings.sessions_void_before),
            event_cache=EventCache(cache=cache),
            tickets=Tickets(aws=aws, table=settings.tickets_table, assets=assets, pool=database.pool),
            ticket_printer=ticket_printer,
            assets=assets,
            posters=Posters(pool=database.pool, aws=aws, assets=assets),
        )
        yield services, Health(database=database, relay=relay)


def create_app(settings: Settings, *, end: Callable[[], None] = lambda: None) -> ASGIApp:
    """The ASGI application. Its lifespan opens and closes the services; ``end`` as in ``open_services``."""
    opened: list[tuple[Services, Health]] = []
    procedures = registry()
    cookie = SessionCookie(is_https=settings.is_https)
    description = openapi.describe(procedures, version=_version(), session_cookie=cookie.name)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        context = open_services(settings, end=end)
        opened.append(await context.__aenter__())
        _log.info("ready to serve", extra={"stage": settings.stage})
        yield
        await context.__aexit__(None, None, None)
        opened.clear()

    async def describe(_: Request) -> Response:
        return JSONResponse(description)

    async def alive(_: Request) -> Response:
        return JSONResponse({"status": "alive"}, headers={"cache-control": "no-store"})

    async def ready(_: Request) -> Response:
        problems = await opened[0][1].problems()
        content = {"status": "unready", "problems": problems} if problems else {"status": "ready"}
        return JSONResponse(content, status_code=503 if problems else 200, headers={"cache-control": "no-store"})

    def open_call(scope: Scope) -> Call:
        return Call(scope, services=opened[0][0])

    site = site_map(
        open_call=open_call,
        public_url=settings.public_url,
        stage=settings.stage,
        mailbox_url=settings.local_mailbox_url,
    )
    pages = Starlette(
        routes=[
            Route("/openapi.json", describe),
            Route("/healthz", alive),
            Route("/readyz", ready),
            *site.routes(),
        ],
        exception_handlers={404: site.not_found, 405: site.not_found},
        lifespan=lifespan,
    )
    # It would send a visitor, body and all, to whatever Host the request names.
    pages.router.redirect_slashes = False
    endpoint = Endpoint(procedures, open_caller=open_call, public_url=settings.public_url)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        # Past the router and its layers, which cost as much as a small query.
        if scope["type"] == "http" and scope["path"].startswith("/trpc/"):
            await endpoint(scope, receive, send)
        else:
            await pages(scope, receive, send)

    return RequestFrame(serve, is_https=settings.is_https)


async def _logged(name: str, work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:  # noqa: BLE001 - nobody waits for it, and requests go on without
        _log.exception("work in the background failed", extra={"work": name})


async def _end_when_password_is_refused(is_refused: Callable[[], bool], end: Callable[[], None]) -> None:
    while not is_refused():  # noqa: ASYNC110 - the pool keeps a flag, which nothing but a new connection sets
        await asyncio.sleep(_PASSWORD_CHECK_SECONDS)
    _log.error("the database's password was rotated: this process ends, so that its successor is given the new one")
    end()


async def _within(seconds: float, part: str, close: Callable[[], Awaitable[None]]) -> None:
    """Close a part in its own time: what it cannot finish must not cost the others theirs."""
    try:
        async with asyncio.timeout(seconds):
            await close()
    except TimeoutError:
        _log.warning("ended without waiting any longer", extra={"part": part})


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _version() -> str:
    try:
        return version("minitickets")
    except PackageNotFoundError:  # the image holds the sources, not a distribution
        return "0"
