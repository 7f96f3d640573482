"""The API's process dies at a COMMIT, or its clients leave by the thousand: what was acknowledged is kept, once."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.processes import wait_until
from tests.fixtures.api_process import PATIENCE_SECONDS, ApiProcess
from tests.fixtures.reply_dropper import Loss, reply_dropper
from tests.fixtures.running_api import RunningApi, api_environment
from tests.fixtures.servers import Cache

pytestmark = pytest.mark.faults

KEY = "the-same-key"


class Stage:
    """An event and a signed-in customer, made by an API that has ended since."""

    def __init__(self, api: RunningApi) -> None:
        self.event_id = api.event(api.organiser(), seats=20)
        self.cookie = f"session={api.customer().http.cookies['session']}"

    async def book(self, url: str, *seats: str, key: str = KEY) -> httpx.Response:
        wanted = {"eventId": self.event_id, "seats": list(seats), "idempotencyKey": key}
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
            return await http.post(f"{url}/trpc/bookings.create", json=wanted, headers={"cookie": self.cookie})


@pytest.fixture
def stage(api: RunningApi) -> Stage:
    made = Stage(api)
    api.stop()
    return made


def tables(api: RunningApi) -> tuple[int, ...]:
    """How many bookings, sold seats, messages and remembered keys there are."""
    counted = api.footprint()
    return tuple(counted[table] for table in ("bookings", "booked_seats", "outbox", "idempotency_keys"))


@pytest.mark.parametrize(("loss", "left"), [(Loss.NEVER, (0, 0, 0, 0)), (Loss.APPLIED, (1, 2, 1, 1))])
def test_a_process_that_dies_at_a_commit_leaves_all_of_a_booking_or_nothing(
    api: RunningApi, stage: Stage, cache: Cache, tmp_path: Path, loss: Loss, left: tuple[int, ...]
) -> None:
    async def body() -> None:
        async with reply_dropper(upstream_port=api.database.port) as proxy:
            environment = api_environment(api.database, cache)
            dying = ApiProcess({**environment, "DB_PORT": str(proxy.port)}, tmp_path / "dying.log")
            successor = None
            try:
                await asyncio.to_thread(dying.wait)
                proxy.losses = [loss]
                proxy.on_loss = lambda: dying.child.send(signal.SIGKILL)
                with pytest.raises(httpx.TransportError):
                    await stage.book(dying.url, "A-1", "A-2")
                assert dying.child.wait(PATIENCE_SECONDS) == -signal.SIGKILL
                assert await asyncio.to_thread(tables, api) == left

                successor = ApiProcess(api_environment(api.database, cache), tmp_path / "successor.log")
                await asyncio.to_thread(successor.wait)
                # The dead one's transaction may hold the event's lock until the server gives up on it.
                first = await stage.book(successor.url, "A-2", "A-1")
                again = await stage.book(successor.url, "A-1", "A-2")
            finally:
                for process in (dying, successor):
                    if process is not None:
                        await asyncio.to_thread(process.child.stop)
            assert (first.status_code, first.json()) == (200, again.json())
            assert await asyncio.to_thread(tables, api) == (1, 2, 1, 1)

    asyncio.run(body())


def test_a_thousand_clients_that_leave_cost_no_connection(
    api: RunningApi, stage: Stage, cache: Cache, tmp_path: Path
) -> None:
    process = ApiProcess(api_environment(api.database, cache), tmp_path / "api.log")

    async def leave(number: int) -> None:
        """Ask, and hang up before the answer: some at once, some while the database works."""
        body = b'{"eventId":"%s","seats":["A-%d"],"idempotencyKey":"%d"}' % (
            stage.event_id.encode(),
            number % 20 + 1,
            number,
        )
        head = [
            "POST /trpc/bookings.create HTTP/1.1",
            "host: a",
            f"cookie: {stage.cookie}",
            "content-type: application/json",
            f"content-length: {len(body)}",
        ]
        _, writer = await asyncio.open_connection("127.0.0.1", int(process.url.rpartition(":")[2]))
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        with suppress(ConnectionError):
            await writer.drain()
        await asyncio.sleep(number % 10 / 1_000)
        writer.transport.abort()

    async def crowd() -> None:
        for start in range(0, 1_000, 100):
            await asyncio.gather(*(leave(number) for number in range(start, start + 100)))

    async def all_connections_work() -> list[int]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            outcomes = await asyncio.gather(*(stage.book(process.url, "A-99", key=f"after-{n}") for n in range(30)))
        return [outcome.status_code for outcome in outcomes]

    try:
        process.wait()
        asyncio.run(crowd())
        wait_until("all is quiet", lambda: busy_connections(api) == [], seconds=PATIENCE_SECONDS, alive=process.child)
        # An unknown seat is refused by the database's word, so each of these needed a connection that works.
        assert asyncio.run(all_connections_work()) == [400] * 30
        assert len(connections(api)) <= 10
    finally:
        assert process.child.stop() == 0
    # Whoever left was booked or was not, but never by half.
    bookings, seats, messages, keys = tables(api)
    assert bookings == seats == messages == keys <= 20


def connections(api: RunningApi) -> list[Any]:
    return api.sql(
        "select state, xact_start from pg_stat_activity"
        " where application_name = 'minitickets-api' and datname = current_database()"
    )


def busy_connections(api: RunningApi) -> list[Any]:
    return [row for row in connections(api) if row["state"] != "idle"]


def test_no_id_comes_from_a_sequence_that_a_restored_database_would_repeat(
    api: RunningApi,
) -> None:
    # Serial and identity columns have a sequence too.
    sequences = api.sql("select relname from pg_class where relkind = 'S'")
    defaults = api.sql(
        "select table_name, column_name from information_schema.columns where column_default ~ 'nextval'"
    )

    assert (sequences, defaults) == ([], [])
