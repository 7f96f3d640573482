"""The API is told to stop while it has work: it answers, lets go of what it holds, and is gone before it is killed."""

import json
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.processes import wait_until
from minitickets_contracts.messages import BookingConfirmed
from tests.fixtures.api_process import PATIENCE_SECONDS, ApiProcess
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import RunningApi, api_environment
from tests.fixtures.servers import Cache

pytestmark = pytest.mark.faults

STOP_TIMEOUT_SECONDS = 30  # from ECS's SIGTERM to its SIGKILL (infra/src/compute/task.py)
CUSTOMERS = 6


class DrippingService:
    """Accepts every request and never ends its reply: a byte now and then outlives every timeout for a read."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = 0
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._accept, name="dripping")]
        self._threads[0].start()

    def close(self) -> None:
        self._ended.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._drip, args=(client,), name="dripping"))
            self._threads[-1].start()

    def _drip(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65_536)
            self.requests += 1
            client.sendall(b"HTTP/1.1 200 OK\r\nx-slow: ")
            while not self._ended.wait(0.5):
                client.sendall(b"-")


@contextmanager
def dripping_service() -> Iterator[DrippingService]:
    service = DrippingService()
    try:
        yield service
    finally:
        service.close()


def test_a_topic_that_never_answers_holds_up_neither_the_end_nor_its_claim(
    api: RunningApi, cache: Cache, tmp_path: Path
) -> None:
    api.stop()  # what it made is wanted, its relay is not
    with dripping_service() as aws:
        environment = api_environment(api.database, cache, AWS_ENDPOINT_URL=aws.url)
        process = ApiProcess(environment, tmp_path / "api.log")
        try:
            process.wait()
            api.sql(
                "insert into outbox (outbox_id, body, correlation_id) values ($1, $2, 'correlation-of-the-claim')",
                uuid.uuid4(),
                json.dumps({"type": BookingConfirmed.TYPE, "version": 1}),
            )
            wait_until("it publishes", lambda: aws.requests > 0, seconds=PATIENCE_SECONDS, alive=process.child)
            [claimed] = api.sql("select owner from outbox")
            assert claimed["owner"] is not None

            began = time.monotonic()
            process.child.send(signal.SIGTERM)

            assert process.child.wait(STOP_TIMEOUT_SECONDS) == 0
            assert time.monotonic() - began < STOP_TIMEOUT_SECONDS - 2
        finally:
            process.child.stop()
    [row] = api.sql("select owner, lease_until, attempts, sent_at, parked_at from outbox")
    # Free at once, for whoever comes next; and what was no attempt does not count as one.
    assert tuple(row) == (None, None, 0, None, None)


class Customer(threading.Thread):
    """Books seat after seat until told that the connection will close; keeps what was acknowledged."""

    def __init__(self, url: str, cookie: str, event_id: str, seats: list[str]) -> None:
        super().__init__(name="customer")
        self.acknowledged: list[str] = []
        self.unexpected: list[str] = []
        self._http = httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, headers={"cookie": cookie})
        self._event_id = event_id
        self._seats = seats

    def run(self) -> None:
        with self._http:
            for seat in self._seats:
                wanted = {"eventId": self._event_id, "seats": [seat], "idempotencyKey": seat}
                try:
                    reply = self._http.post("/trpc/bookings.create", json=wanted)
                except httpx.TransportError as error:
                    self.unexpected.append(type(error).__name__)
                    return
                if reply.status_code == 200:
                    self.acknowledged.append(reply.json()["result"]["data"]["bookingId"])
                else:
                    self.unexpected.append(f"{reply.status_code} {reply.text}")
                if reply.headers.get("connection") == "close":
                    return


@pytest.fixture
def queue_of_topic(emulator: RunningEmulator, aws_of_api: dict[str, str]) -> Iterator[str]:
    """The URL of a queue that gets every message of the API's topic."""
    sqs, sns = emulator.aws("sqs"), emulator.aws("sns")
    url: str = sqs.create_queue(QueueName=f"test-{uuid.uuid4().hex}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": aws_of_api["TOPIC_ARN"]}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    subscription = sns.subscribe(
        TopicArn=aws_of_api["TOPIC_ARN"],
        Protocol="sqs",
        Endpoint=arn,
        Attributes={"RawMessageDelivery": "true"},
        ReturnSubscriptionArn=True,
    )["SubscriptionArn"]
    yield url
    sns.unsubscribe(SubscriptionArn=subscription)
    sqs.delete_queue(QueueUrl=url)


def received(emulator: RunningEmulator, queue: str) -> list[str]:
    """The booking of each message in the queue, which is then empty."""
    sqs: Any = emulator.aws("sqs")
    bookings: list[str] = []
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", []):
        for message in messages:
            bookings.append(BookingConfirmed.from_json(message["Body"]).booking_id)
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return bookings


def test_a_signal_under_bookings_loses_none_and_leaves_no_claim_behind(
    api: RunningApi,
    cache: Cache,
    aws_of_api: dict[str, str],
    emulator: RunningEmulator,
    queue_of_topic: str,
    tmp_path: Path,
) -> None:
    event_id = api.event(api.organiser(), seats=3_000)
    cookies = [f"session={api.customer().http.cookies['session']}" for _ in range(CUSTOMERS)]
    api.stop()
    ending = ApiProcess(api_environment(api.database, cache, **aws_of_api), tmp_path / "ending.log")
    try:
        ending.wait()
        customers = [
            Customer(ending.url, cookie, event_id, [f"A-{n}" for n in range(first, 3_001, CUSTOMERS)])
            for first, cookie in enumerate(cookies, start=1)
        ]
        for customer in customers:
            customer.start()
        wait_until(
            "there is load",
            lambda: sum(len(customer.acknowledged) for customer in customers) > 60,
            seconds=PATIENCE_SECONDS,
            alive=ending.child,
        )
        ending.child.send(signal.SIGTERM)
        assert ending.child.wait(STOP_TIMEOUT_SECONDS) == 0
    finally:
        ending.child.stop()
    for customer in customers:
        customer.join(PATIENCE_SECONDS)

    assert [customer.unexpected for customer in customers] == [[]] * CUSTOMERS
    acknowledged = {booking for customer in customers for booking in customer.acknowledged}
    assert {str(row["booking_id"]) for row in api.sql("select booking_id from bookings")} == acknowledged
    assert api.sql("select 1 from outbox where owner is not null") == []

    successor = ApiProcess(api_environment(api.database, cache, **aws_of_api), tmp_path / "successor.log")
    try:
        successor.wait()
        wait_until(
            "all is published",
            lambda: api.sql("select 1 from outbox where sent_at is null") == [],
            seconds=PATIENCE_SECONDS,
            alive=successor.child,
        )
    finally:
        assert successor.child.stop() == 0
    messages = received(emulator, queue_of_topic)
    assert set(messages) == acknowledged
    assert len(messages) == len(acknowledged)  # nobody was cut off in mid-publish, so nothing came twice
