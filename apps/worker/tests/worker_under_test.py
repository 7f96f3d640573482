"""The worker with fakes around it, and the messages that tests feed it."""

import io
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from aws_lambda_powertools import Logger

from apps.worker.tests.fakes import FakeInvocation, FakeSes, FakeSqs, FakeTable
from minitickets_contracts.messages import BookedEvent, BookingConfirmed, Customer
from minitickets_worker.consumer import BatchResponse, Record, consume
from minitickets_worker.handlers.booking_confirmed import handle_booking_confirmed
from minitickets_worker.invocation import Invocation
from minitickets_worker.mailer import SesMailer
from minitickets_worker.processed_jobs import DynamoProcessedJobs
from minitickets_worker.visibility import JobsQueue

SENDER = "tickets@minitickets.example"
BOOKING_ID = "0b9f3f0e-1111-4222-8333-444455556666"


def booking(
    booking_id: str = BOOKING_ID,
    *,
    email: str = "ada@example.org",
    name: str = "Ada Canary",
    title: str = "Night of Strings",
    venue: str = "Hall One",
    starts_at: str = "2026-12-31T20:00:00-08:00",
    time_zone: str = "America/Los_Angeles",
    seats: tuple[str, ...] = ("A-1", "A-2", "B-12"),
    total_minor: int = 17700,
    currency: str = "USD",
) -> BookingConfirmed:
    """A message about a booking, published under an id of its own."""
    return BookingConfirmed(
        message_id=str(uuid.uuid4()),
        booking_id=booking_id,
        correlation_id=f"corr-{booking_id[:8]}",
        occurred_at="2026-11-29T12:00:00Z",
        customer=Customer(user_id="7d1c51c5-7f4a-4b5e-9d3f-0a1b2c3d4e5f", email=email, name=name),
        event=BookedEvent(
            event_id="5f0f2c9e-0d6b-4c3a-8a4e-1b2c3d4e5f60",
            title=title,
            venue=venue,
            starts_at=starts_at,
            time_zone=time_zone,
        ),
        seats=seats,
        total_minor=total_minor,
        currency=currency,
    )


def record(message: BookingConfirmed | str, *, receives: int = 1) -> Record:
    """A delivery of a message, or of any body, with ids of its own."""
    delivery = str(uuid.uuid4())
    return {
        "messageId": delivery,
        "receiptHandle": f"handle-{delivery}",
        "body": message if isinstance(message, str) else message.to_json(),
        "attributes": {"ApproximateReceiveCount": str(receives)},
    }


@dataclass
class Worker:
    """One worker process. Two that share a table, SES and an invocation's time are two workers of one system."""

    table: FakeTable = field(default_factory=FakeTable)
    ses: FakeSes = field(default_factory=FakeSes)
    sqs: FakeSqs = field(default_factory=FakeSqs)
    invocation: Any = field(default_factory=FakeInvocation)
    random: Random = field(default_factory=lambda: Random(7))  # noqa: S311
    public_url: str | None = "https://tickets.example.org"

    def __post_init__(self) -> None:
        self.log_output = io.StringIO()
        self.log = Logger(service=f"worker-{uuid.uuid4()}", stream=self.log_output, level="INFO")
        self.in_invocation(self.invocation)

    def in_invocation(self, invocation: Invocation) -> None:
        """What follows happens in ``invocation``."""
        table: Any = self.table
        ses: Any = self.ses
        sqs: Any = self.sqs
        self.invocation = invocation
        self.jobs = DynamoProcessedJobs(client=table, table="processed-jobs", invocation=invocation)
        self.mailer = SesMailer(client=ses, sender=SENDER, invocation=invocation, random=self.random)
        self.queue = JobsQueue(client=sqs, url="https://queue.invalid", invocation=invocation)

    def handle(self, message: BookingConfirmed) -> None:
        """Handle one message; errors pass through."""
        handle_booking_confirmed(message, jobs=self.jobs, mailer=self.mailer, public_url=self.public_url, log=self.log)

    def consume(self, *records: Record) -> list[str]:
        """Consume a batch; the ids that come back."""
        response: BatchResponse = consume(
            records,
            handlers={BookingConfirmed.TYPE: lambda body: self.handle(BookingConfirmed.from_json(body))},
            queue=self.queue,
            invocation=self.invocation,
            random=self.random,
            log=self.log,
        )
        assert set(response) == {"batchItemFailures"}
        return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]

    def logged(self) -> list[dict[str, Any]]:
        """Every log line so far."""
        return [json.loads(line) for line in self.log_output.getvalue().splitlines()]

    def logged_events(self) -> list[str]:
        """The text of every log line so far."""
        return [line["message"] for line in self.logged()]

    def status(self, booking_id: str = BOOKING_ID) -> str | None:
        """The status on record for a booking's mail."""
        item = self.table.items.get(f"booking.confirmed:{booking_id}")
        return None if item is None else item["status"]["S"]


def ids(records: Iterable[Record]) -> list[str]:
    """The message ids of deliveries."""
    return [delivery["messageId"] for delivery in records]
