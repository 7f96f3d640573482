from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_contracts import keys
from minitickets_contracts.fields import ContractError

pytestmark = pytest.mark.unit

BOOKING = "3f2b8f3e-5c1e-4b5e-9a51-0d6c9f0a7b11"
EVENT = "8f14e45f-ceea-467f-a8d5-1c2d3e4f5a6b"
START = "2026-12-31T20:00:00-08:00"

seats = st.from_regex(r"[A-Z0-9-]{1,8}", fullmatch=True)


def test_the_keys_are_the_documented_ones() -> None:
    ticket = keys.ticket_id(BOOKING, "A-1")

    assert keys.booking_confirmed_job_key(BOOKING) == f"booking.confirmed:{BOOKING}"
    assert ticket == f"{BOOKING}:A-1"
    assert keys.event_date(START) == "2026-12-31"
    assert keys.event_date_key(START, ticket) == f"{START}#{BOOKING}:A-1"
    assert keys.ticket_image_key(EVENT, BOOKING, "A-1") == f"tickets/{EVENT}/{BOOKING}/A-1.png"


@settings(deadline=None)
@given(st.uuids().map(str), seats)
def test_a_ticket_id_tells_its_booking_and_seat(booking: str, seat: str) -> None:
    assert keys.split_ticket_id(keys.ticket_id(booking, seat)) == (booking, seat)


@settings(deadline=None)
@given(st.tuples(st.uuids().map(str), seats), st.tuples(st.uuids().map(str), seats))
def test_different_seats_never_share_a_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (keys.ticket_id(*one) == keys.ticket_id(*other)) == (one == other)
    assert (keys.ticket_image_key(EVENT, *one) == keys.ticket_image_key(EVENT, *other)) == (one == other)


@pytest.mark.parametrize("booking", ["", "1", BOOKING.upper(), BOOKING + ":A-1", "../" + BOOKING[3:], BOOKING + "\n"])
def test_a_key_is_not_made_from_a_forged_booking(booking: str) -> None:
    makers: list[Callable[[], object]] = [
        lambda: keys.booking_confirmed_job_key(booking),
        lambda: keys.booking_cancelled_job_key(booking),
        lambda: keys.event_moved_job_key(booking, 1),
        lambda: keys.ticket_id(booking, "A-1"),
        lambda: keys.ticket_image_key(EVENT, booking, "A-1"),
    ]
    for make in makers:
        with pytest.raises(ContractError, match=r"^bookingId: "):
            make()


@pytest.mark.parametrize("message", ["", "1", BOOKING.upper(), BOOKING + ":1"])
def test_a_key_is_not_made_from_a_forged_message_id(message: str) -> None:
    for make in (keys.booking_mail_requested_job_key, keys.password_reset_requested_job_key):
        with pytest.raises(ContractError, match=r"^messageId: "):
            make(message)


@pytest.mark.parametrize("sequence", [0, -1, 10**9 + 1, True])
def test_a_move_is_counted_from_one(sequence: int) -> None:
    with pytest.raises(ContractError, match=r"^event.sequence: "):
        keys.event_moved_job_key(BOOKING, sequence)


@pytest.mark.parametrize("seat", ["", "a-1", "A:1", "A/1", "..", "A" * 9, "A-1\n"])
def test_a_key_is_not_made_from_a_forged_seat(seat: str) -> None:
    makers: list[Callable[[], object]] = [
        lambda: keys.ticket_id(BOOKING, seat),
        lambda: keys.ticket_image_key(EVENT, BOOKING, seat),
        lambda: keys.split_ticket_id(f"{BOOKING}:{seat}"),
        lambda: keys.event_date_key(START, f"{BOOKING}:{seat}"),
    ]
    for make in makers:
        with pytest.raises(ContractError, match=r"^seat: "):
            make()


def test_a_key_is_not_made_from_a_forged_event() -> None:
    with pytest.raises(ContractError, match=r"^eventId: "):
        keys.ticket_image_key("../posters", BOOKING, "A-1")


def test_what_is_no_ticket_id_is_not_split() -> None:
    with pytest.raises(ContractError, match=r"^ticketId: "):
        keys.split_ticket_id(BOOKING)


@pytest.mark.parametrize("start", ["2026-12-31", "2026-12-31T20:00:00Z", "", "31.12.2026"])
def test_a_date_is_not_taken_from_another_spelling(start: str) -> None:
    with pytest.raises(ContractError, match=r"^startsAt: "):
        keys.event_date(start)
    with pytest.raises(ContractError, match=r"^startsAt: "):
        keys.event_date_key(start, keys.ticket_id(BOOKING, "A-1"))
