"""SNS is down for an hour: the real relay on a real database, whose rows are moved back as the hour goes by."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from apps.worker.tests.worker_under_test import booking
from minitickets_api.services.outbox import RelayTiming, start_outbox_relay
from minitickets_api.services.topic import SENT, Outcome, Publication, Verdict
from tests.fixtures.catalogue import opened
from tests.fixtures.servers import Database

pytestmark = pytest.mark.faults

AN_HOUR, A_MINUTE = 60, 60.0  # in minutes, in seconds
BACKLOG = 12  # more than a batch
_DOWN = Outcome(verdict=Verdict.DELAYED, reason="EndpointConnectionError")
# The relay's own pauses between two claims, which the clock of the database does not know: as good as none.
_QUICK = RelayTiming(idle=0.01, outage_pause=0.01)
_SECONDS = 20


class Topic:
    """SNS, which is down until ``is_up``; counts what it was asked to publish."""

    def __init__(self) -> None:
        self.is_up = False
        self.asked: Counter[str] = Counter()
        self.published: Counter[str] = Counter()

    def prepare(self) -> None:
        """There is nothing to prepare."""

    def publish(self, publications: Sequence[Publication]) -> Mapping[str, Outcome]:
        ids = [publication.message_id for publication in publications]
        self.asked.update(ids)
        if self.is_up:
            self.published.update(ids)
        return dict.fromkeys(ids, SENT if self.is_up else _DOWN)


class Outbox:
    """The rows, and the clock that they see."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool

    async def add(self) -> str:
        """A row as a booking commits it."""
        outbox_id, booking_id = uuid.uuid4(), str(uuid.uuid4())
        await self.pool.execute(
            "insert into outbox (outbox_id, body, correlation_id) values ($1, $2, 'test')",
            outbox_id,
            booking(booking_id).to_json(),
        )
        return str(outbox_id)

    async def pass_time(self, seconds: float) -> None:
        await self.pool.execute(
            "update outbox set created_at = created_at - make_interval(secs => $1),"
            " next_attempt_at = next_attempt_at - make_interval(secs => $1),"
            " lease_until = lease_until - make_interval(secs => $1) where sent_at is null",
            seconds,
        )

    async def until_nothing_is_due(self) -> None:
        """Until every row was tried that could be, and its outcome is written down."""
        due = (
            "select count(*) from outbox where sent_at is null and parked_at is null"
            " and (owner is not null or next_attempt_at <= clock_timestamp())"
        )
        async with asyncio.timeout(_SECONDS):
            while await self.pool.fetchval(due):  # noqa: ASYNC110 - the state is the database's
                await asyncio.sleep(0.01)

    async def counted(self) -> tuple[int, int, int]:
        """How many rows are sent, wait, are parked."""
        row = await self.pool.fetchrow(
            "select count(*) filter (where sent_at is not null) as sent,"
            " count(*) filter (where sent_at is null and parked_at is null) as waiting,"
            " count(*) filter (where parked_at is not null) as parked from outbox"
        )
        return row["sent"], row["waiting"], row["parked"]


def test_an_hour_without_sns_parks_nothing_tries_each_row_every_minute_and_drains_within_one(
    migrated_database: Database,
) -> None:
    async def scenario() -> None:
        topic = Topic()
        async with opened(migrated_database) as pool:
            outbox = Outbox(pool)
            rows = [await outbox.add() for _ in range(BACKLOG)]
            relay = start_outbox_relay(
                pool=pool,
                topic=topic,
                timing=_QUICK,
                jitter=Random(6).random,  # noqa: S311 - an outage that can be repeated
            )
            longest = 0.0
            for minute in range(AN_HOUR):
                await outbox.until_nothing_is_due()
                waits = await pool.fetchval(
                    "select extract(epoch from max(next_attempt_at) - clock_timestamp())::float8 from outbox"
                    " where sent_at is null"
                )
                longest = max(longest, waits)
                before = Counter(topic.asked)
                await outbox.pass_time(A_MINUTE)
                if minute % 10 == 0:
                    rows.append(await outbox.add())  # people go on booking
                await outbox.until_nothing_is_due()
                assert all(topic.asked[row] > before[row] for row in rows), f"minute {minute}"
            assert 30 < longest <= A_MINUTE
            assert await outbox.counted() == (0, len(rows), 0)
            assert (relay.is_alive, relay.parked_count) == (True, 0)
            # Not at every turn either: what waits is backed off, to half a minute at least.
            assert max(topic.asked.values()) <= 10 + 2 * AN_HOUR

            topic.is_up = True
            await outbox.pass_time(A_MINUTE)
            await outbox.until_nothing_is_due()
            await relay.stop()

            assert await outbox.counted() == (len(rows), 0, 0)
            assert topic.published == dict.fromkeys(rows, 1)

    asyncio.run(scenario())
