"""The relay on a real PostgreSQL, with a topic that does what a test tells it to."""

import asyncio
import json
import logging
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from minitickets_api.services.bookings import BookingDesk
from minitickets_api.services.outbox import OutboxRelay, RelayTiming, backoff_seconds, start_outbox_relay
from minitickets_api.services.outbox_claims import CLAIM, Delay, OutboxClaims
from minitickets_api.services.retention import purge
from minitickets_api.services.topic import MAX_BYTES, MAX_MESSAGES, SENT, Outcome, Publication, Verdict
from tests.fixtures.catalogue import add_customer, add_event, opened
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

DELAYED = Outcome(verdict=Verdict.DELAYED, reason="the topic is down")
IMPOSSIBLE = Outcome(verdict=Verdict.IMPOSSIBLE, reason="InvalidParameter: too odd")
QUICK = RelayTiming(idle=0.02, outage_pause=0.05)
PATIENT = RelayTiming(idle=60)

Answer = Callable[[Publication], Outcome]


class ScriptedTopic:
    """Answers each publication with ``answer``, and remembers every call; a thread waits while ``gate`` is closed."""

    def __init__(self, answer: Answer = lambda _: SENT) -> None:
        self.answer = answer
        self.calls: list[list[Publication]] = []
        self.gate = threading.Event()
        self.gate.set()
        self._lock = threading.Lock()

    def prepare(self) -> None:
        pass

    def publish(self, publications: Sequence[Publication]) -> Mapping[str, Outcome]:
        with self._lock:
            self.calls.append(list(publications))
        self.gate.wait(timeout=20)
        return {publication.message_id: self.answer(publication) for publication in publications}

    @property
    def message_ids(self) -> list[str]:
        with self._lock:
            return [publication.message_id for call in self.calls for publication in call]


def body(size: int = 100) -> str:
    empty = json.dumps({"type": "booking.confirmed", "padding": ""})
    return json.dumps({"type": "booking.confirmed", "padding": "x" * max(0, size - len(empty))})


async def add_row(pool: Any, text: str | None = None, *, age: timedelta = timedelta(0)) -> str:
    outbox_id = uuid.uuid4()
    await pool.execute(
        "insert into outbox (outbox_id, body, correlation_id, created_at, next_attempt_at)"
        " values ($1, $2, $3, now() - $4::interval, now() - $4::interval)",
        outbox_id,
        body() if text is None else text,
        f"correlation-{outbox_id}",
        age,
    )
    return str(outbox_id)


async def row_of(pool: Any, outbox_id: str) -> Any:
    return await pool.fetchrow("select * from outbox where outbox_id = $1", uuid.UUID(outbox_id))


async def unsent(pool: Any) -> int:
    count: int = await pool.fetchval("select count(*) from outbox where sent_at is null and parked_at is null")
    return count


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - the state is the database's
            await asyncio.sleep(0.01)


async def until_drained(pool: Any, *, seconds: float = 10) -> None:
    async def is_drained() -> bool:
        return await unsent(pool) == 0

    await until(is_drained, seconds=seconds)


def relay(pool: Any, topic: ScriptedTopic, timing: RelayTiming = QUICK) -> OutboxRelay:
    return start_outbox_relay(pool=pool, topic=topic, timing=timing, jitter=lambda: 1.0)


