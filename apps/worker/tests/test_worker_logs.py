"""What the worker's log lines hold: enough to find a booking's mail, nothing about its customer."""

import json
from collections.abc import Callable

import pytest

from apps.worker.tests.fakes import FakeInvocation, FakeSes, client_error, lost_reply, raising
from apps.worker.tests.worker_under_test import (
    BOOKING_ID,
    Message,
    Worker,
    booking,
    cancelled,
    moved,
    record,
    requested,
    reset,
)
from minitickets_contracts.messages import BookingConfirmed
from minitickets_worker.logs import message_identity

pytestmark = pytest.mark.unit

NAME, TITLE = "Canaria Secretname", "Canary Title Event"
ADDRESS, DOMAIN = "canary.address@canary-domain.example", "canary-domain"
# Whatever of these got into a line would be found in it in any case.
CANARIES = ("canary", "canaria", "secretname", "c0ffee")
ECHO = f"Rejected recipient {ADDRESS} ({NAME}) token c0ffee"


def message() -> BookingConfirmed:
    return booking(email=ADDRESS, name=NAME, title=TITLE, venue="Canary Hall")


def throttle() -> None:
    raise client_error("TooManyRequestsException", status=429, message=ECHO)


def _answer(error: Exception) -> Callable[[Worker], None]:
    return lambda worker: worker.ses.sends.before.append(raising(error))


def _table_fails(worker: Worker) -> None:
    worker.table.reads.before = [raising(client_error("AccessDeniedException", message=ECHO))]


def _record_fails(worker: Worker) -> None:
    worker.table.writes.before = [None, raising(ValueError(ECHO))]


def _throttled(worker: Worker) -> None:
    worker.ses = FakeSes(allow=throttle)
    worker.in_invocation(worker.invocation)


def _throttled_and_not_released(worker: Worker) -> None:
    _throttled(worker)
    worker.table.writes.before = [None, raising(client_error("AccessDeniedException", message=ECHO))]


def _leased_elsewhere(worker: Worker) -> None:
    worker.jobs.begin(f"booking.confirmed:{BOOKING_ID}")


def _done(worker: Worker) -> None:
    Worker(table=worker.table).consume(record(message()))


def _no_time(worker: Worker) -> None:
    worker.in_invocation(FakeInvocation(ends=0))


PATHS: dict[str, tuple[Callable[[Worker], None], str]] = {
    "accepted": (lambda worker: None, "mail accepted"),
    "skipped": (_done, "mail skipped as duplicate"),
    "refused": (_answer(client_error("MessageRejected", message=ECHO)), "mail refused"),
    "quota": (_answer(client_error("LimitExceededException", message=ECHO)), "mail quota used up"),
    "throttled": (_throttled, "mail throttled"),
    "lease not released": (_throttled_and_not_released, "lease not released"),
    "not sent": (_answer(client_error("SendingPausedException", message=ECHO)), "mail not sent"),
    "unknown outcome": (_answer(lost_reply()), "mail outcome unknown"),
    "table refuses": (_table_fails, "message failed"),
    "record fails": (_record_fails, "message failed"),
    "unforeseen": (_answer(ValueError(ECHO)), "message failed"),
    "leased elsewhere": (_leased_elsewhere, "job in progress elsewhere"),
    "untried": (_no_time, "message untried"),
}


@pytest.mark.parametrize(("prepare", "event"), PATHS.values(), ids=PATHS.keys())
def test_every_line_of_a_message_names_its_booking_and_never_its_customer(
    prepare: Callable[[Worker], None], event: str
) -> None:
    worker = Worker()
    prepare(worker)
    worker.consume(record(message()))
    lines = [line for line in worker.logged() if "sqsMessageId" in line]
    assert event in [line["message"] for line in lines]
    for line in lines:
        assert line["correlation_id"] == f"corr-{BOOKING_ID[:8]}"
        assert line["bookingId"] == BOOKING_ID
    output = worker.log_output.getvalue().lower()
    assert [canary for canary in CANARIES if canary in output] == []


@pytest.mark.parametrize(
    "other",
    [requested(message()), moved(message(), venue="Canary Garden"), cancelled(message())],
    ids=lambda other: other.TYPE,
)
def test_every_line_of_another_message_about_a_booking_names_it_and_never_its_customer(other: Message) -> None:
    worker = Worker()
    worker.consume(record(other), record(other))
    assert worker.logged_events() == ["mail accepted", "mail skipped as duplicate"]
    for line in worker.logged():
        assert (line["bookingId"], line["jobKey"]) == (BOOKING_ID, other.job_key)
    output = worker.log_output.getvalue().lower()
    assert [canary for canary in CANARIES if canary in output] == []


