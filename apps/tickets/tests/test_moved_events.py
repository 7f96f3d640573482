"""Tickets follow their event: in whatever order the news comes, they end at its latest move, with the same token."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_contracts.messages import BookedEvent, BookingConfirmed, BookingMessage, EventMoved
from minitickets_contracts.token import SigningKeys
from minitickets_tickets.failures import CallFailed
from minitickets_tickets.issue import Issued
from minitickets_tickets.qr import draw_qr
from tests.fixtures.ticket_fakes import FakeAws, FakeProcess, Item, refusal

pytestmark = pytest.mark.unit

MakeMessage = Callable[..., BookingConfirmed]
Move = Callable[..., EventMoved]
KEYS = SigningKeys("k1", {"k1": "first-key-" + "a" * 32})


class Killed(BaseException):
    """The process is gone."""


def nothing(action: str) -> None:
    pass


def process(
    aws: FakeAws,
    *messages: BookingMessage,
    before: Callable[[str], None] = nothing,
    after: Callable[[str], None] = nothing,
) -> Issued:
    """What the last of ``messages`` led to, each handled by a process of its own."""
    issued = Issued(made=0, found=0)
    for message in messages:
        issued = FakeProcess(aws=aws, before=before, after=after).issuer().issue(message, seconds_left=lambda: 30.0)
    return issued


def assert_at(aws: FakeAws, event: BookedEvent, message: BookingMessage, *, status: str = "ready") -> None:
    """Every ticket of the booking says what ``event`` does, and its image is that of its token."""
    assert len(aws.items) == len(message.seats)
    for seat in message.seats:
        ticket_id = f"{message.booking_id}:{seat}"
        item = aws.item(ticket_id)
        assert said(item) == (
            event.title,
            event.venue,
            event.starts_at,
            event.time_zone,
            event.starts_at[:10],
            f"{event.starts_at}#{ticket_id}",
            event.sequence,
        )
        assert item["status"] == {"S": status}
        assert aws.objects[item["imageKey"]["S"]]["Body"] == draw_qr(item["qrToken"]["S"])


def said(item: Item) -> tuple[Any, ...]:
    texts = ("eventTitle", "venue", "eventStartsAt", "timeZone", "eventDate", "eventDateKey")
    return *(item[name]["S"] for name in texts), int(item["eventSequence"]["N"])


def test_a_ticket_follows_its_event_and_keeps_its_token_and_image(
    aws: FakeAws, make_message: MakeMessage, move: Move
) -> None:
    booked = make_message("A-1", "B-2")
    process(aws, booked)
    tokens = {key: item["qrToken"] for key, item in aws.items.items()}
    images = {key: dict(stored) for key, stored in aws.objects.items()}

    moved = move(booked, 1)
    assert process(aws, moved) == Issued(made=0, found=2, moved=2)

    assert_at(aws, moved.event, booked)
    assert {key: item["qrToken"] for key, item in aws.items.items()} == tokens
    assert aws.objects == images
    assert len(aws.puts) == 2, "nothing is drawn again"


def test_news_of_a_move_that_comes_first_makes_the_ticket_at_the_new_date_and_the_booking_leaves_it_there(
    aws: FakeAws, make_message: MakeMessage, move: Move
) -> None:
    booked = make_message("A-1", "B-2")
    moved = move(booked, 1)

    assert process(aws, moved) == Issued(made=2, found=0)
    assert_at(aws, moved.event, booked)
    assert process(aws, booked) == Issued(made=0, found=2)
    assert_at(aws, moved.event, booked)


def test_an_older_move_never_undoes_a_later_one(aws: FakeAws, make_message: MakeMessage, move: Move) -> None:
    booked = make_message("A-1")
    later = move(booked, 2)

    assert process(aws, booked, later, move(booked, 1)) == Issued(made=0, found=1)
    assert_at(aws, later.event, booked)


def test_sequences_count_as_numbers_not_as_texts(aws: FakeAws, make_message: MakeMessage, move: Move) -> None:
    booked = make_message("A-1")
    tenth = move(booked, 10)

    process(aws, booked, move(booked, 9), tenth)

    assert_at(aws, tenth.event, booked)


def test_a_ticket_from_before_events_could_move_follows_too(
    aws: FakeAws, make_message: MakeMessage, move: Move
) -> None:
    booked = make_message("A-1")
    process(aws, booked)
    del aws.item(f"{booked.booking_id}:A-1")["eventSequence"]

    process(aws, moved := move(booked, 1))

    assert_at(aws, moved.event, booked)


def test_a_booking_made_after_a_move_is_where_the_event_is_by_then(
    aws: FakeAws, make_message: MakeMessage, move: Move
) -> None:
    booked = make_message("A-1")
    event = move(booked, 3).event

    process(aws, replace(booked, event=event), move(booked, 2))

    assert_at(aws, event, booked)


def test_a_ticket_that_was_scanned_at_the_door_moves_and_stays_scanned(
    aws: FakeAws, make_message: MakeMessage, move: Move
) -> None:
    booked = make_message("A-1")
    process(aws, booked)
    aws.item(f"{booked.booking_id}:A-1")["status"] = {"S": "checked-in"}

    moved = move(booked, 1)
    assert process(aws, moved) == Issued(made=0, found=1, moved=1)

    assert_at(aws, moved.event, booked, status="checked-in")


def test_news_of_a_move_finishes_what_the_booking_left_half_done(
    aws: FakeAws, make_message: MakeMessage, move: Move
) -> None:
    booked = make_message("A-1")

    def refuse(action: str) -> None:
        if action == "PutObject":
            raise refusal(action, "AccessDenied", status=403)

    with pytest.raises(CallFailed):
        process(aws, booked, before=refuse)

    moved = move(booked, 1)
    assert process(aws, moved) == Issued(made=1, found=0, moved=1)
    assert_at(aws, moved.event, booked)


def test_a_ticket_that_an_operator_removed_meanwhile_is_not_made_of_a_date_alone(
    aws: FakeAws, make_message: MakeMessage, move: Move
) -> None:
    booked = make_message("A-1")
    process(aws, booked)

    def remove(action: str) -> None:
        if action == "UpdateItem":
            aws.items.clear()

    process(aws, move(booked, 1), before=remove)

    assert aws.items == {}


def test_moving_asks_for_no_more_than_the_function_may_do(aws: FakeAws, make_message: MakeMessage, move: Move) -> None:
    booked = make_message("A-1")
    process(aws, booked)
    mover = FakeProcess(aws=aws)

    mover.issuer().issue(move(booked, 1), seconds_left=lambda: 30.0)

    assert mover.calls == ["GetSecretValue", "PutItem", "GetItem", "UpdateItem"]


@pytest.fixture(scope="module")
def messages(make_message: MakeMessage, move: Move) -> Sequence[BookingMessage]:
    """A booking, and three moves of its event; their places are their sequences."""
    booked = make_message("A-1", "B-2")
    return booked, move(booked, 1), move(booked, 2), move(booked, 3)


@dataclass(frozen=True)
class Delivery:
    """A message on its way: which, and at which of its calls its process dies, if any (before or after its effect)."""

    sequence: int
    dies_at: int | None
    applied: bool

    def arrive(self, aws: FakeAws, message: BookingMessage) -> None:
        calls = 0

        def die(action: str) -> None:
            nonlocal calls
            calls += 1
            if calls - 1 == self.dies_at:
                raise Killed(action)

        try:
            process(aws, message, before=nothing if self.applied else die, after=die if self.applied else nothing)
        except Killed:
            # As SQS does: it comes again.
            process(aws, message)


_DELIVERIES = st.lists(
    st.builds(Delivery, st.integers(0, 3), st.none() | st.integers(0, 9), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(deliveries=_DELIVERIES, scanned_after=st.none() | st.integers(0, 7))
def test_any_order_and_any_repetition_with_deaths_between_ends_at_the_latest_move(
    messages: Sequence[BookingMessage], deliveries: list[Delivery], scanned_after: int | None
) -> None:
    aws = FakeAws(keys=KEYS)
    status = "ready"
    tokens: dict[tuple[str, str], dict[str, str]] = {}

    for place, delivery in enumerate(deliveries):
        delivery.arrive(aws, messages[delivery.sequence])
        tokens = tokens or {key: item["qrToken"] for key, item in aws.items.items()}
        if place == scanned_after:
            status = "checked-in"
            for item in aws.items.values():
                item["status"] = {"S": status}

    latest = messages[max(delivery.sequence for delivery in deliveries)]
    assert_at(aws, latest.event, latest, status=status)
    assert {key: item["qrToken"] for key, item in aws.items.items()} == tokens
    assert len(set(aws.puts)) == len(latest.seats), "every image ever uploaded of a seat is the same"
