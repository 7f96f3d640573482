"""What excuses a mail more than one: each rule by lines as the emulator's log holds them."""

import json

import pytest

from apps.worker.tests.fakes import lost_reply, raising
from apps.worker.tests.worker_under_test import BOOKING_ID, Worker, booking, record
from tests.faults.excuses import Excuses, read_excuses

pytestmark = pytest.mark.unit

ADA, BOB = "0a9f3f0e-1111-4222-8333-444455556666", "0b9f3f0e-1111-4222-8333-444455556666"
TIMED_OUT = (
    "2026-11-29 21:30:54 WARNING [lambda_runtime] Lambda minitickets-dev-{} timed out after 10s — killing worker"
)


def line(message: str, booking_id: str = ADA, *, invocation: str = "i-1", sqs: str = "m-1", **more: str) -> str:
    """A line of the worker's log."""
    facts = {"function_request_id": invocation, "sqsMessageId": sqs, "bookingId": booking_id}
    return json.dumps({"level": "INFO", "message": message, "service": "worker", **facts, **more}) + "\n"


def test_sends_that_went_well_excuse_nothing() -> None:
    log = [
        "2026-11-29 21:30:54 INFO [lambda] ESM: Lambda minitickets-dev-worker processed 2 SQS messages\n",
        line("mail accepted"),
        line("mail accepted", BOB, sqs="m-2"),
        line("mail skipped as duplicate", invocation="i-2"),
    ]

    assert read_excuses(log) == Excuses()


def test_a_send_of_unknown_outcome_excuses_one_more_of_its_booking_each_time() -> None:
    log = [line("mail outcome unknown", code="ReadTimeoutError"), line("mail outcome unknown", invocation="i-2")]

    excuses = read_excuses(log)

    assert excuses.of_bookings == {ADA: 2}
    assert excuses.timed_out == 0


def test_an_accepted_mail_whose_record_could_not_be_written_excuses_one_more_of_its_booking() -> None:
    log = [line("mail accepted"), line("message failed", error="EndpointConnectionError")]

    assert read_excuses(log).of_bookings == {ADA: 1}


@pytest.mark.parametrize(
    "log",
    [
        pytest.param([line("message failed")], id="nothing accepted"),
        pytest.param([line("message failed"), line("mail accepted")], id="failed before"),
        pytest.param([line("mail accepted"), line("message failed", invocation="i-2")], id="another invocation"),
        pytest.param([line("mail accepted"), line("message failed", BOB, sqs="m-2")], id="another message"),
    ],
)
def test_a_message_that_failed_without_an_accepted_mail_of_its_own_excuses_nothing(log: list[str]) -> None:
    assert read_excuses(log) == Excuses()


@pytest.mark.parametrize(
    "message", ["mail not sent", "mail throttled", "mail quota used up", "job in progress elsewhere", "message untried"]
)
def test_a_send_that_was_not_made_excuses_nothing(message: str) -> None:
    assert read_excuses([line(message)]) == Excuses()


def test_an_invocation_whose_time_ended_excuses_one_more_of_any_booking() -> None:
    excuses = read_excuses([TIMED_OUT.format("worker"), TIMED_OUT.format("worker")])

    assert (excuses.timed_out, excuses.of_bookings) == (2, {})


OUTPUT = "2026-11-29 21:31:19 INFO [lambda] ESM: Lambda minitickets-dev-worker output:\n"
DIED = "2026-11-29 21:31:19 WARNING [lambda] ESM: Lambda minitickets-dev-worker failed processing SQS batch (…died)\n"
OTHER = "2026-11-29 21:31:19 INFO [sns] SNS fanout → SQS minitickets-dev-jobs\n"


@pytest.mark.parametrize(
    ("log", "finished"),
    [
        pytest.param([OUTPUT, line("mail accepted", messageId="a")], {"a"}, id="of an invocation that ended"),
        pytest.param([DIED, line("mail accepted", messageId="a")], set(), id="of one that was killed"),
        pytest.param([OUTPUT, OTHER, line("mail accepted", messageId="a")], set(), id="of nobody known"),
        pytest.param([OUTPUT, line("mail accepted", messageId="a"), line("message failed")], set(), id="not recorded"),
        pytest.param(
            [OUTPUT, line("mail accepted", messageId="a"), OUTPUT, line("mail accepted", sqs="m-2", messageId="b")],
            {"a", "b"},
            id="two",
        ),
    ],
)
def test_a_mail_is_finished_if_its_invocation_ended_and_did_not_fail(log: list[str], finished: set[str]) -> None:
    assert read_excuses(log).finished == finished


def test_the_time_of_another_function_excuses_nothing() -> None:
    assert read_excuses([TIMED_OUT.format("tickets")]) == Excuses()


def test_lines_of_others_and_half_lines_are_passed_over() -> None:
    mine = line("mail outcome unknown")
    log = [mine.replace('"service": "worker"', '"service": "tickets"'), mine[:90], '["a"]', "{}", "", mine]

    assert read_excuses(log).of_bookings == {ADA: 1}


def written(worker: Worker, *, invocation: str) -> list[str]:
    """What the real worker logged, under the name of the function."""
    return [
        json.dumps({**logged, "service": "worker", "function_request_id": invocation}) for logged in worker.logged()
    ]


def test_the_workers_own_line_of_a_lost_reply_excuses_the_mail_that_follows() -> None:
    worker = Worker()
    worker.ses.sends.after = [raising(lost_reply())]
    message = record(booking())

    assert worker.consume(message) == [message["messageId"]]

    assert len(worker.ses.accepted) == 1
    assert read_excuses(written(worker, invocation="i-1")).of_bookings == {BOOKING_ID: 1}


def test_the_workers_own_lines_of_a_record_that_failed_excuse_the_mail_that_follows() -> None:
    worker = Worker()
    worker.table.writes.before = [None, *[raising(lost_reply())] * 3]
    message = record(booking())

    assert worker.consume(message) == [message["messageId"]]

    assert len(worker.ses.accepted) == 1
    assert read_excuses(written(worker, invocation="i-1")).unrecorded == {BOOKING_ID: 1}


def test_the_workers_own_lines_of_a_mail_that_went_well_excuse_nothing() -> None:
    worker = Worker()

    assert worker.consume(record(booking())) == []

    assert read_excuses(written(worker, invocation="i-1")) == Excuses()
