"""Booking and cancelling on a real PostgreSQL: what is promised to one customer."""

import asyncio
import json
import uuid
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from minitickets_api.queries import bookings as booking_queries
from minitickets_api.queries import events as event_queries
from minitickets_api.queries.bookings import BookingView
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.bookings import BookingCustomer, BookingDesk
from minitickets_contracts.messages import BookingConfirmed
from tests.fixtures.catalogue import add_customer, add_event, opened
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

STARTS_AT = datetime(2027, 1, 1, 4, 0, tzinfo=UTC)  # New Year's Eve, 20:00, in Los Angeles


class Office:
    """One desk, one event with seats A-1 to A-12, one customer."""

    def __init__(self, pool: Any, desk: BookingDesk, event_id: str, customer: BookingCustomer) -> None:
        self.pool = pool
        self.desk = desk
        self.event_id = event_id
        self.customer = customer

    def book(
        self,
        seats: Sequence[str],
        *,
        key: str | None = None,
        event_id: str | None = None,
        customer: BookingCustomer | None = None,
    ) -> Coroutine[Any, Any, BookingView]:
        return self.desk.create(
            customer=customer or self.customer,
            event_id=event_id or self.event_id,
            seats=seats,
            idempotency_key=key or str(uuid.uuid4()),
            correlation_id="correlation-1",
        )

    def cancel(
        self, booking_id: str, *, key: str | None = None, customer: BookingCustomer | None = None
    ) -> Coroutine[Any, Any, BookingView]:
        return self.desk.cancel(
            user_id=(customer or self.customer).user_id,
            booking_id=booking_id,
            idempotency_key=key or str(uuid.uuid4()),
            correlation_id="correlation-2",
        )

    async def counts(self) -> dict[str, int]:
        tables = ("bookings", "booked_seats", "outbox", "idempotency_keys")
        return {table: await self.pool.fetchval(f"select count(*) from {table}") for table in tables}  # noqa: S608 - names of ours, no input


NOTHING = {"bookings": 0, "booked_seats": 0, "outbox": 0, "idempotency_keys": 0}


def in_office(database: Database, scenario: Any, *, starts_at: datetime | None = None) -> None:
    async def run() -> None:
        async with opened(database) as pool:
            event_id = await add_event(pool, seats=[f"A-{n}" for n in range(1, 13)], starts_at=starts_at)
            customer = await add_customer(pool)
            desk = BookingDesk(pool=pool, on_commit=lambda: None)
            await scenario(Office(pool, desk, event_id, customer))
            await desk.close()

    asyncio.run(run())


