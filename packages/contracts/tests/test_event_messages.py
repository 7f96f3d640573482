"""What a message must be before a consumer believes it, and that nothing is lost on the way."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_contracts.fields import ContractError
from minitickets_contracts.messages import (
    MAX_MESSAGE_BYTES,
    BookedEvent,
    BookingConfirmed,
    Customer,
    message_document,
    message_type,
)

pytestmark = pytest.mark.unit

UUID = "3f2b8f3e-5c1e-4b5e-9a51-0d6c9f0a7b11"
DOCUMENT: dict[str, Any] = {
    "type": "booking.confirmed",
    "version": 1,
    "messageId": UUID,
    "bookingId": UUID,
    "correlationId": "c-1",
    "occurredAt": "2026-11-29T12:00:00Z",
    "customer": {"userId": UUID, "email": "ada@example.org", "name": "Ada"},
    "event": {
        "eventId": UUID,
        "title": "Nachtmusik",
        "venue": "Große Halle",
        "startsAt": "2026-12-31T20:00:00-08:00",
        "timeZone": "America/Los_Angeles",
    },
    "seats": ["A-1", "A-2"],
    "totalMinor": 4200,
    "currency": "EUR",
}
MISSING = object()


def changed(path: str, value: object) -> str:
    """The document with one field set, or taken away."""
    document = json.loads(json.dumps(DOCUMENT))
    *parents, name = path.split(".")
    place = document
    for parent in parents:
        place = place[parent]
    if value is MISSING:
        del place[name]
    else:
        place[name] = value
    return json.dumps(document)


def paths(document: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name, value in document.items():
        found.append(f"{prefix}{name}")
        if isinstance(value, dict):
            found += paths(value, f"{prefix}{name}.")
    return found


def assert_refused(field: str, read: Callable[[], object]) -> ContractError:
    with pytest.raises(ContractError) as refused:
        read()
    assert refused.value.field == field
    assert str(refused.value) == f"{field}: {refused.value.problem}"
    return refused.value


printable = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=200).filter(
    lambda text: text.strip() != ""
)
offsets = st.integers(min_value=-14 * 60, max_value=14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
messages = st.builds(
    BookingConfirmed,
    message_id=st.uuids().map(str),
    booking_id=st.uuids().map(str),
    correlation_id=st.from_regex(r"[A-Za-z0-9._:/=+-]{1,128}", fullmatch=True),
    occurred_at=st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    customer=st.builds(Customer, user_id=st.uuids().map(str), email=st.emails(), name=printable),
    event=st.builds(
        BookedEvent,
        event_id=st.uuids().map(str),
        title=printable,
        venue=printable,
        starts_at=st.datetimes(timezones=offsets).map(lambda moment: moment.replace(microsecond=0).isoformat()),
        time_zone=st.timezone_keys(),
    ),
    seats=st.lists(st.from_regex(r"[A-Z0-9-]{1,8}", fullmatch=True), min_size=1, max_size=10, unique=True).map(tuple),
    total_minor=st.integers(min_value=0, max_value=10**12),
    currency=st.from_regex(r"[A-Z]{3}", fullmatch=True),
)


@settings(deadline=None)
@given(messages)
def test_a_message_arrives_as_it_was_sent(message: BookingConfirmed) -> None:
    assert BookingConfirmed.from_json(message.to_json()) == message


def test_a_message_is_the_documented_json() -> None:
    assert json.loads(BookingConfirmed.from_json(json.dumps(DOCUMENT)).to_json()) == DOCUMENT


def test_text_is_sent_as_utf_8_not_as_escapes() -> None:
    assert "Große Halle" in BookingConfirmed.from_json(json.dumps(DOCUMENT)).to_json()


def test_fields_of_a_newer_producer_are_ignored() -> None:
    document = json.loads(json.dumps(DOCUMENT))
    document["later"] = {"deep": [1, 2.5, None]}
    document["customer"]["later"] = True
    document["event"]["later"] = []

    assert BookingConfirmed.from_json(json.dumps(document)) == BookingConfirmed.from_json(json.dumps(DOCUMENT))


@pytest.mark.parametrize("path", paths(DOCUMENT))
def test_a_missing_field_is_named(path: str) -> None:
    error = assert_refused(path, lambda: BookingConfirmed.from_json(changed(path, MISSING)))
    assert error.problem == "is missing"


@pytest.mark.parametrize("path", paths(DOCUMENT))
@pytest.mark.parametrize("value", [None, True, 1.5, [], -1, "", "x" * 300, "a\x00b", "line\nbreak"], ids=repr)
def test_a_value_of_the_wrong_kind_is_refused_by_name(path: str, value: object) -> None:
    assert_refused(path, lambda: BookingConfirmed.from_json(changed(path, value)))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("type", "booking.cancelled"),
        ("version", 2),
        ("version", "1"),
        ("version", True),
        ("messageId", UUID.upper()),
        ("messageId", UUID.replace("-", "")),
        ("messageId", "{" + UUID[:34] + "}"),
        ("bookingId", "booking-1"),
        ("correlationId", "c" * 129),
        ("correlationId", ""),
        ("correlationId", "ada@example.org"),
        ("correlationId", "two words"),
        ("occurredAt", "2026-11-29T12:00:00"),
        ("occurredAt", "yesterday"),
        ("customer", []),
        ("customer.userId", "1"),
        ("customer.email", "ada"),
        ("customer.email", "@example.org"),
        ("customer.email", "ada@"),
        ("customer.email", "ada lovelace@example.org"),
        ("customer.email", "ada@example.org\r\nBcc: all@example.org"),
        ("customer.email", "a" * 250 + "@e.org"),
        ("customer.name", "   "),
        ("customer.name", "Ada\u2028"),
        ("customer.name", "\ud800"),
        ("customer.name", "A" * 201),
        ("event", "event"),
        ("event.startsAt", "2026-12-31T20:00:00Z"),
        ("event.startsAt", "2026-12-31T20:00:00.5-08:00"),
        ("event.startsAt", "2026-12-31 20:00:00-08:00"),
        ("event.startsAt", "2026-02-30T20:00:00-08:00"),
        ("event.startsAt", "2026-12-31T24:00:00-08:00"),
        ("event.startsAt", "2026-12-31T20:00:00+00:99"),
        ("event.startsAt", "2026-12-31T20:00:00-00:00"),
        ("event.startsAt", "٢٠٢٦-12-31T20:00:00-08:00"),
        ("event.timeZone", "../../etc/passwd"),
        ("event.timeZone", "Europe/"),
        ("event.timeZone", "a" * 65),
        ("seats", "A-1"),
        ("seats", []),
        ("seats", [f"A-{number}" for number in range(11)]),
        ("seats", ["A-1", "A-1"]),
        ("totalMinor", 10**12 + 1),
        ("totalMinor", "4200"),
        ("totalMinor", 4200.0),
        ("currency", "eur"),
        ("currency", "EURO"),
        ("currency", "€€€"),
    ],
)
def test_bad_input_is_refused_by_name(path: str, value: object) -> None:
    assert_refused(path, lambda: BookingConfirmed.from_json(changed(path, value)))


@pytest.mark.parametrize("seat", ["a-1", "A:1", "A#1", "A/1", "..", "", "A" * 9, "A\n", "Ä1", 1, None])
def test_a_seat_through_which_a_key_could_be_forged_is_refused_by_its_place(seat: object) -> None:
    assert_refused("seats[1]", lambda: BookingConfirmed.from_json(changed("seats", ["A-1", seat])))


@pytest.mark.parametrize(
    "body",
    ["", "{", "nonsense", "[" * 20_000, '{"a":' * 20_000, "1" * 5000, '{"n": ' + "9" * 5000 + "}", "\x00", "\ufeff{}"],
    ids=lambda body: repr(body[:8]),
)
def test_what_is_not_json_is_refused(body: str) -> None:
    error = assert_refused("message", lambda: message_document(body))
    assert error.problem == "must be JSON"


@pytest.mark.parametrize("body", ["[]", "1", '"text"', "null", "true"])
def test_json_that_is_no_object_is_refused(body: str) -> None:
    error = assert_refused("message", lambda: message_document(body))
    assert error.problem == "must be an object"


def test_a_lone_surrogate_in_the_body_is_refused() -> None:
    assert_refused("message", lambda: message_document('{"type":"\ud800"}'))


def test_a_lone_surrogate_that_json_spells_out_is_refused() -> None:
    assert_refused("type", lambda: message_type('{"type":"\\ud800"}'))


def test_a_message_may_have_200_kibibytes_and_not_one_more() -> None:
    frame = json.dumps({**DOCUMENT, "padding": ""}, ensure_ascii=False)
    room = MAX_MESSAGE_BYTES - len(frame.encode())
    filled = json.dumps({**DOCUMENT, "padding": "x" * room}, ensure_ascii=False)
    assert len(filled.encode()) == 200 * 1024

    assert BookingConfirmed.from_json(filled).booking_id == UUID
    error = assert_refused("message", lambda: BookingConfirmed.from_json(filled + " "))
    assert "has 204801" in error.problem


def test_the_size_is_counted_in_bytes_not_in_characters() -> None:
    body = json.dumps({**DOCUMENT, "padding": "ß" * 103_000}, ensure_ascii=False)
    assert len(body) < MAX_MESSAGE_BYTES

    assert_refused("message", lambda: BookingConfirmed.from_json(body))


def test_the_largest_valid_message_fits() -> None:
    """The limits of the fields keep a message far below the limit of its size: no booking can be unpublishable."""
    largest = BookingConfirmed(
        message_id=UUID,
        booking_id=UUID,
        correlation_id="c" * 128,
        occurred_at="2026-11-29T12:00:00.123456+00:00",
        customer=Customer(user_id=UUID, email="𝄞" * 252 + "@x", name="𝄞" * 200),
        event=BookedEvent(
            event_id=UUID,
            title="𝄞" * 200,
            venue="𝄞" * 200,
            starts_at="2026-12-31T20:00:00-08:00",
            time_zone="A" * 64,
        ),
        seats=tuple(f"ABCDEFG{number}" for number in range(10)),
        total_minor=10**12,
        currency="EUR",
    )

    assert len(largest.to_json().encode()) < 10 * 1024


@pytest.mark.parametrize("type_name", ["booking.confirmed", "booking.cancelled", "something new"])
def test_a_consumer_can_tell_a_type_without_reading_the_rest(type_name: str) -> None:
    assert message_type(json.dumps({"type": type_name, "version": 99})) == type_name


def test_an_error_does_not_repeat_what_may_be_personal() -> None:
    body = changed("customer.email", "canary example.org")

    error = assert_refused("customer.email", lambda: BookingConfirmed.from_json(body))

    assert "canary" not in str(error)
