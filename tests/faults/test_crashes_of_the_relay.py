"""Real processes of the API, killed, paused or cut off while they publish, beside one that is not."""

import asyncio
import json
import os
import secrets
import signal
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from apps.worker.tests.worker_under_test import booking
from local.processes import wait_until
from tests.faults.boundary import Boundary, boundary, killing, losing_the_reply
from tests.fixtures.api_process import ApiProcess
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import api_environment
from tests.fixtures.servers import Cache, Database

pytestmark = pytest.mark.faults

_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Outbox:
    """The outbox of a database, and the topic with two queues that APIs publish it to."""

    database: Database
    cache: Cache
    emulator: RunningEmulator
    aws: Boundary
    topic_arn: str
    queue_urls: tuple[str, ...]
    folder: Path

    def api(self, *, endpoint: str | None = None) -> ApiProcess:
        """An API that serves and publishes; through the boundary, unless it is told where AWS is."""
        environment = api_environment(
            self.database,
            self.cache,
            TOPIC_ARN=self.topic_arn,
            AWS_ENDPOINT_URL=endpoint or self.aws.endpoint,
            AWS_ACCESS_KEY_ID=self.emulator.account,
            AWS_SECRET_ACCESS_KEY="root",
        )
        return ApiProcess(environment, self.folder / f"api-{secrets.token_hex(4)}.log")

    def sql(self, statement: str, *values: object) -> list[Any]:
        async def fetch() -> list[Any]:
            connection = await asyncpg.connect(
                host=self.database.host,
                port=self.database.port,
                database=self.database.name,
                user=self.database.user,
                password=self.database.password,
            )
            try:
                return list(await connection.fetch(statement, *values))
            finally:
                await connection.close()

        return asyncio.run(fetch())

    def add(self) -> str:
        """A row as a booking commits it; the booking's id."""
        booking_id = str(uuid4())
        self.sql(
            "insert into outbox (outbox_id, body, correlation_id) values ($1, $2, 'test')",
            uuid4(),
            booking(booking_id).to_json(),
        )
        return booking_id

    def let_leases_end(self) -> None:
        """What 30 seconds do."""
        self.sql("update outbox set lease_until = now() - interval '1 second' where lease_until is not null")

    def wait_until_sent(self, count: int) -> None:
        """Until so many rows are marked as sent."""
        sent = "select count(*) from outbox where sent_at is not null"
        wait_until(f"{count} rows are sent", lambda: self.sql(sent)[0]["count"] == count, seconds=_SECONDS)

    def arrived(self) -> list[int]:
        """How many messages each queue holds."""
        counts = [
            self.emulator.aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])[
                "Attributes"
            ]["ApproximateNumberOfMessages"]
            for url in self.queue_urls
        ]
        return [int(count) for count in counts]


@pytest.fixture
def outbox(migrated_database: Database, cache: Cache, emulator: RunningEmulator, tmp_path: Path) -> Iterator[Outbox]:
    name = f"relay-{secrets.token_hex(4)}"
    sns, sqs = emulator.aws("sns"), emulator.aws("sqs")
    topic_arn = sns.create_topic(Name=name)["TopicArn"]
    urls = tuple(sqs.create_queue(QueueName=f"{name}-{queue}")["QueueUrl"] for queue in ("jobs", "tickets"))
    for url in urls:
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": arn,
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        sns.subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    port = urllib.parse.urlsplit(emulator.endpoint).port
    assert port is not None
    with boundary(upstream_port=port) as aws:
        yield Outbox(
            database=migrated_database,
            cache=cache,
            emulator=emulator,
            aws=aws,
            topic_arn=topic_arn,
            queue_urls=urls,
            folder=tmp_path,
        )


@pytest.fixture
def start(outbox: Outbox) -> Iterator[Callable[..., ApiProcess]]:
    """Starts an API and waits for it; all of them end with the test."""
    started: list[ApiProcess] = []

    def start_one(*, endpoint: str | None = None) -> ApiProcess:
        started.append(outbox.api(endpoint=endpoint))
        started[-1].wait()
        return started[-1]

    yield start_one
    for api in started:
        api.child.send(signal.SIGCONT)
        api.child.stop(1)


@pytest.mark.parametrize(("when", "before", "after"), [("before", 0, 1), ("after", 1, 2)])
def test_a_relay_killed_while_it_publishes_is_succeeded_after_its_lease_for_one_more_message_at_most(
    outbox: Outbox, start: Callable[..., ApiProcess], when: Any, before: int, after: int
) -> None:
    doomed = start()
    strike = outbox.aws.strike("PublishBatch", when, killing(lambda: doomed.child.pid))
    outbox.add()
    assert strike.struck.wait(_SECONDS)
    wait_until("the queues have what was published", lambda: outbox.arrived() == [before] * 2, seconds=_SECONDS)
    [row] = outbox.sql("select owner, sent_at, lease_until > now() as leased from outbox")
    assert (row["owner"] is not None, row["sent_at"], row["leased"]) == (True, None, True)

    outbox.let_leases_end()
    start(endpoint=outbox.emulator.endpoint)

    outbox.wait_until_sent(1)
    assert outbox.arrived() == [after] * 2


def test_a_publication_whose_reply_is_lost_is_made_once_more_and_no_more(
    outbox: Outbox, start: Callable[..., ApiProcess]
) -> None:
    start()
    strike = outbox.aws.strike("PublishBatch", "after", losing_the_reply)
    outbox.add()
    assert strike.struck.wait(_SECONDS)

    outbox.wait_until_sent(1)
    assert outbox.arrived() == [2, 2]


def test_while_one_relay_stands_still_another_goes_on_and_costs_one_more_message_at_most(
    outbox: Outbox, start: Callable[..., ApiProcess]
) -> None:
    paused = start()
    strike = outbox.aws.strike("PublishBatch", "after", lambda: os.kill(paused.child.pid, signal.SIGSTOP))
    outbox.add()
    assert strike.struck.wait(_SECONDS)
    start(endpoint=outbox.emulator.endpoint)

    outbox.add()
    outbox.wait_until_sent(1)  # the other's own lease holds nobody up but its row
    assert outbox.arrived() == [2, 2]
    outbox.let_leases_end()
    outbox.wait_until_sent(2)
    [first] = outbox.sql("select outbox_id, sent_at from outbox order by created_at limit 1")

    paused.child.send(signal.SIGCONT)
    outbox.add()
    outbox.wait_until_sent(3)

    assert outbox.arrived() == [4, 4], "three bookings, and one more of the one that stood still"
    assert outbox.sql("select sent_at from outbox where outbox_id = $1", first["outbox_id"]) == [(first["sent_at"],)], (
        "whoever lost its lease marks nothing"
    )
