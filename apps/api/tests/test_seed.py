"""The seed command: what a document puts into the database, and what it refuses."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from minitickets_api.seed import SeedDocument, SeedError, seed
from minitickets_api.services.passwords import Passwords
from minitickets_api.venue_time import local_start, moment_at
from tests.fixtures.catalogue import opened
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

EVENT_ID = "5d0ea0a6-3c6e-4f0c-9b2f-6d0a3b1c7e11"


def document(**changes: Any) -> dict[str, Any]:
    event = {
        "eventId": EVENT_ID,
        "title": "An Evening of Engines",
        "venue": "Town Hall",
        "startsAt": "2026-12-31T20:00:00",
        "timeZone": "America/Los_Angeles",
        "rows": [{"row": "A", "seats": 3}, {"row": "B", "seats": 2}],
        "priceMinor": 2500,
        "currency": "USD",
        "organiser": "Grace@example.com",
    }
    return {
        "accounts": [
            {"email": "grace@example.com", "name": "Grace", "password": "correct horse", "organiser": True},
            {"email": "ada@example.com", "name": "Ada", "password": "battery staple", "organiser": False},
        ],
        "events": [event | changes],
    }


def run_seed(database: Database, text: str) -> "subprocess.CompletedProcess[str]":
    variables = {
        "PATH": os.environ["PATH"],
        "DB_HOST": database.host,
        "DB_PORT": str(database.port),
        "DB_NAME": database.name,
        "DB_USER": database.user,
        "DB_PASSWORD": database.password,
        "DB_SSLMODE": "disable",
        "SEED": text,
    }
    return subprocess.run(
        [sys.executable, "-m", "minitickets_api.seed"], env=variables, capture_output=True, text=True, timeout=60
    )


def test_the_command_prints_one_line_that_says_what_is_there_and_repeats_it(migrated_database: Database) -> None:
    first = run_seed(migrated_database, json.dumps(document()))
    assert first.returncode == 0, first.stderr
    assert first.stdout.count("\n") == 1
    printed = json.loads(first.stdout)
    assert [account["email"] for account in printed["accounts"]] == ["grace@example.com", "ada@example.com"]
    assert printed["events"] == [
        {"eventId": EVENT_ID, "title": "An Evening of Engines", "seats": ["A-1", "A-2", "A-3", "B-1", "B-2"]}
    ]
    assert "correct horse" not in first.stdout + first.stderr
    second = run_seed(migrated_database, json.dumps(document()))
    assert (second.returncode, second.stdout) == (0, first.stdout)


def test_a_local_start_is_the_venues_own_clock(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            await seed(pool, SeedDocument.from_json(json.dumps(document())))
            row = await pool.fetchrow("select starts_at, time_zone, published_at from events")
            assert local_start(row["starts_at"], row["time_zone"]) == "2026-12-31T20:00:00-08:00"
            assert row["published_at"] is not None

    asyncio.run(run())


def test_an_event_without_an_id_keeps_the_one_it_was_given(migrated_database: Database) -> None:
    async def run() -> None:
        nameless = document(eventId=None)
        async with opened(migrated_database) as pool:
            seeded = [await seed(pool, SeedDocument.from_json(json.dumps(nameless))) for _ in range(2)]
            assert seeded[0] == seeded[1]
            assert await pool.fetchval("select count(*) from events") == 1

    asyncio.run(run())


def test_a_document_says_where_the_aisles_are(migrated_database: Database) -> None:
    async def aisles(pool: Any, *rows: dict[str, Any]) -> list[str]:
        await seed(pool, SeedDocument.from_json(json.dumps(document(rows=rows))))
        found = await pool.fetch("select seat from seats where aisle_after order by position")
        return [row["seat"] for row in found]

    async def run() -> None:
        async with opened(migrated_database) as pool:
            a, b = {"row": "A", "seats": 3, "aisleAfter": [1]}, {"row": "B", "seats": 2}
            assert await aisles(pool, a, b) == ["A-1"]
            assert await aisles(pool, a | {"aisleAfter": [2]}, b | {"aisleAfter": [1]}) == ["A-2", "B-1"]
            with pytest.raises(SeedError, match=r"aisleAfter: row B has room for an aisle after seats 1 to 1"):
                await aisles(pool, a, b | {"aisleAfter": [2]})

    asyncio.run(run())


def test_a_changed_document_updates_and_removes_nothing(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            await seed(pool, SeedDocument.from_json(json.dumps(document())))
            changed = document(title="Another Title", rows=[{"row": "A", "seats": 1}, {"row": "C", "seats": 1}])
            changed["accounts"][1] |= {"password": "another password", "name": "Ada L."}
            await pool.execute(
                "insert into sessions (token_hash, user_id, expires_at)"
                " select convert_to(email, 'UTF8'), user_id, now() + interval '1 day' from users"
            )
            seeded = await seed(pool, SeedDocument.from_json(json.dumps(changed)))
            assert seeded.events[0].title == "Another Title"
            assert set(seeded.events[0].seats) == {"A-1", "A-2", "A-3", "B-1", "B-2", "C-1"}
            ada = await pool.fetchrow("select * from users where email = 'ada@example.com'")
            assert ada["name"] == "Ada L."
            passwords = Passwords()
            assert await passwords.is_right("another password", ada["password_hash"])
            assert not await passwords.is_right("battery staple", ada["password_hash"])
            passwords.close()
            # A changed password ends its own sessions, and no others.
            left = await pool.fetchval("select convert_from(token_hash, 'UTF8') from sessions")
            assert left == "grace@example.com"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"timeZone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"startsAt": "2026-03-08T02:30:00"}, "clocks"),
        ({"startsAt": "soon"}, "events.0.startsAt"),
        ({"rows": []}, "events.0.rows"),
        ({"rows": [{"row": "A", "seats": 1}, {"row": "A", "seats": 2}]}, "row twice"),
        ({"rows": [{"row": "a,b", "seats": 1}]}, "events.0.rows.0.row"),
        ({"rows": [{"row": f"R{n}", "seats": 999} for n in range(21)]}, "20000"),
        ({"priceMinor": -1}, "events.0.priceMinor"),
        ({"currency": "usd"}, "events.0.currency"),
        ({"title": "a\nb"}, "events.0.title"),
        ({"organiser": "nobody"}, "events.0.organiser"),
        ({"surprise": 1}, "events.0.surprise"),
    ],
)
def test_a_wrong_event_is_named_by_its_place(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(SeedError, match=r"^seed: ") as caught:
        SeedDocument.from_json(json.dumps(document(**changes)))
    assert place in str(caught.value)


def test_a_wrong_document_changes_nothing_and_shows_no_password(migrated_database: Database) -> None:
    wrong = document()
    wrong["accounts"].append({"email": "x", "name": "X", "password": "canary1", "organiser": False})
    done = run_seed(migrated_database, json.dumps(wrong))
    assert done.returncode == 1
    assert "accounts.2.email" in done.stderr
    assert "accounts.2.password" in done.stderr
    assert "canary1" not in done.stderr + done.stdout
    assert done.stderr.count("\n") == 1
    assert run_seed(migrated_database, "{").returncode == 1


def test_an_event_of_nobody_takes_its_accounts_back_with_it(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            with pytest.raises(SeedError, match="add it to accounts"):
                await seed(pool, SeedDocument.from_json(json.dumps(document(organiser="ada@example.com"))))
            assert await pool.fetchval("select count(*) from users") == 0

    asyncio.run(run())


def test_a_database_without_schema_says_what_to_run_first(empty_database: Database) -> None:
    done = run_seed(empty_database, json.dumps(document()))
    assert done.returncode == 1
    assert "minitickets_api.migrate" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_hour_that_comes_twice_is_the_first_and_an_offset_decides() -> None:
    twice = datetime(2026, 11, 1, 1, 30)
    assert moment_at(twice, "America/Los_Angeles").astimezone(UTC).hour == 8
    second = datetime.fromisoformat("2026-11-01T01:30:00-08:00")
    assert moment_at(second, "America/Los_Angeles").astimezone(UTC).hour == 9
