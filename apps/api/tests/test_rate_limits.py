"""How often an account or an address may try, with Valkey and without."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest

from local.processes import free_port
from local.servers.valkey import ValkeyServer
from minitickets_api.app import registry
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import rate_limits
from minitickets_api.services.cache import PAUSE_SECONDS, Cache
from minitickets_api.services.event_cache import EventCache
from minitickets_api.services.rate_limits import Limit, RateLimits
from minitickets_api.trpc.registry import Kind
from tests.fixtures.running_api import PASSWORD, RunningApi, api_environment
from tests.fixtures.servers import Cache as CacheServer
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

T = TypeVar("T")
THREE_A_MINUTE = Limit(name="three", attempts=3, seconds=60)


def with_cache(server: CacheServer, work: Callable[[Cache], Awaitable[T]]) -> T:
    async def run() -> T:
        cache = Cache(host=server.host, port=server.port, token=server.password, tls=False)
        await cache.warm()
        try:
            return await work(cache)
        finally:
            await cache.close()

    return asyncio.run(run())


async def attempts_until_refused(limits: RateLimits, limit: Limit, subject: str) -> int:
    for attempt in range(limit.attempts + 5):
        refusal = await refused(limits, limit, subject)
        if refusal is not None:
            assert refusal.code is Code.TOO_MANY_REQUESTS
            assert refusal.details["retryAfterSeconds"] == 40
            return attempt
    raise AssertionError("never refused")


async def refused(limits: RateLimits, limit: Limit, subject: str) -> Refusal | None:
    try:
        await limits.spend((limit, subject))
    except Refusal as refusal:
        return refusal
    return None


def at(second: float) -> Callable[[], float]:
    return lambda: 1_800_000_000 + second


@pytest.fixture
def nobody(cache: CacheServer) -> CacheServer:
    return CacheServer(host=cache.host, port=free_port(), password=cache.password)


@pytest.mark.parametrize("is_up", [True, False])
def test_a_limit_holds_for_each_subject_alone_with_and_without_valkey(
    cache: CacheServer, nobody: CacheServer, is_up: bool
) -> None:
    async def work(cache: Cache) -> None:
        limits = RateLimits(cache=cache, clock=at(20))
        ada, eve = uuid4().hex, uuid4().hex
        assert await attempts_until_refused(limits, THREE_A_MINUTE, ada) == 3
        assert await attempts_until_refused(limits, THREE_A_MINUTE, eve) == 3
        later = RateLimits(cache=cache, clock=at(60))
        await later.spend((THREE_A_MINUTE, ada))

    with_cache(cache if is_up else nobody, work)


def test_all_processes_count_together(cache: CacheServer) -> None:
    async def work(cache: Cache) -> None:
        subject = uuid4().hex
        one, other = RateLimits(cache=cache, clock=at(20)), RateLimits(cache=cache, clock=at(20))
        await one.spend((THREE_A_MINUTE, subject))
        assert await attempts_until_refused(other, THREE_A_MINUTE, subject) == 2

    with_cache(cache, work)


def test_an_outage_in_the_middle_gives_no_further_attempts(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path, port=free_port(), password="x" * 20, log=tmp_path / "log")
    server.start()

    async def work(cache: Cache) -> None:
        limits = RateLimits(cache=cache, clock=at(20))
        for _ in range(2):
            await limits.spend((THREE_A_MINUTE, "ada"))
        await asyncio.to_thread(server.stop)
        assert await attempts_until_refused(limits, THREE_A_MINUTE, "ada") == 1

    try:
        with_cache(CacheServer(host="127.0.0.1", port=server.port, password="x" * 20), work)
    finally:
        server.stop()


def test_a_cache_that_comes_back_empty_gives_no_further_attempts(cache: CacheServer) -> None:
    async def work(cache: Cache) -> None:
        limits, subject = RateLimits(cache=cache, clock=at(20)), uuid4().hex
        for _ in range(2):
            await limits.spend((THREE_A_MINUTE, subject))
        assert cache._redis is not None
        await cache._redis.flushall()
        assert await attempts_until_refused(limits, THREE_A_MINUTE, subject) == 1

    with_cache(cache, work)


@pytest.mark.parametrize("is_up", [True, False])
def test_what_is_spent_of_one_limit_is_not_spent_of_another(
    cache: CacheServer, nobody: CacheServer, is_up: bool
) -> None:
    async def work(cache: Cache) -> None:
        limits, subject = RateLimits(cache=cache, clock=at(20)), uuid4().hex
        other = Limit(name="another three", attempts=3, seconds=60)
        assert await attempts_until_refused(limits, THREE_A_MINUTE, subject) == 3
        assert await attempts_until_refused(limits, other, subject) == 3

    with_cache(cache if is_up else nobody, work)


def test_success_forgets_the_attempts(cache: CacheServer) -> None:
    async def work(cache: Cache) -> None:
        limits = RateLimits(cache=cache, clock=at(20))
        subject = uuid4().hex
        await limits.spend((THREE_A_MINUTE, subject))
        await limits.reset(THREE_A_MINUTE, subject)
        assert await attempts_until_refused(limits, THREE_A_MINUTE, subject) == 3

    with_cache(cache, work)


def test_what_is_counted_by_is_not_in_the_cache(cache: CacheServer) -> None:
    async def work(cache: Cache) -> str:
        await RateLimits(cache=cache).spend((THREE_A_MINUTE, "ada@example.org"))
        assert cache._redis is not None
        keys = await cache._redis.keys("*")
        assert keys
        assert all([await cache._redis.ttl(key) > 0 for key in keys])
        return str(keys)

    assert "example" not in with_cache(cache, work)  # letters that no hash in hexadecimal has


def test_counters_without_valkey_do_not_grow_without_end(nobody: CacheServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_MAX_LOCAL_COUNTERS", 100)

    async def work(cache: Cache) -> int:
        limits = RateLimits(cache=cache, clock=at(20))
        for number in range(500):
            await limits.spend((THREE_A_MINUTE, str(number)))
        return len(limits._local)

    assert with_cache(nobody, work) == 100


def test_a_cache_that_hangs_is_waited_for_once(cache: CacheServer) -> None:
    async def run() -> tuple[float, float]:
        async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        async with await asyncio.start_server(swallow, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            cache = Cache(host="127.0.0.1", port=port, token="x", tls=False)
            await cache.warm()
            began = time.perf_counter()
            assert await cache.get("k") is None
            first = time.perf_counter() - began
            for _ in range(20):
                assert await cache.get("k") is None
            rest = time.perf_counter() - began - first
            await cache.close()
        return first, rest

    first, rest = asyncio.run(run())

    assert first < 0.6
    assert rest < 0.2


def test_a_cache_that_comes_back_is_used_again(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path, port=free_port(), password="x" * 20, log=tmp_path / "log")

    async def run() -> None:
        cache = Cache(host="127.0.0.1", port=server.port, token="x" * 20, tls=False)
        await cache.warm()
        await cache.put("k", b"v", milliseconds=60_000)
        assert await cache.get("k") == b"v"
        await asyncio.to_thread(server.stop)
        assert await cache.get("k") is None
        await asyncio.to_thread(server.start)
        end = time.monotonic() + PAUSE_SECONDS + 5
        while not await cache.count([("k2", 60)]):
            assert time.monotonic() < end, "it never came back"
            await asyncio.sleep(0.02)
        await cache.close()

    server.start()
    try:
        asyncio.run(run())
    finally:
        server.stop()


@pytest.mark.parametrize("is_up", [True, False])
def test_a_crowd_reads_the_list_of_events_once(cache: CacheServer, nobody: CacheServer, is_up: bool) -> None:
    loads = 0

    async def work(cache: Cache) -> list[bytes]:
        async def load() -> bytes:
            nonlocal loads
            loads += 1
            await asyncio.sleep(0.05)
            return b"page"

        events = EventCache(cache=cache)
        await cache.forget("events:1:77")
        return await asyncio.gather(*(events.first_page(limit=77, load=load, read=bytes) for _ in range(50)))

    assert with_cache(cache if is_up else nobody, work) == [b"page"] * 50
    assert loads == 1


def test_a_page_that_another_version_left_in_the_cache_is_read_anew(cache: CacheServer) -> None:
    def read(page: bytes) -> str:
        if page != b"ours":
            raise ValueError("no page of this version")
        return page.decode()

    async def work(cache: Cache) -> list[str]:
        async def load() -> bytes:
            return b"ours"

        events = EventCache(cache=cache)
        await cache.put("events:1:76", b"theirs", milliseconds=60_000)
        return [await events.first_page(limit=76, load=load, read=read) for _ in range(2)]

    assert with_cache(cache, work) == ["ours", "ours"]


def test_a_visitor_who_leaves_does_not_take_the_list_from_the_others(nobody: CacheServer) -> None:
    async def work(cache: Cache) -> bytes:
        reading = asyncio.Event()

        async def load() -> bytes:
            reading.set()
            await asyncio.sleep(0.05)
            return b"page"

        events = EventCache(cache=cache)
        leaving = asyncio.create_task(events.first_page(limit=50, load=load, read=bytes))
        await reading.wait()
        staying = asyncio.create_task(events.first_page(limit=50, load=load, read=bytes))
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    assert with_cache(nobody, work) == b"page"


def guess(api: RunningApi, email: str, *, forwarded: str) -> tuple[int, str | None]:
    reply = api.stranger().http.post(
        "/trpc/auth.login",
        json={"email": email, "password": "not the password"},
        headers={"x-forwarded-for": forwarded},
    )
    return reply.status_code, reply.headers.get("retry-after")


@pytest.mark.parametrize("is_up", [True, False])
def test_guessing_at_an_account_ends_after_ten_attempts_with_and_without_valkey(
    migrated_database: Database, cache: CacheServer, nobody: CacheServer, aws_is_down: None, is_up: bool
) -> None:
    api = RunningApi(api_environment(migrated_database, cache if is_up else nobody), migrated_database)
    api.start()
    try:
        email = f"{uuid4().hex}@example.org"
        # What the client itself wrote to the left changes nothing: only the last hop counts.
        outcomes = [guess(api, email, forwarded=f"10.0.0.{n}, 203.0.113.7")[0] for n in range(12)]

        assert outcomes == [401] * 10 + [429] * 2
        assert guess(api, email, forwarded="203.0.113.7")[1] is not None
        assert guess(api, email, forwarded="203.0.113.8")[0] == 401
        assert guess(api, f"{uuid4().hex}@example.org", forwarded="203.0.113.7")[0] == 401
    finally:
        api.stop()


def attempt(api: RunningApi, procedure: str, *, email: str, forwarded: str) -> int:
    """The status of an attempt from an address; those of a reset with a token name no account."""
    given = {
        "auth.login": {"email": email, "password": "not the password"},
        "auth.register": {"email": email, "name": "Ada", "password": "correct horse battery"},
        "auth.requestPasswordReset": {"email": email},
        "auth.resetPassword": {"token": "A" * 43, "password": "correct horse battery"},
    }[procedure]
    headers = {"x-forwarded-for": forwarded}
    return api.stranger().http.post(f"/trpc/{procedure}", json=given, headers=headers).status_code


BY_ADDRESS = {
    "auth.login": "LOGIN_BY_ADDRESS",
    "auth.register": "REGISTER_BY_ADDRESS",
    "auth.requestPasswordReset": "RESET_BY_ADDRESS",
    "auth.resetPassword": "RESET_BY_ADDRESS",
}
BY_ACCOUNT = {
    "auth.login": "LOGIN_BY_ACCOUNT",
    "auth.register": "REGISTER_BY_ACCOUNT",
    "auth.requestPasswordReset": "RESET_BY_ACCOUNT",
}


def test_every_procedure_without_a_session_that_takes_a_secret_or_sends_a_mail_is_limited() -> None:
    open_mutations = {one.name for one in registry() if one.kind is Kind.MUTATION and not one.session}

    assert set(BY_ADDRESS) == open_mutations - {"auth.logout"}
    assert set(BY_ACCOUNT) == {name for name in BY_ADDRESS if name != "auth.resetPassword"}


def _few(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    few = Limit(name=f"few-{uuid4()}", attempts=2, seconds=24 * 3600)
    monkeypatch.setattr(rate_limits, name, few)


def test_whoever_tries_many_accounts_from_one_address_is_stopped(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for procedure, limit in BY_ADDRESS.items():
        _few(monkeypatch, limit)

        def somebody(forwarded: str, procedure: str = procedure) -> int:
            return attempt(api, procedure, email=f"{uuid4().hex}@example.org", forwarded=forwarded)

        # The last hop is the address, whatever stands before it.
        codes = [somebody(f"198.51.100.{number}, 203.0.113.7") for number in range(4)]
        assert [code == 429 for code in codes] == [False, False, True, True], (procedure, codes)
        assert somebody("203.0.113.7, 203.0.113.8") != 429, procedure


def test_whoever_tries_one_account_from_many_addresses_is_stopped(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    for procedure, limit in BY_ACCOUNT.items():
        _few(monkeypatch, limit)
        email = f"{uuid4().hex}@example.org"

        codes = [attempt(api, procedure, email=email, forwarded=f"198.51.100.{number}") for number in range(4)]
        assert [code == 429 for code in codes] == [False, False, True, True], (procedure, codes)
        # However the address is spelt; and another account from there is not stopped.
        assert attempt(api, procedure, email=f" {email.upper()}", forwarded="203.0.113.1") == 429, procedure
        assert attempt(api, procedure, email=f"{uuid4().hex}@example.org", forwarded="198.51.100.3") != 429, procedure


def test_a_right_password_gives_back_no_attempt_at_other_accounts_or_from_elsewhere(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = f"{uuid4().hex}@example.org", f"{uuid4().hex}@example.org"
    api.customer(mine)
    for limit, other in (("LOGIN_BY_ADDRESS", "LOGIN_BY_ACCOUNT"), ("LOGIN_BY_ACCOUNT", "LOGIN_BY_ADDRESS")):
        _few(monkeypatch, limit)
        monkeypatch.setattr(rate_limits, other, Limit(name=f"many-{uuid4()}", attempts=100, seconds=24 * 3600))
        given = {"email": mine, "password": PASSWORD}
        headers = {"x-forwarded-for": "203.0.113.7"}
        assert attempt(api, "auth.login", email=mine, forwarded="203.0.113.7") == 401
        assert api.stranger().http.post("/trpc/auth.login", json=given, headers=headers).status_code == 200

        email = theirs if limit == "LOGIN_BY_ADDRESS" else mine
        assert attempt(api, "auth.login", email=email, forwarded="203.0.113.7") == 429, limit


def test_without_valkey_a_customer_books_without_waiting_for_it(
    migrated_database: Database, nobody: CacheServer, aws_is_down: None
) -> None:
    api = RunningApi(api_environment(migrated_database, nobody), migrated_database)
    api.start()
    try:
        event_id = api.event(api.organiser())
        ada = api.customer()
        began = time.perf_counter()
        assert ada.query("events.list").status_code == 200
        assert ada.book(event_id, "A-1").status_code == 200
        assert time.perf_counter() - began < 1.5
        assert ada.http.get("/readyz").status_code == 200
    finally:
        api.stop()
