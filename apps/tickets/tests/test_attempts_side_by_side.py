"""Two attempts at the same ticket (a duplicate message, a redelivery while the first still runs), in every order."""

import threading
from collections.abc import Callable, Iterator

import pytest

from minitickets_contracts.messages import BookingConfirmed, BookingMessage, EventMoved
from minitickets_contracts.token import SigningKeys
from minitickets_tickets.qr import draw_qr
from tests.fixtures.ticket_fakes import FakeAws, FakeProcess

pytestmark = pytest.mark.unit

PATIENCE_SECONDS = 20


class Attempt:
    """An attempt in a thread of its own that stops before each of its calls and waits for ``step``."""

    def __init__(self, aws: FakeAws, message: BookingMessage) -> None:
        self.error: BaseException | None = None
        self.is_over = False
        self._message = message
        self._process = FakeProcess(aws=aws)
        self._issuer = self._process.issuer()
        self._issuer.signing.keys()  # a warm process has read them
        self._process.calls.clear()
        self._process.before = self._stop
        self._may_go = threading.Semaphore(0)
        self._has_stopped = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def calls(self) -> tuple[str, ...]:
        return tuple(self._process.calls)

    def begin(self) -> None:
        self._thread.start()
        self._await_stop()

    def step(self) -> None:
        """Let it do the call before which it stands, and come to its next."""
        self._may_go.release()
        self._await_stop()

    def _await_stop(self) -> None:
        assert self._has_stopped.acquire(timeout=PATIENCE_SECONDS), f"stuck after {self.calls}"

    def _stop(self, action: str) -> None:
        self._has_stopped.release()
        assert self._may_go.acquire(timeout=PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            self._issuer.issue(self._message, seconds_left=lambda: 30.0)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        finally:
            self.is_over = True
            self._has_stopped.release()


def assert_no_image_differs(aws: FakeAws) -> None:
    for item in aws.items.values():
        stored = aws.objects.get(item["imageKey"]["S"])
        assert stored is None or stored["Body"] == draw_qr(item["qrToken"]["S"])
        assert stored is not None or item["status"] == {"S": "creating"}, "ready without an image"


def every_order(
    keys: SigningKeys, first: BookingMessage, second: BookingMessage
) -> Iterator[tuple[FakeAws, tuple[Attempt, Attempt]]]:
    """Run two attempts in each order that their calls can take in which the ``first`` begins."""
    decided = [0]
    while decided:
        aws = FakeAws(keys=keys)
        attempts = (Attempt(aws, first), Attempt(aws, second))
        for attempt in attempts:
            attempt.begin()
        choices: list[tuple[int, bool]] = []  # who went, and whether it could have been the other
        while not all(attempt.is_over for attempt in attempts):
            is_open = not any(attempt.is_over for attempt in attempts)
            turn = decided[len(choices)] if len(choices) < len(decided) else 0
            turn = turn if is_open else int(attempts[0].is_over)
            attempts[turn].step()
            choices.append((turn, is_open))
            assert_no_image_differs(aws)
        yield aws, attempts
        decided = []
        for place in range(len(choices) - 1, 0, -1):
            if choices[place] == (0, True):
                decided = [turn for turn, _ in choices[:place]] + [1]
                break


def test_no_order_of_two_attempts_leaves_an_image_that_differs_from_the_stored_token(
    keys: SigningKeys, make_message: Callable[..., BookingConfirmed]
) -> None:
    message = make_message("A-1")
    orders, ways = 0, set()

    for aws, attempts in every_order(keys, message, message):
        orders += 1
        ways.add(tuple(attempt.calls for attempt in attempts))
        assert [attempt.error for attempt in attempts] == [None, None]
        assert len(aws.items) == 1
        assert aws.item(f"{message.booking_id}:A-1")["status"] == {"S": "ready"}
        assert len(set(aws.puts)) == 1

    first, conflict = ("PutItem", "PutObject", "UpdateItem"), ("PutItem", "GetItem")
    assert ways == {
        (first, conflict),  # found ready
        (first, (*conflict, "PutObject", "UpdateItem", "GetItem")),  # found creating, came too late
        ((*first, "GetItem"), (*conflict, "PutObject", "UpdateItem")),  # overtook
    }
    assert orders == 15


@pytest.mark.parametrize("begins", ["the booking", "its move"])
def test_no_order_of_a_booking_and_its_events_move_leaves_the_old_date(
    keys: SigningKeys, make_message: Callable[..., BookingConfirmed], move: Callable[..., EventMoved], begins: str
) -> None:
    booked = make_message("A-1")
    moved = move(booked, 1)
    pair = (booked, moved) if begins == "the booking" else (moved, booked)
    orders, calls_of_the_move = 0, set()

    for aws, attempts in every_order(keys, *pair):
        orders += 1
        calls_of_the_move.add(attempts[pair.index(moved)].calls)
        assert [attempt.error for attempt in attempts] == [None, None]
        item = aws.item(f"{booked.booking_id}:A-1")
        assert item["eventStartsAt"]["S"] == moved.event.starts_at
        assert item["eventDateKey"]["S"] == f"{moved.event.starts_at}#{booked.booking_id}:A-1"
        assert item["eventSequence"] == {"N": "1"}
        assert item["status"] == {"S": "ready"}
        assert len(set(aws.puts)) == 1

    assert orders > 5
    found_ready = ("PutItem", "GetItem", "UpdateItem")
    expected = found_ready if begins == "the booking" else ("PutItem", "PutObject", "UpdateItem")
    assert expected in calls_of_the_move


def test_no_order_of_two_moves_leaves_the_earlier_one(
    keys: SigningKeys, make_message: Callable[..., BookingConfirmed], move: Callable[..., EventMoved]
) -> None:
    booked = make_message("A-1")
    earlier, later = move(booked, 1), move(booked, 2)

    for pair in ((earlier, later), (later, earlier)):
        for aws, attempts in every_order(keys, *pair):
            assert [attempt.error for attempt in attempts] == [None, None]
            item = aws.item(f"{booked.booking_id}:A-1")
            assert (item["eventStartsAt"]["S"], item["eventSequence"]["N"]) == (later.event.starts_at, "2")
