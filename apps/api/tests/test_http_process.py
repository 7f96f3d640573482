"""The process that serves: how it starts, ends, and lives through a database that goes away."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local.processes import wait_until
from local.servers.postgres import PostgresServer
from tests.fixtures.api_process import PATIENCE_SECONDS, ApiProcess
from tests.fixtures.running_api import RunningApi, api_environment
from tests.fixtures.servers import Cache, Database

pytestmark = pytest.mark.integration


@pytest.fixture
def environment(migrated_database: Database, cache: Cache) -> dict[str, str]:
    return api_environment(migrated_database, cache)


@pytest.fixture
def process(environment: dict[str, str], tmp_path: Path) -> Iterator[ApiProcess]:
    running = ApiProcess(environment, tmp_path / "api.log")
    running.wait()
    yield running
    running.child.stop()


def test_a_wrong_environment_ends_it_at_once_with_one_line(environment: dict[str, str], tmp_path: Path) -> None:
    del environment["DB_HOST"]
    process = ApiProcess(environment, tmp_path / "api.log")

    assert process.child.wait(PATIENCE_SECONDS) == 2
    assert process.child.log_tail() == "environment: DB_HOST is missing (docs/interfaces.md lists every variable)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_exit_code_0(process: ApiProcess, number: signal.Signals) -> None:
    process.child.send(number)

    assert process.child.wait(PATIENCE_SECONDS) == 0
    assert '"message": "ended"' in process.child.log_tail()


def test_a_signal_under_load_fails_no_request_that_was_taken(process: ApiProcess) -> None:
    seen: Counter[str] = Counter()

    def load() -> None:
        with httpx.Client(base_url=process.url, timeout=PATIENCE_SECONDS) as client:
            while True:
                try:
                    reply = client.get("/trpc/events.list")
                except httpx.TransportError as error:
                    seen[type(error).__name__] += 1
                    return
                seen[str(reply.status_code)] += 1
                if reply.headers.get("connection") == "close":
                    return  # told in time; a load balancer goes elsewhere now

    loaders = [threading.Thread(target=load) for _ in range(8)]
    for loader in loaders:
        loader.start()
    wait_until("there is load", lambda: seen["200"] > 100, seconds=PATIENCE_SECONDS)
    began = time.monotonic()
    process.child.send(signal.SIGTERM)

    assert process.child.wait(PATIENCE_SECONDS) == 0
    assert time.monotonic() - began < 20
    for loader in loaders:
        loader.join()
    assert set(seen) == {"200"}


def test_a_password_that_was_rotated_ends_it(
    process: ApiProcess, postgres_server: PostgresServer, migrated_database: Database
) -> None:
    user = migrated_database.user
    postgres_server.run_sql(f"alter role {user} password 'rotated'")
    try:
        # Open connections live on; the next one is refused.
        postgres_server.run_sql(
            f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{migrated_database.name}'"  # noqa: S608 - names of ours, no input
        )
        assert process.child.wait(PATIENCE_SECONDS) == 1
    finally:
        postgres_server.run_sql(f"alter role {user} password '{migrated_database.password}'")

    assert "rotated" in process.child.log_tail(40)


def test_a_database_that_restarts_is_missed_and_found_again(api: RunningApi, postgres_server: PostgresServer) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer()
    assert ada.book(event_id, "A-1", key="before").status_code == 200

    postgres_server.stop()
    try:
        missed = ada.book(event_id, "A-2", key="meanwhile")
        unready = ada.http.get("/readyz")
        alive = ada.http.get("/healthz")
    finally:
        postgres_server.start()

    assert (missed.status_code, missed.json()["error"]["data"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert unready.status_code == 503
    assert unready.json()["problems"] == ["the database does not answer"]
    assert alive.status_code == 200
    wait_until("it is ready again", lambda: ada.http.get("/readyz").status_code == 200, seconds=PATIENCE_SECONDS)
    assert ada.book(event_id, "A-2", key="meanwhile").status_code == 200
    assert [booking["seats"] for booking in ada.query("bookings.mine").json()["result"]["data"]["bookings"]] == [
        ["A-2"],
        ["A-1"],
    ]


def test_a_database_that_only_reads_is_told_as_an_outage_and_left_behind(
    api: RunningApi, postgres_server: PostgresServer
) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer()
    name = api.database.name

    postgres_server.run_sql(f"alter database {name} set default_transaction_read_only = on")
    postgres_server.run_sql(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")  # noqa: S608 - names of ours, no input
    # A cut connection may be met first; both are outages to the customer.
    codes = {ada.book(event_id, "A-1").status_code for _ in range(3)}
    postgres_server.run_sql(f"alter database {name} set default_transaction_read_only = off")

    assert codes == {503}
    wait_until("bookings work again", lambda: ada.book(event_id, "A-1").status_code == 200, seconds=PATIENCE_SECONDS)
