"""The database goes back to an older snapshot, while mails, jobs, tickets and calendars go on with what they know."""

import asyncio
import io
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from icalendar import Calendar

from apps.worker.tests.worker_under_test import Worker, record
from local.servers.postgres import PostgresServer
from minitickets_api.services.accounts import User
from minitickets_api.services.bookings import BookingCustomer, BookingDesk
from minitickets_api.services.own_events import EventChanges, OwnEvents
from minitickets_contracts.token import SigningKeys
from minitickets_tickets.batch import process_batch
from tests.fixtures.catalogue import add_customer, add_event, opened
from tests.fixtures.servers import Database
from tests.fixtures.ticket_fakes import FakeAws, FakeProcess

pytestmark = pytest.mark.faults

STARTS_AT = datetime(2027, 1, 1, 4, 0, tzinfo=UTC)
MOVED, MOVED_ELSEWHERE = datetime(2027, 1, 2, 21, 0), datetime(2027, 3, 5, 19, 30)  # at the venue
KEYS = SigningKeys("k1", {"k1": "key-of-another-life-" + "a" * 32})


class Consumers:
    """Both functions, whose memory no rewind touches."""

    def __init__(self) -> None:
        self.worker = Worker()
        self.tickets = FakeAws(keys=KEYS)
        self._log = Logger(service=f"tickets-{uuid.uuid4()}", stream=io.StringIO())
        self._seen: set[str] = set()

    async def take_all(self, pool: Any) -> list[str]:
        """Every message of the outbox that was not there before, to both; the ids of the new ones."""
        rows = await pool.fetch("select outbox_id::text as id, body from outbox order by created_at")
        fresh = [row for row in rows if row["id"] not in self._seen]
        for row in fresh:
            self._seen.add(row["id"])
            event = {"Records": [record(row["body"])]}
            assert self.worker.consume(*event["Records"]) == []
            issue = FakeProcess(aws=self.tickets).issuer().issue
            response = process_batch(event, issue=issue, logger=self._log, seconds_left=lambda: 30.0)
            assert response == {"batchItemFailures": []}
        return [row["id"] for row in fresh]

    def sequences(self) -> list[int]:
        """The SEQUENCE of each calendar file that was mailed, in their order."""
        files = [mail["Content"]["Simple"]["Attachments"][0]["RawContent"] for mail in self.worker.ses.accepted]
        entries: list[Any] = [Calendar.from_ical(file).walk("VEVENT")[0] for file in files]
        return [int(entry["SEQUENCE"]) for entry in entries]


class Life:
    """What people do on one life of the database."""

    def __init__(self, pool: Any, people: "People", *, rewound_at: datetime | None = None) -> None:
        self.pool = pool
        self._people = people
        self._desk = BookingDesk(pool=pool, on_commit=lambda: None)
        self._own_events = OwnEvents(pool=pool, on_commit=lambda: None, rewound_at=rewound_at)

    async def book(self, seat: str) -> str:
        """By the same person under the same key in each life: a browser may still have it."""
        view = await self._desk.create(
            customer=self._people.customer,
            event_id=self._people.event_id,
            seats=[seat],
            idempotency_key=seat,
            correlation_id="booking",
        )
        return view.booking_id

    async def resend(self, booking_id: str) -> None:
        await self._desk.request_mail(
            user=User(**vars(self._people.customer), is_organiser=False),
            booking_id=booking_id,
            idempotency_key="once-more",
            correlation_id="resending",
        )

    async def move(self, starts_at: datetime) -> None:
        await self._own_events.update(
            organiser=self._people.organiser,
            event_id=self._people.event_id,
            changes=EventChanges(starts_at=starts_at),
            idempotency_key="move",
            correlation_id="moving",
        )

    async def close(self) -> None:
        await self._desk.close()


class People:
    """An event, whose it is, and who books it; from before the snapshot."""

    event_id: str
    organiser: User
    customer: BookingCustomer

    async def come(self, pool: Any) -> None:
        self.event_id = await add_event(pool, seats=["A-1", "A-2"], starts_at=STARTS_AT)
        row = await pool.fetchrow("select user_id::text, email, name from events join users on user_id = organiser_id")
        self.organiser = User(**row, is_organiser=True)
        self.customer = await add_customer(pool)


def test_no_message_of_a_restored_database_is_taken_for_one_of_the_life_that_is_gone(
    migrated_database: Database, postgres_server: PostgresServer
) -> None:
    people, consumers = People(), Consumers()
    snapshot = f"{migrated_database.name}_snapshot"

    async def in_a_life(
        what: Callable[[Life], Awaitable[Any]], *, rewound_at: datetime | None = None
    ) -> tuple[Any, list[str]]:
        async with opened(migrated_database) as pool:
            if rewound_at is None and not hasattr(people, "event_id"):
                await people.come(pool)
            life = Life(pool, people, rewound_at=rewound_at)
            result = await what(life)
            await life.close()
            return result, await consumers.take_all(pool)

    def copy(source: str, target: str) -> None:
        postgres_server.run_sql(f"create database {target} template {source} owner {migrated_database.user}")

    kept, _ = asyncio.run(in_a_life(lambda life: life.book("A-1")))
    copy(migrated_database.name, snapshot)

    async def go_on(life: Life) -> str:
        booking_id = await life.book("A-2")
        await life.resend(kept)
        await life.move(MOVED)
        return booking_id

    lost, of_the_lost_life = asyncio.run(in_a_life(go_on))
    jobs = set(consumers.worker.table.items)
    assert (len(of_the_lost_life), len(jobs)) == (4, 5)
    postgres_server.run_sql(f"drop database {migrated_database.name} with (force)")
    copy(snapshot, migrated_database.name)
    postgres_server.run_sql(f"drop database {snapshot}")

    async def do_it_again(life: Life) -> str:
        booking_id = await life.book("A-2")
        await life.resend(kept)
        await life.move(MOVED_ELSEWHERE)
        return booking_id

    again, of_the_new_life = asyncio.run(in_a_life(do_it_again, rewound_at=datetime.now(UTC) - timedelta(seconds=1)))

    assert again not in (kept, lost), "the same wish under the same key is another booking"
    assert set(of_the_new_life).isdisjoint(of_the_lost_life)
    assert len(of_the_new_life) == 4
    mailed = consumers.worker.ses.accepted
    assert len(mailed) == 1 + 4 + 4, "each message of each life was mailed, none taken for an old one"
    assert len(consumers.worker.table.items) == len(mailed)
    assert "mail skipped as duplicate" not in consumers.worker.logged_events()
    # What a calendar holds of the lost life is older than what it is sent now.
    assert min(consumers.sequences()[-2:]) > max(consumers.sequences()[:-4])
    # Tickets too: of the kept booking and the new one they show the new date, and the lost one has its own still.
    starts = {ticket_id: item["eventStartsAt"]["S"][:16] for (_, ticket_id), item in consumers.tickets.items.items()}
    assert starts == {
        f"{kept}:A-1": MOVED_ELSEWHERE.isoformat()[:16],
        f"{again}:A-2": MOVED_ELSEWHERE.isoformat()[:16],
        f"{lost}:A-2": MOVED.isoformat()[:16],
    }
