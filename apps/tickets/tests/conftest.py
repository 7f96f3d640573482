"""What every test of the ticket function begins with."""

import uuid
from collections.abc import Callable

import pytest

from minitickets_contracts.messages import BookedEvent, BookingConfirmed, Customer
from minitickets_contracts.token import SigningKeys
from tests.fixtures.ticket_fakes import FakeAws

MakeMessage = Callable[..., BookingConfirmed]


@pytest.fixture
def keys() -> SigningKeys:
    return SigningKeys("k1", {"k1": "first-key-" + "a" * 32})


@pytest.fixture
def aws(keys: SigningKeys) -> FakeAws:
    return FakeAws(keys=keys)


@pytest.fixture
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
