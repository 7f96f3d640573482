"""What issuing a booking's tickets leaves behind, whatever happens on the way."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from minitickets_contracts.messages import BookingConfirmed, EventMoved
from minitickets_contracts.token import SigningKeys, TicketToken
from minitickets_tickets.aws import CONNECT_SECONDS, READ_SECONDS
from minitickets_tickets.failures import CallFailed, OutOfTime, TicketMismatch
from minitickets_tickets.issue import SECONDS_FOR_A_SEAT, TRIES_OF_A_SEAT, Issued
from tests.fixtures.ticket_fakes import FakeAws, FakeProcess, read_qr, refusal

pytestmark = pytest.mark.unit

MakeMessage = Callable[..., BookingConfirmed]


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


def plenty() -> float:
    return 30.0


def assert_issued(aws: FakeAws, message: BookingConfirmed) -> None:
    """Exactly one ready ticket a seat, whose image decodes to its token, which verifies and names it."""
    assert len(aws.items) == len(message.seats)
    assert len(aws.objects) == len(message.seats)
    for seat in message.seats:
        item = aws.item(f"{message.booking_id}:{seat}")
        assert item["status"] == {"S": "ready"}
        stored = aws.objects[item["imageKey"]["S"]]
        assert read_qr(stored["Body"]) == item["qrToken"]["S"]
        assert TicketToken.verify(item["qrToken"]["S"], aws.keys).ticket_id == f"{message.booking_id}:{seat}"


def at_call(number: int, act: Callable[[str], None]) -> Callable[[str], None]:
    """A hook that acts once, at the ``number``-th call (from 0)."""
    passed: list[str] = []

    def hook(action: str) -> None:
        passed.append(action)
        if len(passed) == number + 1:
            act(action)

    return hook


def die(action: str) -> None:
    raise Killed(action)


def lose_reply(action: str) -> None:
    raise ReadTimeoutError(endpoint_url="https://example.invalid")


def calls_of(aws: FakeAws, message: BookingConfirmed) -> list[str]:
    process = FakeProcess(aws=aws)
    process.issuer().issue(message, seconds_left=plenty)
    return process.calls


def test_a_booking_gets_one_ready_ticket_a_seat(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1", "A-2", "B-17")

    issued = FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)

    assert issued == Issued(made=3, found=0)
    assert_issued(aws, message)


def test_a_ticket_says_all_that_is_asked_of_it_later(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1")
    FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)

    stored = aws.item(f"{message.booking_id}:A-1")
    assert stored.pop("eventSequence") == {"N": "0"}
    item = {name: value["S"] for name, value in stored.items()}

    assert item.pop("qrToken").startswith("mt1.")
    assert item.pop("createdAt") <= item.pop("readyAt")
    assert item == {
        "userId": message.customer.user_id,
        "ticketId": f"{message.booking_id}:A-1",
        "bookingId": message.booking_id,
        "eventId": message.event.event_id,
        "seat": "A-1",
        "eventTitle": "Nachtmusik",
        "venue": "Große Halle",
        "eventStartsAt": "2026-12-31T20:00:00-08:00",
        "timeZone": "America/Los_Angeles",
        "eventDate": "2026-12-31",
        "eventDateKey": f"2026-12-31T20:00:00-08:00#{message.booking_id}:A-1",
        "status": "ready",
        "imageKey": f"tickets/{message.event.event_id}/{message.booking_id}/A-1.png",
        "correlationId": "correlation-7",
    }


def test_an_image_is_served_as_a_png(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1")
    FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)

    assert [stored["ContentType"] for stored in aws.objects.values()] == ["image/png"]


def test_a_token_holds_no_personal_data_and_is_never_the_same_twice(
    keys: SigningKeys, make_message: MakeMessage
) -> None:
    message = make_message("A-1")
    tokens = []
    for _ in range(2):
        aws = FakeAws(keys=keys)
        FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)
        tokens.append(aws.item(f"{message.booking_id}:A-1")["qrToken"]["S"])

    said = [TicketToken.verify(token, keys) for token in tokens]
    assert said[0].nonce != said[1].nonce
    assert message.customer.user_id not in repr(said)


def test_a_message_seen_twice_changes_nothing(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1", "A-2")
    FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)
    before = {key: dict(item) for key, item in aws.items.items()}, list(aws.puts)
    again = FakeProcess(aws=aws)

    issued = again.issuer().issue(message, seconds_left=plenty)

    assert issued == Issued(made=0, found=2)
    assert (aws.items, aws.puts) == before
    assert again.calls == ["GetSecretValue", "PutItem", "GetItem", "PutItem", "GetItem"]


def test_the_secret_is_read_once_a_process(aws: FakeAws, make_message: MakeMessage) -> None:
    process = FakeProcess(aws=aws)
    issuer = process.issuer()

    for _ in range(3):
        issuer.issue(make_message("A-1", "A-2"), seconds_left=plenty)

    assert process.calls.count("GetSecretValue") == 1


def dies_at(aws: FakeAws, message: BookingConfirmed, number: int, *, applied: bool) -> None:
    """An attempt that dies at its ``number``-th call, before it took effect or after (if it gets that far)."""
    hook = at_call(number, die)
    doomed = FakeProcess(aws=aws, after=hook) if applied else FakeProcess(aws=aws, before=hook)
    try:
        doomed.issuer().issue(message, seconds_left=plenty)
    except Killed:
        assert len(doomed.calls) == number + 1


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("number", range(7))
def test_a_death_anywhere_costs_nothing(aws: FakeAws, make_message: MakeMessage, number: int, applied: bool) -> None:
    message = make_message("A-1", "A-2")

    dies_at(aws, message, number, applied=applied)
    FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)

    assert_issued(aws, message)
    assert len(set(aws.puts)) == 2, "every upload of a seat has the same bytes"


@pytest.mark.parametrize("second_applied", [False, True])
@pytest.mark.parametrize("second", range(5))
@pytest.mark.parametrize("first_applied", [False, True])
@pytest.mark.parametrize("first", range(4))
def test_two_deaths_in_a_row_cost_nothing(
    aws: FakeAws, make_message: MakeMessage, first: int, first_applied: bool, second: int, second_applied: bool
) -> None:
    message = make_message("A-1")

    dies_at(aws, message, first, applied=first_applied)
    dies_at(aws, message, second, applied=second_applied)
    FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)

    assert_issued(aws, message)
    assert len(set(aws.puts)) == 1


@pytest.mark.parametrize("number", range(7))
def test_a_lost_reply_is_made_good_in_the_same_invocation(aws: FakeAws, make_message: MakeMessage, number: int) -> None:
    message = make_message("A-1", "A-2")
    process = FakeProcess(aws=aws, after=at_call(number, lose_reply))

    process.issuer().issue(message, seconds_left=plenty)

    assert_issued(aws, message)
    assert len(set(aws.puts)) == 2
    assert len(process.pauses) == 1


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize(
    "error",
    [
        refusal("Call", "ThrottlingException"),
        refusal("Call", "ProvisionedThroughputExceededException"),
        refusal("Call", "SlowDown", status=503),
        refusal("Call", "InternalError", status=500),
        ConnectTimeoutError(endpoint_url="https://example.invalid"),
    ],
    ids=lambda error: type(error).__name__ if not hasattr(error, "response") else error.response["Error"]["Code"],
)
def test_a_passing_failure_is_tried_again_at_once(
    aws: FakeAws, make_message: MakeMessage, number: int, error: Exception
) -> None:
    def fail(action: str) -> None:
        raise error

    message = make_message("A-1", "A-2")

    FakeProcess(aws=aws, before=at_call(number, fail)).issuer().issue(message, seconds_left=plenty)

    assert_issued(aws, message)


def test_a_failure_that_stays_ends_the_attempt(aws: FakeAws, make_message: MakeMessage) -> None:
    def throttle(action: str) -> None:
        if action == "PutObject":
            raise refusal(action, "SlowDown", status=503)

    process = FakeProcess(aws=aws, before=throttle)

    with pytest.raises(CallFailed, match="PutObject failed: SlowDown"):
        process.issuer().issue(make_message("A-1", "A-2"), seconds_left=plenty)

    assert process.calls.count("PutObject") == TRIES_OF_A_SEAT
    assert aws.objects == {}


@pytest.mark.parametrize("code", ["AccessDeniedException", "ValidationException", "ResourceNotFoundException"])
def test_a_refusal_is_not_tried_again(aws: FakeAws, make_message: MakeMessage, code: str) -> None:
    def refuse(action: str) -> None:
        if action == "PutItem":
            raise refusal(action, code)

    process = FakeProcess(aws=aws, before=refuse)

    with pytest.raises(CallFailed, match=f"PutItem failed: {code}"):
        process.issuer().issue(make_message("A-1"), seconds_left=plenty)

    assert process.calls.count("PutItem") == 1


def test_a_seat_begins_only_while_there_is_time_for_it(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1", "A-2", "A-3")
    left = iter([30.0, SECONDS_FOR_A_SEAT + 0.1, SECONDS_FOR_A_SEAT - 0.1])

    with pytest.raises(OutOfTime, match="after 2 of 3 seats"):
        FakeProcess(aws=aws).issuer().issue(message, seconds_left=lambda: next(left))

    assert [item["status"]["S"] for item in aws.items.values()] == ["ready", "ready"]
    resumed = FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)
    assert resumed == Issued(made=1, found=2)
    assert_issued(aws, message)


def test_a_failed_seat_is_not_tried_again_without_time_for_it(aws: FakeAws, make_message: MakeMessage) -> None:
    left = iter([30.0, SECONDS_FOR_A_SEAT - 0.1])
    process = FakeProcess(aws=aws, after=at_call(1, lose_reply))

    with pytest.raises(CallFailed, match="PutItem failed: ReadTimeoutError"):
        process.issuer().issue(make_message("A-1"), seconds_left=lambda: next(left))

    assert process.pauses == []


def test_the_time_for_a_seat_holds_all_its_calls_at_their_slowest(
    aws: FakeAws, keys: SigningKeys, make_message: MakeMessage, move: Callable[..., EventMoved]
) -> None:
    """The longest way: an event that moved, a token of a key that is not known yet, and another attempt that is ready
    a moment before."""
    message = make_message("A-1")
    calls_of(aws, message)
    item = aws.item(f"{message.booking_id}:A-1")
    new_keys = SigningKeys("k2", {**keys.keys, "k2": "second-key-" + "b" * 32})
    said = TicketToken.verify(item["qrToken"]["S"], keys)
    item["qrToken"] = {"S": replace(said, key_id="k2").sign(new_keys)}
    item["status"] = {"S": "creating"}

    def rotate_and_overtake(action: str) -> None:
        if action == "PutItem":
            aws.keys = new_keys
        if action == "PutObject":
            item["status"] = {"S": "ready"}

    process = FakeProcess(aws=aws, before=rotate_and_overtake)
    process.issuer().issue(move(message, 1), seconds_left=plenty)

    assert process.calls == [
        *("GetSecretValue", "PutItem", "GetItem", "GetSecretValue", "UpdateItem", "PutObject", "UpdateItem", "GetItem")
    ]
    assert len(process.calls) * (CONNECT_SECONDS + READ_SECONDS) < SECONDS_FOR_A_SEAT
    assert SECONDS_FOR_A_SEAT < 28, "the function's timeout is 30 s"


def test_a_stale_upload_after_ready_leaves_the_image_as_it_was(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1")

    def let_another_finish(action: str) -> None:
        FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)

    stale = FakeProcess(aws=aws, before=at_call(2, let_another_finish))
    stale.issuer().issue(message, seconds_left=plenty)

    assert stale.calls[2] == "PutObject"
    assert len(aws.puts) == 2
    assert len(set(aws.puts)) == 1
    assert_issued(aws, message)


@pytest.mark.parametrize("later", ["ready", "checked-in"])
def test_a_late_attempt_does_not_undo_a_later_state(aws: FakeAws, make_message: MakeMessage, later: str) -> None:
    message = make_message("A-1")
    ticket_id = f"{message.booking_id}:A-1"

    def go_on_meanwhile(action: str) -> None:
        aws.item(ticket_id)["status"] = {"S": later}
        aws.item(ticket_id)["readyAt"] = {"S": "earlier"}

    late = FakeProcess(aws=aws, before=at_call(3, go_on_meanwhile))
    late.issuer().issue(message, seconds_left=plenty)

    assert late.calls[3] == "UpdateItem"
    assert aws.item(ticket_id)["status"] == {"S": later}
    assert aws.item(ticket_id)["readyAt"] == {"S": "earlier"}


def test_a_ticket_that_is_past_ready_is_left_alone(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1")
    calls_of(aws, message)
    aws.item(f"{message.booking_id}:A-1")["status"] = {"S": "checked-in"}
    aws.puts.clear()

    assert FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty) == Issued(made=0, found=1)
    assert aws.item(f"{message.booking_id}:A-1")["status"] == {"S": "checked-in"}
    assert aws.puts == []


def test_a_token_that_changed_meanwhile_is_reported_and_not_overwritten(
    aws: FakeAws, make_message: MakeMessage
) -> None:
    message = make_message("A-1")
    ticket_id = f"{message.booking_id}:A-1"

    def replace_token(action: str) -> None:
        aws.item(ticket_id)["qrToken"] = {"S": "somebody else's"}

    process = FakeProcess(aws=aws, before=at_call(3, replace_token))

    with pytest.raises(TicketMismatch, match="qrToken"):
        process.issuer().issue(message, seconds_left=plenty)

    assert aws.item(ticket_id)["status"] == {"S": "creating"}


OTHER = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("attribute", "value", "named"),
    [
        ("userId", OTHER, "user_id"),
        ("ticketId", f"{OTHER}:A-1", "ticket_id"),
        ("bookingId", OTHER, "booking_id"),
        ("eventId", OTHER, "event_id"),
        ("seat", "A-2", "seat"),
        ("seat", None, "seat"),
        ("qrToken", "mt1.e30.AAAA", "qrToken"),
        ("qrToken", "no token", "qrToken"),
        ("qrToken", None, "qrToken"),
    ],
)
def test_what_is_stored_under_the_key_must_be_this_ticket(
    aws: FakeAws, make_message: MakeMessage, attribute: str, value: str | None, named: str
) -> None:
    message = make_message("A-1")
    calls_of(aws, message)
    item = aws.item(f"{message.booking_id}:A-1")
    item["status"] = {"S": "creating"}
    if value is None:
        del item[attribute]
    else:
        item[attribute] = {"S": value}
    aws.puts.clear()

    with pytest.raises(TicketMismatch, match=named):
        FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)

    assert aws.puts == []
    assert item["status"] == {"S": "creating"}


def test_a_damaged_ticket_does_not_hold_up_its_neighbours(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1", "A-2", "A-3")
    with pytest.raises(Killed):
        FakeProcess(aws=aws, before=at_call(2, die)).issuer().issue(message, seconds_left=plenty)
    aws.item(f"{message.booking_id}:A-1")["eventId"] = {"S": OTHER}

    with pytest.raises(TicketMismatch, match=rf"{message.booking_id}:A-1 is another one: its event_id differs"):
        FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)

    statuses = {key: item["status"]["S"] for (_, key), item in aws.items.items()}
    assert statuses == {
        f"{message.booking_id}:A-1": "creating",
        f"{message.booking_id}:A-2": "ready",
        f"{message.booking_id}:A-3": "ready",
    }


@pytest.mark.parametrize("changed", ["ticket", "event"])
def test_a_genuine_token_of_another_ticket_is_not_drawn(
    aws: FakeAws, keys: SigningKeys, make_message: MakeMessage, changed: str
) -> None:
    message = make_message("A-1", "A-2")
    calls_of(aws, message)
    first = aws.item(f"{message.booking_id}:A-1")
    if changed == "ticket":
        first["qrToken"] = aws.item(f"{message.booking_id}:A-2")["qrToken"]
    else:
        said = TicketToken.verify(first["qrToken"]["S"], keys)
        first["qrToken"] = {"S": replace(said, event_id=OTHER).sign(keys)}
    first["status"] = {"S": "creating"}

    with pytest.raises(TicketMismatch, match="qrToken"):
        FakeProcess(aws=aws).issuer().issue(message, seconds_left=plenty)


def test_a_token_of_a_key_that_came_after_this_process_is_recognised(
    aws: FakeAws, keys: SigningKeys, make_message: MakeMessage
) -> None:
    old = FakeProcess(aws=aws)
    issuer = old.issuer()
    issuer.issue(make_message("A-1"), seconds_left=plenty)
    aws.keys = SigningKeys("k2", {**keys.keys, "k2": "second-key-" + "b" * 32})
    message = make_message("B-1")
    with pytest.raises(Killed):
        FakeProcess(aws=aws, before=at_call(2, die)).issuer().issue(message, seconds_left=plenty)
    token = aws.item(f"{message.booking_id}:B-1")["qrToken"]["S"]
    assert TicketToken.verify(token, aws.keys).key_id == "k2"

    issuer.issue(message, seconds_left=plenty)

    assert aws.item(f"{message.booking_id}:B-1")["qrToken"]["S"] == token
    assert aws.item(f"{message.booking_id}:B-1")["status"] == {"S": "ready"}
    assert old.calls.count("GetSecretValue") == 2


def test_a_token_that_nobody_signed_costs_one_more_look_at_the_secret(aws: FakeAws, make_message: MakeMessage) -> None:
    message = make_message("A-1")
    calls_of(aws, message)
    stranger = SigningKeys("k9", {"k9": "stranger" * 4})
    item = aws.item(f"{message.booking_id}:A-1")
    item["qrToken"] = {"S": replace(TicketToken.verify(item["qrToken"]["S"], aws.keys), key_id="k9").sign(stranger)}
    process = FakeProcess(aws=aws)

    with pytest.raises(TicketMismatch):
        process.issuer().issue(message, seconds_left=plenty)

    assert process.calls.count("GetSecretValue") == 2