def run(database: Database, scenario: Callable[[Any], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with opened(database) as pool:
            await scenario(pool)

    asyncio.run(whole())


def test_a_booking_is_published_at_once_without_waiting_for_a_poll(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        topic = ScriptedTopic()
        running = relay(pool, topic, PATIENT)
        desk = BookingDesk(pool=pool, on_commit=running.wake)
        event_id, customer = await add_event(pool, seats=["A-1", "A-2"]), await add_customer(pool)
        for seat in ("A-1", "A-2"):
            view = await desk.create(
                customer=customer, event_id=event_id, seats=[seat], idempotency_key=seat, correlation_id="c"
            )
            await until_drained(pool, seconds=3)
            assert json.loads(topic.calls[-1][0].body)["bookingId"] == view.booking_id
        await desk.close()
        await running.stop()

    run(migrated_database, scenario)


def test_what_another_process_committed_is_found_by_polling(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        topic = ScriptedTopic()
        running = relay(pool, topic)
        outbox_id = await add_row(pool)
        await until_drained(pool)
        assert topic.message_ids == [outbox_id]
        await running.stop()

    run(migrated_database, scenario)


def test_a_claim_is_one_publish_batch_by_count_and_by_bytes(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        for size in (90_000, 90_000, 90_000, 190_000, 70_000):
            await add_row(pool, body(size))
        for _ in range(25):
            await add_row(pool)
        topic = ScriptedTopic()
        running = relay(pool, topic)
        await until_drained(pool)
        await running.stop()
        assert sorted(topic.message_ids) == sorted(set(topic.message_ids))
        assert len(topic.message_ids) == 30
        for call in topic.calls:
            assert len(call) <= 10
            assert sum(len(publication.body.encode()) for publication in call) <= MAX_BYTES
        assert max(len(call) for call in topic.calls) == 10

    run(migrated_database, scenario)


def test_of_a_batch_that_failed_in_part_only_the_rest_comes_again(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        ids = [await add_row(pool) for _ in range(5)]
        failing = set(ids[1:3])
        topic = ScriptedTopic(lambda publication: DELAYED if publication.message_id in failing else SENT)
        running = relay(pool, topic)

        async def rest_is_left() -> bool:
            return await unsent(pool) == 2 and (await row_of(pool, ids[1]))["last_error"] is not None

        await until(rest_is_left)
        for outbox_id in failing:
            row = await row_of(pool, outbox_id)
            assert row["last_error"] == DELAYED.reason
            assert row["owner"] is None
        failing.clear()
        await until_drained(pool)
        await running.stop()
        assert sorted(topic.message_ids) == sorted([*ids, *ids[1:3]])

    run(migrated_database, scenario)


def test_an_outage_parks_nothing_and_drains_afterwards(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        for _ in range(40):
            await add_row(pool)
        topic = ScriptedTopic(lambda _: DELAYED)
        running = relay(pool, topic)

        async def all_have_failed() -> bool:
            return bool(await pool.fetchval("select bool_and(last_error is not null) from outbox"))

        await until(all_have_failed)
        assert running.is_alive
        assert running.parked_count == 0
        assert await pool.fetchval("select bool_and(next_attempt_at > created_at) from outbox")
        # As after an hour of it: hundreds of attempts later, a row still comes again within a minute.
        await pool.execute("update outbox set attempts = 500, next_attempt_at = now()")
        topic.calls.clear()

        async def all_have_failed_again() -> bool:
            return bool(await pool.fetchval("select bool_and(attempts > 500 and owner is null) from outbox"))

        await until(all_have_failed_again)
        wait = await pool.fetchval("select max(next_attempt_at) - clock_timestamp() from outbox")
        assert timedelta(seconds=20) < wait <= timedelta(seconds=60)
        assert await pool.fetchval("select count(*) from outbox where parked_at is not null") == 0
        topic.answer = lambda _: SENT
        await pool.execute("update outbox set next_attempt_at = now()")
        await until_drained(pool)
        await running.stop()

    run(migrated_database, scenario)


def test_in_an_outage_the_backlog_is_not_tried_row_by_row_at_full_speed(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        for _ in range(300):
            await add_row(pool)
        topic = ScriptedTopic(lambda _: DELAYED)
        running = relay(pool, topic, RelayTiming(idle=0.01, outage_pause=5))

        async def has_failed() -> bool:
            return bool(await pool.fetchval("select count(*) >= 10 from outbox where last_error is not null"))

        await until(has_failed)
        await asyncio.sleep(0.3)  # long enough for the whole backlog, were nothing holding it back
        assert len(topic.calls) <= 8
        async with asyncio.timeout(2):
            await running.stop()

    run(migrated_database, scenario)


def test_a_row_that_can_never_be_published_is_parked_and_the_rows_around_it_flow(
    migrated_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(pool: Any) -> None:
        ids = [await add_row(pool) for _ in range(5)]
        topic = ScriptedTopic(lambda publication: IMPOSSIBLE if publication.message_id == ids[2] else SENT)
        running = relay(pool, topic)
        await until_drained(pool)
        await running.stop()
        parked = await row_of(pool, ids[2])
        assert parked["parked_at"] is not None
        assert parked["sent_at"] is None
        assert parked["last_error"] == IMPOSSIBLE.reason
        assert topic.message_ids.count(ids[2]) == 1
        assert running.parked_count == 1
        assert await pool.fetchval("select count(*) from outbox where sent_at is not null") == 4
        records = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert [record.__dict__["correlation_id"] for record in records] == [f"correlation-{ids[2]}"]

    run(migrated_database, scenario)


def test_each_publication_is_logged_with_its_correlation_and_without_its_body(
    migrated_database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="minitickets_api")

    async def scenario(pool: Any) -> None:
        outbox_id = await add_row(pool, json.dumps({"type": "booking.confirmed", "email": "canary@example.com"}))
        running = relay(pool, ScriptedTopic())
        await until_drained(pool)
        await running.stop()
        records = [record for record in caplog.records if record.message == "booking event published"]
        assert [record.__dict__["correlation_id"] for record in records] == [f"correlation-{outbox_id}"]
        assert not any("canary" in str(record.__dict__) for record in caplog.records)

    run(migrated_database, scenario)


def test_two_relays_share_the_work_without_overlap(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        ids = [await add_row(pool) for _ in range(200)]
        topics = [ScriptedTopic(), ScriptedTopic()]
        running = [relay(pool, topic) for topic in topics]
        await until_drained(pool)
        for each in running:
            await each.stop()
        assert sorted(topics[0].message_ids + topics[1].message_ids) == sorted(ids)

    run(migrated_database, scenario)


def test_while_one_relay_is_paused_the_other_makes_progress(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        paused_topic = ScriptedTopic()
        paused_topic.gate.clear()
        paused = relay(pool, paused_topic, RelayTiming(idle=0.02, lease=0.5))
        held = await add_row(pool)

        async def is_held() -> bool:
            return paused_topic.message_ids == [held]

        await until(is_held)
        other_topic = ScriptedTopic()
        other = relay(pool, other_topic)
        fresh = await add_row(pool)

        async def other_has_both() -> bool:
            return {fresh, held} <= {*other_topic.message_ids, *paused_topic.message_ids[1:]}

        await until(other_has_both)  # what is held, after its lease; at most once more
        paused_topic.gate.set()
        await until_drained(pool)
        for each in (paused, other):
            await each.stop()
        assert (paused_topic.message_ids + other_topic.message_ids).count(held) == 2

    run(migrated_database, scenario)


def test_a_relay_that_hangs_in_its_claim_holds_up_no_other(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        hanging = [await add_row(pool) for _ in range(MAX_MESSAGES)]
        async with pool.acquire() as paused:
            await paused.execute("begin; set local idle_in_transaction_session_timeout = 0")
            claimed = await paused.fetch(CLAIM, uuid.uuid4(), timedelta(seconds=30), MAX_MESSAGES, MAX_BYTES)
            assert {str(row["outbox_id"]) for row in claimed} == set(hanging)
            fresh = await add_row(pool)
            topic = ScriptedTopic()
            other = relay(pool, topic)
            began = time.monotonic()
            while not topic.message_ids and time.monotonic() - began < 3:  # noqa: ASYNC110 - it is set in a thread
                await asyncio.sleep(0.01)
            published_meanwhile = list(topic.message_ids)
            await paused.execute("rollback")  # its process died: the rows were never claimed
        await until_drained(pool)
        await other.stop()
        assert published_meanwhile == [fresh]
        assert sorted(topic.message_ids) == sorted([*hanging, fresh])

    run(migrated_database, scenario)


def test_whoever_lost_its_lease_can_no_longer_mark_anything(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        outbox_id = uuid.UUID(await add_row(pool))
        late = OutboxClaims(pool=pool, lease=timedelta(milliseconds=1))
        first = await late.take()
        await asyncio.sleep(0.05)
        second = await OutboxClaims(pool=pool, lease=timedelta(seconds=30)).take()
        assert [row.message_id for row in first.rows] == [row.message_id for row in second.rows] == [outbox_id]
        assert [row.attempts for row in second.rows] == [2]
        await late.mark_sent(first, [outbox_id])
        await late.mark_delayed(first, [Delay(message_id=outbox_id, seconds=60, reason="late")])
        await late.park(first, outbox_id, "late")
        await late.release(first)
        row = await row_of(pool, str(outbox_id))
        assert (row["owner"], row["sent_at"], row["parked_at"], row["last_error"]) == (second.owner, None, None, None)
        await late.mark_sent(second, [outbox_id])
        sent = await row_of(pool, str(outbox_id))
        assert sent["sent_at"] is not None
        # Nor does a sent row come back.
        await late.mark_delayed(second, [Delay(message_id=outbox_id, seconds=0, reason="late")])
        assert await unsent(pool) == 0

    run(migrated_database, scenario)


def test_a_relay_that_died_before_publishing_is_succeeded_after_its_lease(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        outbox_id = await add_row(pool)
        await OutboxClaims(pool=pool, lease=timedelta(seconds=0.5)).take()  # and it never comes back
        topic = ScriptedTopic()
        running = relay(pool, topic)
        await until_drained(pool)
        await running.stop()
        assert topic.message_ids == [outbox_id]
        assert await pool.fetchval("select sent_at - created_at from outbox") >= timedelta(seconds=0.5)

    run(migrated_database, scenario)


def test_a_row_that_commits_after_younger_ones_is_published_too(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        topic = ScriptedTopic()
        running = relay(pool, topic)
        async with pool.acquire() as slow:
            transaction = slow.transaction()
            await transaction.start()
            older = await add_row(slow, age=timedelta(seconds=5))
            younger = await add_row(pool)
            await until_drained(pool)
            assert topic.message_ids == [younger]
            await transaction.commit()
        await until_drained(pool)
        assert topic.message_ids == [younger, older]
        await running.stop()

    run(migrated_database, scenario)


def test_a_stopping_relay_finishes_what_it_publishes(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        topic = ScriptedTopic()
        topic.gate.clear()
        running = relay(pool, topic)
        await add_row(pool)

        async def is_publishing() -> bool:
            return len(topic.calls) == 1

        await until(is_publishing)
        stopping = asyncio.create_task(running.stop())
        await add_row(pool)
        await asyncio.sleep(0.1)
        assert not stopping.done()
        topic.gate.set()
        await stopping
        assert len(topic.calls) == 1
        assert await unsent(pool) == 1  # what came while it stopped is another relay's
        assert not running.is_alive

    run(migrated_database, scenario)


def test_a_stopping_relay_releases_what_it_cannot_finish(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        topic = ScriptedTopic()
        topic.gate.clear()
        running = relay(pool, topic, RelayTiming(idle=0.02, stop=0.2))
        outbox_id = await add_row(pool)

        async def is_publishing() -> bool:
            return len(topic.calls) == 1

        await until(is_publishing)
        async with asyncio.timeout(3):
            await running.stop()
        row = await row_of(pool, outbox_id)
        topic.gate.set()
        assert (row["owner"], row["lease_until"], row["attempts"], row["sent_at"]) == (None, None, 0, None)

    run(migrated_database, scenario)


def test_the_relay_outlives_its_database_connections(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        topic = ScriptedTopic()
        running = relay(pool, topic)
        for _ in range(5):
            await pool.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
            assert running.is_alive
            await add_row(pool)
        await until_drained(pool)
        assert len(set(topic.message_ids)) == 5
        await running.stop()

    run(migrated_database, scenario)


def test_a_topic_that_raises_does_not_end_the_relay(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        def explode(_: Publication) -> Outcome:
            raise RuntimeError("a bug")

        topic = ScriptedTopic(explode)
        running = relay(pool, topic)
        outbox_id = await add_row(pool)

        async def has_failed() -> bool:
            return (await row_of(pool, outbox_id))["last_error"] is not None

        await until(has_failed)
        assert running.is_alive
        topic.answer = lambda _: SENT
        await until_drained(pool)
        await running.stop()

    run(migrated_database, scenario)


def test_a_relay_whose_loop_ended_is_not_alive(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        running = relay(pool, ScriptedTopic())
        before = running.is_alive
        running._task.cancel()
        await asyncio.gather(running._task, return_exceptions=True)
        assert (before, running.is_alive) == (True, False)
        await running.stop()

    run(migrated_database, scenario)


def test_sent_rows_and_old_keys_go_after_a_week_and_nothing_else_does(migrated_database: Database) -> None:
    async def scenario(pool: Any) -> None:
        customer = await add_customer(pool)
        ids = [await add_row(pool) for _ in range(4)]
        states = [
            ("sent_at", timedelta(days=7, minutes=1)),
            ("sent_at", timedelta(days=6)),
            ("parked_at", timedelta(days=30)),
            ("created_at", timedelta(days=30)),
        ]
        for outbox_id, (column, age) in zip(ids, states, strict=True):
            await pool.execute(
                f"update outbox set {column} = now() - $2::interval where outbox_id = $1",  # noqa: S608 - names of ours, no input
                uuid.UUID(outbox_id),
                age,
            )
        for key, age in (("old", timedelta(days=8)), ("young", timedelta(days=6))):
            await pool.execute(
                "insert into idempotency_keys values ($1, 'bookings.create', $2, '', '{}', now() - $3::interval)",
                uuid.UUID(customer.user_id),
                key,
                age,
            )
        for token, left in ((b"gone", timedelta(minutes=-1)), (b"valid", timedelta(minutes=1))):
            await pool.execute(
                "insert into sessions (token_hash, user_id, expires_at) values ($1, $2, now() + $3::interval)",
                token,
                uuid.UUID(customer.user_id),
                left,
            )
        went = {what: count for what, count in (await purge(pool)).items() if count}
        assert went == {"sent outbox rows": 1, "idempotency keys": 1, "expired sessions": 1}
        assert {str(row["outbox_id"]) for row in await pool.fetch("select outbox_id from outbox")} == set(ids[1:])
        assert await pool.fetchval("select key from idempotency_keys") == "young"
        assert await pool.fetchval("select token_hash from sessions") == b"valid"

    run(migrated_database, scenario)


@pytest.mark.parametrize(("attempts", "longest"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (1_000_000, 60)])
def test_the_backoff_doubles_from_1_s_to_60_s_less_up_to_half(attempts: int, longest: float) -> None:
    assert backoff_seconds(attempts, jitter=0.0) == longest
    assert backoff_seconds(attempts, jitter=1.0) == longest / 2
