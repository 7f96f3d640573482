"""Each message type through the idempotent consumer, under a job key of its own."""

import re
from pathlib import Path

import pytest

from apps.worker.tests.fakes import client_error, lost_reply, raising
from apps.worker.tests.mail_reader import Page
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

pytestmark = pytest.mark.unit

EACH: list[Message] = [booking(), requested(booking()), moved(booking()), cancelled(booking()), reset()]
every_type = pytest.mark.parametrize("message", EACH, ids=lambda message: message.TYPE)


@every_type
def test_a_message_is_mailed_once_whatever_its_deliveries(message: Message) -> None:
    worker = Worker()
    assert worker.consume(record(message), record(message)) == []
    assert worker.consume(record(message)) == []
    assert worker.ses.recipients() == ["ada@example.org"]
    assert worker.status_of(message.job_key) == "done"
    assert worker.logged_events().count("mail skipped as duplicate") == 2


@every_type
def test_two_deliveries_would_send_the_same_bytes(message: Message) -> None:
    """A death between send and record sends twice: then the reader, and the calendar, get the same thing twice."""
    one, other = Worker(), Worker()
    other.invocation.time += 1_000
    other.invocation.ends += 1_000
    one.consume(record(message))
    other.consume(record(message))
    assert one.ses.accepted == other.ses.accepted
    assert one.ses.attempts == 1


@every_type
def test_a_refused_mail_of_any_type_is_recorded_as_refused(message: Message) -> None:
    worker = Worker()
    worker.ses.sends.before = [raising(client_error("MessageRejected"))]
    assert worker.consume(record(message)) == []
    assert worker.status_of(message.job_key) == "refused"


@every_type
def test_an_unknown_outcome_of_any_type_keeps_the_lease(message: Message) -> None:
    worker = Worker()
    worker.ses.sends.after = [raising(lost_reply())]
    first, second = record(message), record(message)
    assert worker.consume(first, second) == [first["messageId"], second["messageId"]]
    assert worker.ses.attempts == 1


def test_all_messages_of_one_booking_are_mailed_and_none_takes_the_record_of_another() -> None:
    worker = Worker()
    messages: list[Message] = [booking(), requested(booking()), moved(booking()), cancelled(booking(), sequence=1)]
    assert worker.consume(*(record(message) for message in messages)) == []
    assert worker.ses.attempts == 4
    assert sorted(worker.table.items) == sorted(message.job_key for message in messages)


def test_each_request_for_a_mail_sends_one_and_leaves_the_record_of_the_first_untouched() -> None:
    worker = Worker()
    worker.consume(record(booking()))
    first = dict(worker.table.items[f"booking.confirmed:{BOOKING_ID}"])
    again, once_more = requested(booking()), requested(booking())
    assert worker.consume(record(again), record(again), record(once_more)) == []
    assert worker.ses.attempts == 3
    assert worker.table.items[f"booking.confirmed:{BOOKING_ID}"] == first


def test_each_move_of_an_event_is_mailed_once_a_booking() -> None:
    worker = Worker()
    of, neighbour = booking(), booking("0b9f3f0e-1111-4222-8333-444455557777", email="eve@example.org")
    messages = [moved(of, sequence=1), moved(of, sequence=2), moved(neighbour, sequence=1), moved(of, sequence=1)]
    assert worker.consume(*(record(message) for message in messages)) == []
    assert worker.ses.recipients() == ["ada@example.org", "ada@example.org", "eve@example.org"]


def test_a_customer_who_booked_before_events_could_move_is_mailed() -> None:
    worker = Worker()
    body = booking().to_json().replace(',"sequence":0', "")
    assert "sequence" not in body
    assert worker.consume(record(body)) == []
    assert worker.ses.attempts == 1


def test_a_poisoned_message_of_any_type_is_not_mailed_and_comes_back_at_once() -> None:
    worker = Worker()
    bodies = [message.to_json().replace('"version":1', '"version":2') for message in EACH]
    deliveries = [record(body) for body in bodies]
    assert worker.consume(*deliveries) == [delivery["messageId"] for delivery in deliveries]
    assert worker.ses.attempts == 0
    assert set(worker.sqs.visibility.values()) == {0}


def test_every_mail_greets_its_reader_by_name() -> None:
    worker = Worker()
    worker.consume(*(record(message) for message in EACH))
    for request in worker.ses.accepted:
        simple = request["Content"]["Simple"]
        assert simple["Body"]["Text"]["Data"].startswith("Hello Ada Canary,\n")
        assert "Hello Ada Canary," in Page(simple["Body"]["Html"]["Data"]).text


def test_the_architecture_page_lists_every_type_that_the_worker_mails() -> None:
    page = (Path(__file__).parents[3] / "docs" / "architecture.md").read_text()
    _, _, section = page.partition("## The messages, and who wants which")
    section, _, _ = section.partition("\n## ")
    rows = re.findall(r"^\| `([a-z.-]+)` \| [^|]+ \| ([^|]+) \|", section, flags=re.MULTILINE)
    assert [name for name, worker in rows if worker.startswith("mails")] == list(Worker().handlers())