RESETS = {name: path for name, path in PATHS.items() if name not in ("skipped", "leased elsewhere", "untried")}


@pytest.mark.parametrize(("prepare", "event"), RESETS.values(), ids=RESETS.keys())
def test_no_line_of_a_password_reset_holds_its_token(prepare: Callable[[Worker], None], event: str) -> None:
    worker = Worker()
    prepare(worker)
    worker.consume(record(reset(email=ADDRESS, name=NAME)))
    lines = worker.logged()
    assert event in [line["message"] for line in lines]
    for line in lines:
        if "sqsMessageId" in line:
            assert line["correlation_id"] == f"corr-{BOOKING_ID[:8]}"
            assert "bookingId" not in line
    output = worker.log_output.getvalue().lower()
    assert [canary for canary in CANARIES if canary in output] == []


@pytest.mark.parametrize(
    "changes",
    [{"version": 2}, {"token": "canary " * 9}, {"customer": None}, {"expiresAt": "canary"}, {"correlationId": ADDRESS}],
    ids=str,
)
def test_a_poisoned_password_reset_is_logged_without_its_token(changes: dict[str, object]) -> None:
    worker = Worker()
    delivery = record(json.dumps({**json.loads(reset(email=ADDRESS, name=NAME).to_json()), **changes}))
    assert worker.consume(delivery) == [delivery["messageId"]]
    assert "message poisoned" in worker.logged_events()
    output = worker.log_output.getvalue().lower()
    assert [canary for canary in CANARIES if canary in output] == []


def test_an_expired_reset_is_logged_by_its_job_alone() -> None:
    worker = Worker()
    late = reset(email=ADDRESS, name=NAME, expires_at="1970-01-01T00:00:00Z")
    worker.consume(record(late))
    [line] = worker.logged()
    assert (line["message"], line["jobKey"]) == ("reset expired unsent", late.job_key)
    output = worker.log_output.getvalue().lower()
    assert [canary for canary in CANARIES if canary in output] == []


POISON = {
    "an address where a number belongs": {"totalMinor": ADDRESS},
    "an address as the type": {"type": ADDRESS},
    "an address as the correlation id": {"correlationId": ADDRESS, "seats": []},
    "a name as the booking's id": {"bookingId": NAME},
    "a name as the seats": {"seats": [NAME]},
    "a currency": {"currency": ADDRESS},
    "an unknown version": {"version": ADDRESS},
}


@pytest.mark.parametrize("changes", POISON.values(), ids=POISON.keys())
def test_poison_is_logged_without_what_it_held(changes: dict[str, object]) -> None:
    worker = Worker()
    worker.consume(record(json.dumps({**json.loads(message().to_json()), **changes})))
    assert worker.logged_events()
    output = worker.log_output.getvalue().lower()
    assert [canary for canary in CANARIES if canary in output] == []


def test_what_belongs_to_no_message_names_none() -> None:
    worker = Worker(invocation=FakeInvocation(ends=0))
    worker.consume(record(message()))
    [line] = [line for line in worker.logged() if line["message"] == "batch stopped early"]
    assert "bookingId" not in line
    assert "correlation_id" not in line


def test_an_accepted_mail_is_found_by_its_id_at_ses_its_booking_and_its_job() -> None:
    worker = Worker()
    worker.consume(record(message()))
    [line] = [line for line in worker.logged() if line["message"] == "mail accepted"]
    assert line["messageId"] == "ses-1"
    assert line["bookingId"] == BOOKING_ID
    assert line["jobKey"] == f"booking.confirmed:{BOOKING_ID}"


def test_an_error_is_logged_with_its_code_its_call_and_where_it_came_from() -> None:
    worker = Worker()
    worker.table.reads.before = [raising(client_error("AccessDeniedException", operation="GetItem", message=ECHO))]
    worker.consume(record(message()))
    [line] = [line for line in worker.logged() if line["message"] == "message failed"]
    assert (line["error"], line["code"], line["operation"]) == ("ClientError", "AccessDeniedException", "GetItem")
    assert any("processed_jobs.py" in frame for frame in line["origin"])


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"correlationId": 7, "bookingId": []}', "[" * 50_000, None])
def test_a_body_without_an_identity_has_none_and_raises_nothing(body: str | None) -> None:
    assert message_identity(body) == {}
