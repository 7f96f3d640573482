"""Who of a batch gets seats: a batch decides as its requests would have been decided one after the other."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_api.queries.bookings import BookingView
from minitickets_api.refusals import Refusal
from minitickets_api.services.booking_decisions import (
    BookingCustomer,
    BookingRequest,
    LockedEvent,
    Offer,
    Situation,
    decide,
    new_ids,
)
from minitickets_api.services.idempotency import Remembered, hash_input

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
EVENTS = [uuid.UUID(int=number) for number in range(1, 5)]
PEOPLE = [uuid.UUID(int=100 + number) for number in range(3)]
SEATS = ["A-1", "A-2", "A-3", "A-4"]
# Of the events below, those that have not begun.
OFFER = Offer(price_minor=100, currency="EUR", starts_at="2027-11-01T13:00:00+01:00", venue="Venue")


def event(event_id: uuid.UUID, *, is_published: bool = True, has_begun: bool = False) -> LockedEvent:
    return LockedEvent(
        event_id=event_id,
        title="Title",
        venue="Venue",
        starts_at=NOW.replace(year=2025 if has_begun else 2027),
        time_zone="Europe/Berlin",
        price_minor=100,
        currency="EUR",
        is_published=is_published,
        sequence=3,
        locked_at=NOW,
    )


def situation(*, taken: frozenset[tuple[uuid.UUID, str]] = frozenset()) -> Situation:
    """Two events that can be booked, a draft, and one that has begun."""
    events = [
        event(EVENTS[0]),
        event(EVENTS[1]),
        event(EVENTS[2], is_published=False),
        event(EVENTS[3], has_begun=True),
    ]
    seats = {(each.event_id, seat): (each.event_id, seat) in taken for each in events for seat in SEATS}
    return Situation(events={each.event_id: each for each in events}, seats=seats, remembered={})


@st.composite
def booking_requests(draw: st.DrawFn) -> BookingRequest:
    user_id = draw(st.sampled_from(PEOPLE))
    event_id = draw(st.sampled_from([*EVENTS, uuid.UUID(int=99)]))
    seats = tuple(draw(st.lists(st.sampled_from([*SEATS, "Z-9"]), min_size=1, max_size=4, unique=True)))
    booking_id, message_id = new_ids()
    return BookingRequest(
        booking_id=booking_id,
        message_id=message_id,
        user_id=user_id,
        event_id=event_id,
        customer=BookingCustomer(user_id=str(user_id), email="a@example.com", name="Ada"),
        seats=seats,
        idempotency_key=draw(st.sampled_from(["k1", "k2", "k3", "k4"])),
        input_hash=hash_input({"eventId": str(event_id), "seats": sorted(seats)}),
        correlation_id="c",
        offer=draw(st.sampled_from([None, OFFER, replace(OFFER, price_minor=OFFER.price_minor - 1)])),
    )


def one_by_one(requests: Sequence[BookingRequest], start: Situation) -> list[BookingView | Exception]:
    """Each in a transaction of its own, after the one before was committed."""
    now = start
    outcomes: list[BookingView | Exception] = []
    for request in requests:
        decisions = decide([request], now)
        outcomes += decisions.outcomes
        for new in decisions.new:
            booked = {(request.event_id, seat): True for seat in request.seats}
            remembered = {request.key: Remembered(input_hash=request.input_hash, result=new.view.to_json())}
            now = replace(now, seats={**now.seats, **booked}, remembered={**now.remembered, **remembered})
    return outcomes


def told(outcomes: Sequence[BookingView | Exception]) -> list[object]:
    return [
        (outcome.code, outcome.message, outcome.details) if isinstance(outcome, Refusal) else outcome
        for outcome in outcomes
    ]


TAKEN = st.frozensets(st.tuples(st.sampled_from(EVENTS[:2]), st.sampled_from(SEATS)), max_size=3)


@settings(deadline=None)  # the first example reads the time zone from disk
@given(requests=st.lists(booking_requests(), max_size=12), taken=TAKEN)
def test_a_batch_decides_as_its_requests_would_be_decided_one_by_one(
    requests: list[BookingRequest], taken: frozenset[tuple[uuid.UUID, str]]
) -> None:
    start = situation(taken=taken)
    decisions = decide(requests, start)
    assert told(decisions.outcomes) == told(one_by_one(requests, start))


@settings(deadline=None)  # the first example reads the time zone from disk
@given(requests=st.lists(booking_requests(), max_size=12), taken=TAKEN)
def test_no_seat_is_sold_twice_and_no_key_books_twice(
    requests: list[BookingRequest], taken: frozenset[tuple[uuid.UUID, str]]
) -> None:
    new = decide(requests, situation(taken=taken)).new
    sold = [(booking.request.event_id, seat) for booking in new for seat in booking.request.seats]
    assert len(sold) == len(set(sold))
    assert not taken & set(sold)
    keys = [booking.request.key for booking in new]
    assert len(keys) == len(set(keys))


def test_a_booking_on_other_terms_is_refused_with_those_of_today_and_leaves_its_seats_to_the_next() -> None:
    events = {EVENTS[0]: event(EVENTS[0])}
    start = Situation(events=events, seats={(EVENTS[0], "A-1"): False}, remembered={})

    def wants(offer: Offer | None, key: str) -> BookingRequest:
        booking_id, message_id = new_ids()
        return BookingRequest(
            booking_id=booking_id,
            message_id=message_id,
            user_id=PEOPLE[0],
            event_id=EVENTS[0],
            customer=BookingCustomer(user_id=str(PEOPLE[0]), email="a@example.com", name="Ada"),
            seats=("A-1",),
            idempotency_key=key,
            input_hash=b"h",
            correlation_id="c",
            offer=offer,
        )

    stale = [
        replace(OFFER, price_minor=99),
        replace(OFFER, currency="USD"),
        replace(OFFER, starts_at="2027-11-01T12:00:00+00:00"),
        replace(OFFER, venue="Elsewhere"),
    ]
    requests = [wants(offer, str(number)) for number, offer in enumerate([*stale, OFFER])]

    *refused, booked = decide(requests, start).outcomes

    today = {"priceMinor": 100, "currency": "EUR", "startsAt": OFFER.starts_at, "venue": "Venue"}
    assert all(isinstance(one, Refusal) and one.details == {"offer": today} for one in refused)
    assert isinstance(booked, BookingView)
