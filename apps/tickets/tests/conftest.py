"""What every test of the ticket function begins with."""

import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from minitickets_contracts.messages import BookedEvent, BookingConfirmed, Customer, EventMoved, PreviousSchedule
from minitickets_contracts.token import SigningKeys
from tests.fixtures.ticket_fakes import FakeAws

MakeMessage = Callable[..., BookingConfirmed]
Move = Callable[..., EventMoved]


@pytest.fixture
def keys() -> SigningKeys:
    return SigningKeys("k1", {"k1": "first-key-" + "a" * 32})


@pytest.fixture
def aws(keys: SigningKeys) -> FakeAws:
    return FakeAws(keys=keys)


@pytest.fixture(scope="session")
def make_message() -> MakeMessage:
    def make(*seats: str) -> BookingConfirmed:
        return BookingConfirmed(
            message_id=str(uuid.uuid4()),
            booking_id=str(uuid.uuid4()),
            correlation_id="correlation-7",
            occurred_at="2026-11-29T12:00:00Z",
            customer=Customer(user_id=str(uuid.uuid4()), email="canary.mail@example.org", name="Canary Name"),
            event=BookedEvent(
                event_id=str(uuid.uuid4()),
                title="Nachtmusik",
                venue="Große Halle",
                starts_at="2026-12-31T20:00:00-08:00",
                time_zone="America/Los_Angeles",
            ),
            seats=seats or ("A-1",),
            total_minor=4200,
            currency="EUR",
        )

    return make


@pytest.fixture(scope="session")
def move() -> Move:
    """The message that the event of a booking moved, for the ``sequence``-th time: into January, a day later each."""

    def moved(message: BookingConfirmed, sequence: int) -> EventMoved:
        event = message.event
        return EventMoved(
            message_id=str(uuid.uuid4()),
            booking_id=message.booking_id,
            correlation_id=f"move-{sequence}",
            occurred_at="2026-12-01T12:00:00Z",
            customer=message.customer,
            event=replace(
                event,
                title=f"{event.title}, moved",
                venue=f"Hall {sequence}",
                starts_at=f"2027-01-{sequence:02}T20:00:00+13:45",
                time_zone="Pacific/Chatham",
                sequence=sequence,
            ),
            seats=message.seats,
            total_minor=message.total_minor,
            currency=message.currency,
            previous=PreviousSchedule(starts_at=event.starts_at, time_zone=event.time_zone, venue=event.venue),
        )

    return moved
