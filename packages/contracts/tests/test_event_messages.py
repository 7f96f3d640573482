"""What a message must be before a consumer believes it, and that nothing is lost on the way."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_contracts.bodies import MAX_MESSAGE_BYTES, message_document
from minitickets_contracts.fields import ContractError
from minitickets_contracts.messages import (
    BookedEvent,
    BookingCancelled,
    BookingConfirmed,
    BookingMailRequested,
    Customer,
    EventMoved,
    PasswordResetRequested,
    PreviousSchedule,
    message_type,
)

pytestmark = pytest.mark.unit

UUID = "3f2b8f3e-5c1e-4b5e-9a51-0d6c9f0a7b11"
OTHER = "8f14e45f-ceea-467f-a8d5-1c2d3e4f5a6b"
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
        "sequence": 1,
    },
    "seats": ["A-1", "A-2"],
    "totalMinor": 4200,
    "currency": "EUR",
}
RESET_TOKEN = "canary_kZ-3f2b8f3e5c1e4b5e9a510d6c9f0a7b11x"
Message = BookingConfirmed | BookingMailRequested | EventMoved | BookingCancelled | PasswordResetRequested
OTHERS: dict[type[Message], dict[str, Any]] = {
    BookingMailRequested: {**DOCUMENT, "type": "booking.mail-requested"},
    EventMoved: {
        **DOCUMENT,
        "type": "event.moved",
        "previous": {"startsAt": "2026-12-30T20:00:00+01:00", "timeZone": "Europe/Berlin", "venue": "Kleine Halle"},
    },
    BookingCancelled: {**DOCUMENT, "type": "booking.cancelled", "cancelledAt": "2026-11-29T12:00:00Z"},
    PasswordResetRequested: {
        **{name: DOCUMENT[name] for name in ("version", "messageId", "correlationId", "occurredAt", "customer")},
        "type": "password.reset-requested",
        "token": RESET_TOKEN,
        "expiresAt": "2026-11-29T13:00:00Z",
    },
}
DOCUMENTS: dict[type[Message], dict[str, Any]] = {BookingConfirmed: DOCUMENT, **OTHERS}
OPTIONAL = {"event.sequence"}
MISSING = object()


def changed(path: str, value: object, of: dict[str, Any] = DOCUMENT) -> str:
    """The document with one field set, or taken away."""
    document = json.loads(json.dumps(of))
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
starts = st.datetimes(timezones=offsets).map(lambda moment: moment.replace(microsecond=0).isoformat())
instants = st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
seat_names = st.from_regex(r"[A-Z0-9-]{1,8}", fullmatch=True)
booking_fields: dict[str, st.SearchStrategy[Any]] = {
    "message_id": st.uuids().map(str),
    "booking_id": st.uuids().map(str),
    "correlation_id": st.from_regex(r"[A-Za-z0-9._:/=+-]{1,128}", fullmatch=True),
    "occurred_at": instants,
    "customer": st.builds(Customer, user_id=st.uuids().map(str), email=st.emails(), name=printable),
    "event": st.builds(
        BookedEvent,
        event_id=st.uuids().map(str),
        title=printable,
        venue=printable,
        starts_at=starts,
        time_zone=st.timezone_keys(),
        sequence=st.integers(min_value=1, max_value=10**9),
    ),
    "seats": st.lists(st.from_regex(r"[A-Z0-9-]{1,8}", fullmatch=True), min_size=1, max_size=10, unique=True).map(
        tuple
    ),
    "total_minor": st.integers(min_value=0, max_value=10**12),
    "currency": st.from_regex(r"[A-Z]{3}", fullmatch=True),
}
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(BookingConfirmed, **booking_fields),
    st.builds(BookingMailRequested, **booking_fields),
    st.builds(
        EventMoved,
        **booking_fields,
        previous=st.builds(PreviousSchedule, starts_at=starts, time_zone=st.timezone_keys(), venue=printable),
    ),
    st.builds(BookingCancelled, **booking_fields, cancelled_at=instants),
    st.builds(
        PasswordResetRequested,
        **{name: booking_fields[name] for name in ("message_id", "correlation_id", "occurred_at", "customer")},
        token=st.from_regex(r"[A-Za-z0-9_-]{32,128}", fullmatch=True),
        expires_at=instants,
    ),
)


@settings(deadline=None)
@given(messages)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    assert type(message).from_json(message.to_json()) == message


def every_type() -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("of", "document"), DOCUMENTS.items(), ids=lambda value: getattr(value, "TYPE", ""))


def every_path(*, required: bool = False) -> pytest.MarkDecorator:
    """Each field of each type; those that all share are named for each, because each reads them."""
    cases = [
        (of, path)
        for of, document in DOCUMENTS.items()
        for path in paths(document)
        if not (required and path in OPTIONAL)
    ]
    return pytest.mark.parametrize(("of", "path"), cases, ids=[f"{of.TYPE} {path}" for of, path in cases])


@every_type()
def test_a_message_is_the_documented_json(of: type[Message], document: dict[str, Any]) -> None:
    assert json.loads(of.from_json(json.dumps(document)).to_json()) == document


@every_type()
def test_each_type_arrives_as_it_was_sent(of: type[Message], document: dict[str, Any]) -> None:
    message = of.from_json(json.dumps(document))
    assert of.from_json(message.to_json()) == message


@every_type()
def test_a_message_of_another_type_is_refused(of: type[Message], document: dict[str, Any]) -> None:
    for other in DOCUMENTS.keys() - {of}:
        assert_refused("type", partial(other.from_json, json.dumps(document)))


@every_type()
def test_a_newer_version_of_any_type_is_refused(of: type[Message], document: dict[str, Any]) -> None:
    assert_refused("version", lambda: of.from_json(json.dumps({**document, "version": 2})))


def test_a_message_from_before_events_could_move_has_not_moved() -> None:
    assert BookingConfirmed.from_json(changed("event.sequence", MISSING)).event.sequence == 0


def test_an_event_that_moved_has_moved_at_least_once() -> None:
    assert_refused("event.sequence", lambda: EventMoved.from_json(changed("event.sequence", 0, OTHERS[EventMoved])))
    assert_refused(
        "event.sequence", lambda: EventMoved.from_json(changed("event.sequence", MISSING, OTHERS[EventMoved]))
    )


@pytest.mark.parametrize("value", ["2026-12-31T20:00:00Z", "2026-02-30T20:00:00-08:00", "", None])
def test_what_was_is_held_to_the_same_spelling_as_what_is(value: object) -> None:
    body = changed("previous.startsAt", value, OTHERS[EventMoved])
    assert_refused("previous.startsAt", lambda: EventMoved.from_json(body))


@pytest.mark.parametrize(
    "token", ["short", "a" * 31, "a" * 129, "a" * 32 + "&x=1", "a" * 32 + "\n", "ä" * 32, "a b" * 15]
)
def test_a_token_that_could_be_guessed_or_break_a_link_is_refused(token: str) -> None:
    body = changed("token", token, OTHERS[PasswordResetRequested])
    error = assert_refused("token", lambda: PasswordResetRequested.from_json(body))
    assert token not in str(error)


def test_a_reset_does_not_show_its_token() -> None:
    message = PasswordResetRequested.from_json(json.dumps(OTHERS[PasswordResetRequested]))

    assert message.token == RESET_TOKEN
    assert "canary" not in repr(message)
    assert "canary" not in str(message)


def test_each_type_has_a_job_key_of_its_own() -> None:
    """The job is the action, not the publication: only what is asked for anew each time is named by its message."""
    job_keys = [
        of.from_json(json.dumps({**document, "messageId": OTHER})).job_key for of, document in DOCUMENTS.items()
    ]

    assert job_keys == [
        f"booking.confirmed:{UUID}",
        f"booking.mail-requested:{OTHER}",
        f"event.moved:{UUID}:1",
        f"booking.cancelled:{UUID}",
        f"password.reset-requested:{OTHER}",
    ]


def test_text_is_sent_as_utf_8_not_as_escapes() -> None:
    assert "Große Halle" in BookingConfirmed.from_json(json.dumps(DOCUMENT)).to_json()


def test_fields_of_a_newer_producer_are_ignored() -> None:
    document = json.loads(json.dumps(DOCUMENT))
    document["later"] = {"deep": [1, 2.5, None]}
    document["customer"]["later"] = True
    document["event"]["later"] = []

    assert BookingConfirmed.from_json(json.dumps(document)) == BookingConfirmed.from_json(json.dumps(DOCUMENT))


@every_path(required=True)
def test_a_missing_field_is_named(of: type[Message], path: str) -> None:
    error = assert_refused(path, lambda: of.from_json(changed(path, MISSING, DOCUMENTS[of])))
    assert error.problem == "is missing"


@every_path()
@pytest.mark.parametrize("value", [None, True, 1.5, [], -1, "", "x" * 300, "a\x00b", "line\nbreak"], ids=repr)
def test_a_value_of_the_wrong_kind_is_refused_by_name(of: type[Message], path: str, value: object) -> None:
    assert_refused(path, lambda: of.from_json(changed(path, value, DOCUMENTS[of])))


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
        ("occurredAt", "0001-01-01T00:00:00+01:00"),
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
    largest = EventMoved(
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
            sequence=10**9,
        ),
        previous=PreviousSchedule(starts_at="2026-12-31T20:00:00-08:00", time_zone="A" * 64, venue="𝄞" * 200),
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
