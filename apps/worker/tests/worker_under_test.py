"""The worker with fakes around it, and the messages that tests feed it."""

import io
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from aws_lambda_powertools import Logger

from apps.worker.tests.fakes import FakeInvocation, FakeSes, FakeSqs, FakeTable
from minitickets_contracts.messages import (
    BookedEvent,
    BookingCancelled,
    BookingConfirmed,
    BookingMailRequested,
    Customer,
    EventMoved,
    PasswordResetRequested,
    PreviousSchedule,
)
from minitickets_worker.consumer import BatchResponse, Handlers, Record, consume
from minitickets_worker.invocation import Invocation
from minitickets_worker.mailer import SesMailer
from minitickets_worker.message_types import mail_handlers
from minitickets_worker.processed_jobs import DynamoProcessedJobs
from minitickets_worker.site import Site
from minitickets_worker.visibility import JobsQueue

SENDER = "tickets@minitickets.example"
BOOKING_ID = "0b9f3f0e-1111-4222-8333-444455556666"
SITE = Site(sender=SENDER, public_url="https://tickets.example.org")
NOWHERE = Site(sender=SENDER, public_url=None)
RESET_TOKEN = "canary_kZ-3f2b8f3e5c1e4b5e9a510d6c9f0a7b11x"
# 1970-01-12: an hour after the clock of the tests' invocations begins (FakeInvocation).
RESET_EXPIRES_AT = "1970-01-12T14:46:40Z"

Message = BookingConfirmed | BookingMailRequested | EventMoved | BookingCancelled | PasswordResetRequested


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


def requested(of: BookingConfirmed) -> BookingMailRequested:
    """A message that asks for a booking's mail again, each time under an id of its own."""
    return BookingMailRequested(**{**vars(of), "message_id": str(uuid.uuid4())})


def moved(
    of: BookingConfirmed,
    *,
    sequence: int = 1,
    starts_at: str = "2027-01-01T21:00:00-08:00",
    time_zone: str | None = None,
    venue: str | None = None,
) -> EventMoved:
    """A message that a booking's event moved from where it was booked."""
    was = of.event
    now = replace(
        was,
        sequence=sequence,
        starts_at=starts_at,
        time_zone=time_zone or was.time_zone,
        venue=venue or was.venue,
    )
    previous = PreviousSchedule(starts_at=was.starts_at, time_zone=was.time_zone, venue=was.venue)
    return EventMoved(**{**vars(of), "message_id": str(uuid.uuid4()), "event": now, "previous": previous})


def cancelled(of: BookingConfirmed, *, sequence: int = 0) -> BookingCancelled:
    """A message that a booking was cancelled."""
    return BookingCancelled(
        **{
            **vars(of),
            "message_id": str(uuid.uuid4()),
            "event": replace(of.event, sequence=sequence),
            "cancelled_at": "2026-11-30T08:15:00Z",
        }
    )


def reset(
    *, email: str = "ada@example.org", name: str = "Ada Canary", expires_at: str = RESET_EXPIRES_AT
) -> PasswordResetRequested:
    """A message that asks for a new password, each time under an id of its own."""
    return PasswordResetRequested(
        message_id=str(uuid.uuid4()),
        correlation_id=f"corr-{BOOKING_ID[:8]}",
        occurred_at="1970-01-12T13:46:40Z",
        customer=Customer(user_id="7d1c51c5-7f4a-4b5e-9d3f-0a1b2c3d4e5f", email=email, name=name),
        token=RESET_TOKEN,
        expires_at=expires_at,
    )


def record(message: Message | str, *, receives: int = 1) -> Record:
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
    random: Random = field(default_factory=lambda: Random(7))  # noqa: S311 - a run that can be repeated
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

    def handlers(self) -> Handlers:
        """As the function wires them."""
        return mail_handlers(
            jobs=self.jobs,
            mailer=self.mailer,
            site=Site(sender=SENDER, public_url=self.public_url),
            invocation=self.invocation,
            log=self.log,
        )

    def handle(self, message: Message) -> None:
        """Handle one message; errors pass through."""
        self.handlers()[message.TYPE](message.to_json())

    def consume(self, *records: Record) -> list[str]:
        """Consume a batch; the ids that come back."""
        response: BatchResponse = consume(
            records,
            handlers=self.handlers(),
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
        return self.status_of(f"booking.confirmed:{booking_id}")

    def status_of(self, job_key: str) -> str | None:
        """The status on record for a job."""
        item = self.table.items.get(job_key)
        return None if item is None else item["status"]["S"]


def ids(records: Iterable[Record]) -> list[str]:
    """The message ids of deliveries."""
    return [delivery["messageId"] for delivery in records]
