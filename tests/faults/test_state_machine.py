"""Whatever happens in whatever order, nothing is lost and no seat is sold twice: hypothesis looks for an order that
breaks it.

STATE_MACHINE_EXAMPLES=1000 looks longer, each time elsewhere, and makes what it finds as short as it can.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from minitickets_api.database import connect
from tests.faults.simulated_functions import MAIL_FATES, TICKET_FATES
from tests.faults.simulated_platform import SEATS, Relay, SimulatedPlatform, Wish
from tests.fixtures.catalogue import opened
from tests.fixtures.reply_dropper import reply_dropper
from tests.fixtures.servers import Database

pytestmark = pytest.mark.faults

IS_SEARCH = "STATE_MACHINE_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "25"))
STEPS = 40
LEASE = timedelta(seconds=30)
MOST_WISHES = 6
# Around the lease (25 s, 30 s), the visibility timeouts (60 s, 180 s) and the longest way back (900 s).
PAUSES = st.sampled_from([0, 1, 26, 61, 181, 901])


class Platform(RuleBasedStateMachine):
    """Customers book and cancel, relays and functions work, die and pause, time passes; in any order."""

    make: ClassVar[Any]  # () → SimulatedPlatform, set by the test that has the database

    def __init__(self) -> None:
        super().__init__()
        self.platform: SimulatedPlatform = type(self).make()
        self.steps_since_rest = 0
        self.is_broken = False

    @initialize()
    def a_booking_is_on_its_way(self) -> None:
        """So that there is something to deliver from the first step on."""
        self.book(customer=0, seats=list(SEATS[:2]), is_heard=True, fault="none")
        self.platform.relay_all()

    @precondition(lambda self: len(self.platform.wishes) < MOST_WISHES)
    @rule(
        customer=st.integers(0, 1),
        seats=st.lists(st.sampled_from(SEATS), min_size=1, max_size=3, unique=True),
        is_heard=st.booleans(),
        fault=st.sampled_from(["none", "none", "COMMIT's reply is lost", "connections are severed"]),
    )
    def book(self, customer: int, seats: list[str], is_heard: bool, fault: str) -> None:
        wishes = self.platform.wishes
        wish = Wish(self.platform.customers[customer], tuple(seats), key=f"key-{len(wishes)}")
        wishes.append(wish)
        self.platform.book(wish, is_heard=is_heard, fault=fault)

    @precondition(lambda self: self.platform.wishes)
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        self.platform.book(data.draw(st.sampled_from(self.platform.wishes)), is_heard=True, fault="none")

    @precondition(lambda self: any(wish.booking_id for wish in self.platform.wishes))
    @rule(data=st.data(), is_heard=st.booleans())
    def cancel(self, data: st.DataObject, is_heard: bool) -> None:
        booked = [wish for wish in self.platform.wishes if wish.booking_id]
        self.platform.cancel(data.draw(st.sampled_from(booked)), is_heard=is_heard)

    @precondition(lambda self: self.platform.unsent())
    @rule()
    def relay_works(self) -> None:
        self.platform.relay_all()

    @precondition(lambda self: self.platform.unsent())
    @rule(which=st.integers(0, 1))
    def relay_goes_on(self, which: int) -> None:
        """Its next step: claim, publish, or record. Not being called is being paused."""
        relay: Relay = self.platform.relays[which]
        if relay.claim is None:
            self.platform.claim(relay)
        elif not relay.is_published:
            self.platform.publish(relay)
        else:
            self.platform.mark(relay)

    @precondition(lambda self: any(relay.claim for relay in self.platform.relays))
    @rule(data=st.data(), how=st.sampled_from(["killed", "SNS is down", "released"]))
    def relay_fails(self, data: st.DataObject, how: str) -> None:
        relay = data.draw(st.sampled_from([relay for relay in self.platform.relays if relay.claim]))
        if how == "killed":
            relay.claim = None
        elif how == "SNS is down":
            self.platform.mark(relay)
        else:
            self.platform.release(relay)

    @precondition(lambda self: self.platform.jobs.messages)
    @rule(data=st.data(), fates=st.lists(st.sampled_from(MAIL_FATES), min_size=1, max_size=3), pause=PAUSES)
    def deliver_to_the_worker(self, data: st.DataObject, fates: list[str], pause: int) -> None:
        for fate in fates:
            due = self.platform.jobs.visible()
            if due:
                places = data.draw(st.lists(st.integers(0, len(due) - 1), min_size=1, max_size=3, unique=True))
                self.platform.mailing.deliver([due[place] for place in places], fate)
            self.platform.pass_time(pause)

    @precondition(lambda self: self.platform.tickets.messages)
    @rule(data=st.data(), fates=st.lists(st.sampled_from(TICKET_FATES), min_size=1, max_size=3), pause=PAUSES)
    def deliver_to_the_issuer(self, data: st.DataObject, fates: list[tuple[str, str]], pause: int) -> None:
        for fate in fates:
            if due := self.platform.tickets.visible():
                self.platform.issuing.deliver(due[data.draw(st.integers(0, len(due) - 1))], fate)
            self.platform.pass_time(pause)

    @precondition(lambda self: self.platform.jobs.messages or self.platform.tickets.messages)
    @rule(data=st.data())
    def duplicate(self, data: st.DataObject) -> None:
        queues = [queue for queue in (self.platform.jobs, self.platform.tickets) if queue.messages]
        queue = data.draw(st.sampled_from(queues))
        queue.duplicate(queue.messages[data.draw(st.integers(0, len(queue.messages) - 1))])

    @rule(seconds=PAUSES)
    def time_passes(self, seconds: int) -> None:
        self.platform.pass_time(seconds)

    @precondition(lambda self: self.platform.jobs.dead or self.platform.tickets.dead)
    @rule()
    def redrive(self) -> None:
        self.platform.jobs.redrive()
        self.platform.tickets.redrive()

    @precondition(lambda self: self.steps_since_rest > STEPS / 2)
    @rule()
    def recover(self) -> None:
        self.steps_since_rest = 0
        self.platform.recover()
        self.platform.check_all()

    @invariant()
    def nothing_is_sold_mailed_or_shown_that_should_not_be(self) -> None:
        self.steps_since_rest += 1
        self.is_broken = True
        self.platform.check_seats()
        self.platform.check_mails()
        self.platform.check_images()
        self.is_broken = False

    def teardown(self) -> None:
        if not self.is_broken:
            self.platform.recover()
            self.platform.check_all()


@asynccontextmanager
async def pools(database: Database) -> AsyncIterator[tuple[Any, Any, Any]]:
    """The test's own connections, the API's through a proxy, and the proxy."""
    async with opened(database) as direct, reply_dropper(upstream_port=database.port) as dropper:
        api = await connect(
            host=database.host,
            port=dropper.port,
            name=database.name,
            user=database.user,
            password=database.password,
            sslmode="disable",
            application_name="state-machine-api",
        )
        try:
            yield direct, api.pool, dropper
        finally:
            await api.close()


@pytest.fixture
def machine(migrated_database: Database) -> Iterator[type[Platform]]:
    """The machine on a database."""
    with asyncio.Runner() as runner:
        context = pools(migrated_database)
        direct, pool, dropper = runner.run(context.__aenter__())

        class PlatformOnDatabase(Platform):
            make = staticmethod(
                lambda: SimulatedPlatform(runner, direct=direct, pool=pool, dropper=dropper, lease=LEASE)
            )

        yield PlatformOnDatabase
        runner.run(context.__aexit__(None, None, None))


def test_nothing_is_lost_in_any_order_of_what_can_happen(machine: type[Platform]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not IS_SEARCH,
            database=None,
            deadline=None,
            # Making a failure shorter takes minutes: not where somebody waits for the suite.
            phases=[Phase.generate, Phase.shrink] if IS_SEARCH else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