async def refused(booking: Coroutine[Any, Any, BookingView]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await booking
    return caught.value


def test_a_booking_its_seats_and_its_message_are_committed_together(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        view = await office.book(["A-2", "A-1"])
        assert view.seats == ("A-2", "A-1")
        assert view.total_minor == 5_000
        assert view.status == "confirmed"
        assert view.starts_at == "2026-12-31T20:00:00-08:00"
        assert view.time_zone == "America/Los_Angeles"
        row = await office.pool.fetchrow("select * from outbox")
        message = BookingConfirmed.from_json(row["body"])
        assert message.message_id == str(row["outbox_id"])
        assert message.booking_id == view.booking_id == str(row["booking_id"])
        assert message.correlation_id == row["correlation_id"] == "correlation-1"
        assert message.customer.email == office.customer.email
        assert message.event.starts_at == view.starts_at
        assert message.seats == view.seats
        assert message.total_minor == 5_000
        assert message.occurred_at == view.booked_at
        transactions = await office.pool.fetch(
            "select xmin::text from bookings union select xmin::text from booked_seats"
            " union select xmin::text from outbox union select xmin::text from idempotency_keys"
        )
        assert len(transactions) == 1

    in_office(migrated_database, scenario, starts_at=STARTS_AT)


@pytest.mark.parametrize(
    ("seats", "code"),
    [
        ([], Code.BAD_REQUEST),
        ([f"A-{n}" for n in range(1, 12)], Code.BAD_REQUEST),
        (["A-1"] * 200, Code.BAD_REQUEST),
        (["A-1", "A-1"], Code.BAD_REQUEST),
        (["a-1"], Code.BAD_REQUEST),
        (["A-1,A-2"], Code.BAD_REQUEST),
        (["A-1\0"], Code.BAD_REQUEST),
        (["A-1:X"], Code.BAD_REQUEST),
        (["A-1", "Z-9"], Code.BAD_REQUEST),
    ],
)
def test_wrong_seats_are_refused_and_change_nothing(migrated_database: Database, seats: list[str], code: Code) -> None:
    async def scenario(office: Office) -> None:
        refusal = await refused(office.book(seats))
        assert refusal.code is code
        assert "seats" in refusal.message
        assert await office.counts() == NOTHING

    in_office(migrated_database, scenario)


def test_an_unknown_seat_is_named(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        refusal = await refused(office.book(["A-1", "Z-9"]))
        assert refusal.details == {"seats": ["Z-9"]}

    in_office(migrated_database, scenario)


def test_an_event_that_has_begun_cannot_be_booked(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        refusal = await refused(office.book(["A-1"]))
        assert refusal.code is Code.BAD_REQUEST
        assert "begun" in refusal.message
        assert await office.counts() == NOTHING

    in_office(migrated_database, scenario, starts_at=datetime.now(UTC) - timedelta(seconds=1))


@pytest.mark.parametrize("event_id", ["0b9f3f0e-1111-4222-8333-444455556666", "not-an-id", "draft"])
def test_an_unknown_event_and_a_draft_are_both_not_found(migrated_database: Database, event_id: str) -> None:
    async def scenario(office: Office) -> None:
        wanted = event_id
        if event_id == "draft":
            wanted = await add_event(office.pool, seats=["A-1"], is_published=False)
        refusal = await refused(office.book(["A-1"], event_id=wanted))
        assert (refusal.code, refusal.message) == (Code.NOT_FOUND, "There is no such event.")
        assert await office.counts() == NOTHING

    in_office(migrated_database, scenario)


@pytest.mark.parametrize("key", ["", " ", "a b", "k" * 129, "schl\u00fcssel", "a\0"])
def test_a_key_that_is_no_key_is_refused(migrated_database: Database, key: str) -> None:
    async def scenario(office: Office) -> None:
        with pytest.raises(Refusal, match="idempotencyKey") as caught:
            await office.desk.create(
                customer=office.customer,
                event_id=office.event_id,
                seats=["A-1"],
                idempotency_key=key,
                correlation_id="c",
            )
        assert caught.value.code is Code.BAD_REQUEST
        assert await office.counts() == NOTHING

    in_office(migrated_database, scenario)


def test_a_taken_seat_is_a_conflict_that_names_it(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        await office.book(["A-1", "A-2"])
        before = await office.counts()
        refusal = await refused(office.book(["A-2", "A-3"]))
        assert refusal.code is Code.CONFLICT
        assert refusal.details == {"seats": ["A-2"]}
        assert await office.counts() == before

    in_office(migrated_database, scenario)


def test_the_same_key_and_input_give_the_same_booking(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        first = await office.book(["A-1", "A-2"], key="k")
        again = await office.book(["A-2", "A-1"], key="k", event_id=office.event_id.upper())
        assert again == first
        assert (await office.counts())["bookings"] == 1

    in_office(migrated_database, scenario)


def test_the_same_key_with_another_input_is_a_conflict(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        await office.book(["A-1"], key="k")
        refusal = await refused(office.book(["A-2"], key="k"))
        assert refusal.code is Code.CONFLICT
        assert "idempotencyKey" in refusal.message
        assert (await office.counts())["booked_seats"] == 1

    in_office(migrated_database, scenario)


def test_a_key_belongs_to_one_person(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        first = await office.book(["A-1"], key="k")
        other = await office.book(["A-2"], key="k", customer=await add_customer(office.pool))
        assert first.booking_id != other.booking_id

    in_office(migrated_database, scenario)


def test_a_refusal_is_not_remembered(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        holder = await office.book(["A-1"])
        await refused(office.book(["A-1"], key="k"))
        await office.cancel(holder.booking_id)
        assert (await office.book(["A-1"], key="k")).status == "confirmed"

    in_office(migrated_database, scenario)


def test_cancelling_frees_the_seats_and_keeps_the_booking_in_the_list(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        view = await office.book(["A-1", "A-2"])
        cancelled = await office.cancel(view.booking_id)
        assert cancelled.status == "cancelled"
        assert cancelled.cancelled_at is not None
        assert cancelled.seats == ("A-1", "A-2")
        detail = await event_queries.by_id(office.pool, event_id=office.event_id)
        assert not any(seat.is_taken for seat in detail.seats)
        page = await booking_queries.mine(office.pool, user_id=office.customer.user_id)
        assert page.bookings == (cancelled,)
        other = await add_customer(office.pool)
        assert (await office.book(["A-2"], customer=other)).status == "confirmed"

    in_office(migrated_database, scenario)


def test_cancelling_twice_is_cancelling_once(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        view = await office.book(["A-1"])
        first = await office.cancel(view.booking_id, key="k")
        assert await office.cancel(view.booking_id, key="k") == first
        assert await office.cancel(view.booking_id, key="other") == first
        at_once = await office.book(["A-2"])
        results = await asyncio.gather(*(office.cancel(at_once.booking_id) for _ in range(5)))
        assert len(set(results)) == 1

    in_office(migrated_database, scenario)


def test_a_late_repetition_of_a_cancellation_does_not_free_a_resold_seat(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        view = await office.book(["A-1"])
        await office.cancel(view.booking_id, key="k")
        other = await add_customer(office.pool)
        await office.book(["A-1"], customer=other)
        await office.cancel(view.booking_id, key="k")
        await office.cancel(view.booking_id)
        assert (await refused(office.book(["A-1"]))).code is Code.CONFLICT

    in_office(migrated_database, scenario)


def test_a_cancellation_key_used_for_another_booking_is_a_conflict(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        first, second = await office.book(["A-1"]), await office.book(["A-2"])
        results = await asyncio.gather(
            office.cancel(first.booking_id, key="k"),
            office.cancel(second.booking_id, key="k"),
            return_exceptions=True,
        )
        codes = sorted(result.code.name if isinstance(result, Refusal) else "cancelled" for result in results)
        assert codes == ["CONFLICT", "cancelled"]
        assert (await office.counts())["booked_seats"] == 1

    in_office(migrated_database, scenario)


def test_somebody_elses_booking_is_not_found_and_stays(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        view = await office.book(["A-1"])
        stranger = await add_customer(office.pool)
        for booking_id in (view.booking_id, str(uuid.uuid4()), "x"):
            refusal = await refused(office.cancel(booking_id, customer=stranger))
            assert (refusal.code, refusal.message) == (Code.NOT_FOUND, "There is no such booking.")
        page = await booking_queries.mine(office.pool, user_id=stranger.user_id)
        assert page.bookings == ()
        assert (await office.counts())["booked_seats"] == 1

    in_office(migrated_database, scenario)


def test_a_booking_of_an_event_that_has_begun_cannot_be_cancelled(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        view = await office.book(["A-1"])
        await office.pool.execute("update events set starts_at = now() - interval '1 minute'")
        refusal = await refused(office.cancel(view.booking_id))
        assert refusal.code is Code.BAD_REQUEST
        assert (await office.counts())["booked_seats"] == 1

    in_office(migrated_database, scenario)


def test_an_account_that_is_gone_books_nothing_and_spoils_no_neighbour(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        gone = BookingCustomer(user_id=str(uuid.uuid4()), email="gone@example.com", name="Gone")
        results = await asyncio.gather(
            office.book(["A-1"]), office.book(["A-2"], customer=gone), office.book(["A-3"]), return_exceptions=True
        )
        assert isinstance(results[1], Refusal)
        assert results[1].code is Code.UNAUTHORIZED
        assert [result.seats for result in results if isinstance(result, BookingView)] == [("A-1",), ("A-3",)]

    in_office(migrated_database, scenario)


def test_a_list_is_read_page_by_page_and_its_cursor_is_its_owners_alone(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        made = [(await office.book([f"A-{n}"])).booking_id for n in range(1, 6)]
        seen: list[str] = []
        cursor = None
        cursors = []
        while True:
            page = await booking_queries.mine(office.pool, user_id=office.customer.user_id, cursor=cursor, limit=2)
            seen += [view.booking_id for view in page.bookings]
            if (cursor := page.next_cursor) is None:
                break
            cursors.append(cursor)
        assert seen == made[::-1]
        assert len(cursors) == 2
        stranger = await add_customer(office.pool)
        wrong = [
            (stranger.user_id, cursors[0]),
            (office.customer.user_id, cursors[0][:-2]),
            (office.customer.user_id, "A" + cursors[0][1:]),
            (office.customer.user_id, "\u00fc"),
            (office.customer.user_id, "x" * 10_000),
        ]
        for user_id, tampered in wrong:
            with pytest.raises(Refusal, match="cursor") as caught:
                await booking_queries.mine(office.pool, user_id=user_id, cursor=tampered)
            assert caught.value.code is Code.BAD_REQUEST
        with pytest.raises(Refusal, match="cursor"):
            await event_queries.upcoming(office.pool, cursor=cursors[0])

    in_office(migrated_database, scenario)


def test_upcoming_events_leave_out_drafts_and_what_has_begun(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        await add_event(office.pool, seats=["A-1"], is_published=False)
        await add_event(office.pool, seats=["A-1"], starts_at=datetime.now(UTC) - timedelta(minutes=1))
        later = await add_event(office.pool, seats=["A-1"], starts_at=datetime.now(UTC) + timedelta(days=60))
        await office.book(["A-1", "A-2"])
        first = await event_queries.upcoming(office.pool, limit=1)
        assert [event.event_id for event in first.events] == [office.event_id]
        assert (first.events[0].seats_total, first.events[0].seats_free) == (12, 10)
        second = await event_queries.upcoming(office.pool, limit=1, cursor=first.next_cursor)
        assert [event.event_id for event in second.events] == [later]
        assert second.next_cursor is None

    in_office(migrated_database, scenario)


def test_a_draft_is_shown_to_its_organiser_alone(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        draft = await add_event(office.pool, seats=["B-1", "A-1"], is_published=False)
        organiser = str(
            await office.pool.fetchval("select organiser_id from events where event_id = $1", uuid.UUID(draft))
        )
        detail = await event_queries.by_id(office.pool, event_id=draft, user_id=organiser)
        assert [seat.name for seat in detail.seats] == ["B-1", "A-1"]
        for viewer in (None, office.customer.user_id):
            with pytest.raises(Refusal, match="no such event"):
                await event_queries.by_id(office.pool, event_id=draft, user_id=viewer)

    in_office(migrated_database, scenario)


def test_what_a_key_remembers_survives_as_json(migrated_database: Database) -> None:
    async def scenario(office: Office) -> None:
        view = await office.book(["A-1"])
        stored = json.loads(await office.pool.fetchval("select result from idempotency_keys"))
        assert BookingView.from_json(json.dumps(stored)) == view
        # In a rolling deployment, the next version's memory is read by this one.
        assert BookingView.from_json(json.dumps(stored | {"later": 1})) == view

    in_office(migrated_database, scenario)
