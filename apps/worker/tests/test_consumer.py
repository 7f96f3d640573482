"""Batches: what is reported, what is put back, and when the worker stops."""

import json
import uuid

import pytest

from apps.worker.tests.fakes import FakeInvocation, FakeSes, client_error, lost_reply, raising
from apps.worker.tests.worker_under_test import Worker, booking, ids, record
from minitickets_worker.visibility import SHORTEST_SECONDS

pytestmark = pytest.mark.unit

THROTTLED = client_error("TooManyRequestsException", status=429, message="Maximum sending rate exceeded.")


def bookings(count: int) -> list[str]:
    return [booking(str(uuid.uuid4()), email=f"c{number}@example.org").to_json() for number in range(count)]


def test_a_batch_of_ten_bookings_sends_ten_mails_and_reports_nothing() -> None:
    worker = Worker()
    assert worker.consume(*(record(body) for body in bookings(10))) == []
    assert sorted(worker.ses.recipients()) == sorted(f"c{number}@example.org" for number in range(10))
    assert worker.sqs.visibility == {}


def test_a_message_seen_twice_sends_one_mail() -> None:
    worker = Worker()
    body = booking().to_json()
    assert worker.consume(record(body), record(body)) == []
    assert len(worker.ses.accepted) == 1


def test_a_booking_published_twice_under_two_message_ids_sends_one_mail() -> None:
    worker = Worker()
    first, second = booking(), booking()
    assert first.message_id != second.message_id
    assert worker.consume(record(first)) == []
    assert worker.consume(record(second)) == []
    assert len(worker.ses.accepted) == 1


def altered(**changes: object) -> str:
    return json.dumps({**json.loads(booking().to_json()), **changes})


POISON = {
    "no JSON": "{",
    "no object": "[]",
    "no type": "{}",
    "nested too deep": "[" * 20_000,
    "unknown version of its own type": altered(version=2),
    "a field is missing": json.dumps({"type": "booking.confirmed", "version": 1}),
    "eleven seats": altered(seats=[f"A-{number}" for number in range(11)]),
    "a line break in the title": altered(
        event={**json.loads(booking().to_json())["event"], "title": "a\r\nBcc: b@c.d"}
    ),
    "too large": altered(padding="x" * 201 * 1024),
    "a lone surrogate": '{"type": "booking.confirmed", "version": 1, "bookingId": "\\ud800"}',
}


@pytest.mark.parametrize("body", POISON.values(), ids=POISON.keys())
def test_poison_is_reported_and_its_nine_siblings_succeed(body: str) -> None:
    worker = Worker()
    poison = record(body)
    batch = [record(good) for good in bookings(9)]
    batch.insert(4, poison)
    assert worker.consume(*batch) == ids([poison])
    assert len(worker.ses.accepted) == 9
    assert "message poisoned" in worker.logged_events()


def test_poison_comes_back_at_once_because_waiting_does_not_mend_it() -> None:
    worker = Worker()
    poison = record("{")
    worker.consume(poison)
    assert worker.sqs.visibility == {poison["receiptHandle"]: 0}


def test_a_batch_that_fails_whole_reports_every_id_and_raises_nothing() -> None:
    worker = Worker()
    batch = [record("{") for _ in range(10)]
    assert worker.consume(*batch) == ids(batch)


def test_a_type_that_is_not_the_workers_is_acknowledged_unread() -> None:
    worker = Worker()
    assert worker.consume(record('{"type": "event.archived", "version": 9}')) == []
    assert worker.table.calls == 0
    assert worker.ses.attempts == 0


def test_an_error_that_nobody_foresaw_fails_its_message_alone() -> None:
    worker = Worker()
    worker.ses.sends.before = [raising(ZeroDivisionError("surprise"))]
    first, second = (record(body) for body in bookings(2))
    assert worker.consume(first, second) == ids([first])
    assert len(worker.ses.accepted) == 1


def test_no_message_is_started_with_less_than_five_seconds_left() -> None:
    worker = Worker(invocation=FakeInvocation(time=0, ends=4.99))
    batch = [record(body) for body in bookings(3)]
    assert worker.consume(*batch) == ids(batch)
    assert worker.table.calls == 0
    assert set(worker.sqs.visibility) == {delivery["receiptHandle"] for delivery in batch}
    assert "batch stopped early" in worker.logged_events()


def test_slow_sends_stop_the_batch_before_the_timeout_and_finished_ones_are_not_reported() -> None:
    invocation = FakeInvocation(time=0, ends=10)
    worker = Worker(invocation=invocation)
    worker.ses.sends.before = [lambda: invocation.sleep(1.4)] * 10
    batch = [record(body) for body in bookings(10)]
    failed = worker.consume(*batch)
    assert failed == ids(batch[4:])
    assert len(worker.ses.accepted) == 4
    assert invocation.seconds_left() > 0


def test_a_throttled_send_waits_inside_the_invocation_until_it_is_accepted() -> None:
    worker = Worker(invocation=FakeInvocation(time=0, ends=10))
    worker.ses.sends.before = [raising(THROTTLED), raising(THROTTLED)]
    assert worker.consume(record(booking())) == []
    assert len(worker.ses.accepted) == 1
    assert worker.invocation.now() >= 0.6


def throttle() -> None:
    raise THROTTLED


def test_a_send_throttled_for_too_long_goes_back_with_its_lease_released_and_the_rest_untried() -> None:
    worker = Worker(ses=FakeSes(allow=throttle), invocation=FakeInvocation(time=0, ends=10))
    batch = [record(body) for body in bookings(10)]
    assert worker.consume(*batch) == ids(batch)
    assert worker.invocation.seconds_left() >= 4.9, "the rest of the time is for putting back"
    assert all(SHORTEST_SECONDS <= seconds <= 600 for seconds in worker.sqs.visibility.values())
    assert len(worker.sqs.visibility) == 10
    [item] = worker.table.items.values()
    assert item["leaseUntil"] == {"N": "0"}
    assert worker.ses.attempts > 3


def test_a_daily_quota_used_up_is_not_waited_for() -> None:
    worker = Worker()
    worker.ses.sends.before = [
        raising(client_error("TooManyRequestsException", message="Daily message quota exceeded"))
    ]
    batch = [record(body) for body in bookings(3)]
    assert worker.consume(*batch) == ids(batch)
    assert worker.ses.attempts == 1
    assert worker.invocation.seconds_left() == FakeInvocation().seconds_left()


def test_a_refused_mail_is_finished_and_its_refusal_is_on_record_for_the_operator() -> None:
    worker = Worker()
    worker.ses.sends.before = [raising(client_error("MessageRejected", message="Email address is blacklisted"))]
    assert worker.consume(record(booking())) == []
    assert worker.status() == "refused"
    assert worker.consume(record(booking())) == []
    assert worker.ses.attempts == 1
    [line] = [line for line in worker.logged() if line["message"] == "mail refused"]
    assert line["reason"] == "MessageRejected"


def test_a_local_part_outside_ascii_fails_once_without_a_call_of_ses() -> None:
    worker = Worker()
    assert worker.consume(record(booking(email="jürgen@example.org"))) == []
    assert worker.status() == "refused"
    assert worker.ses.attempts == 0


def test_a_sender_that_is_not_verified_comes_back_until_it_is() -> None:
    worker = Worker()
    error = client_error("MessageRejected", message="Email address is not verified. The following identities failed")
    worker.ses.sends.before = [raising(error)]
    assert len(worker.consume(record(booking()))) == 1
    assert worker.consume(record(booking(), receives=2)) == []
    assert worker.status() == "done"


def test_a_send_whose_answer_was_lost_keeps_its_lease_and_sends_once_more_at_most() -> None:
    worker = Worker()
    worker.ses.sends.after = [raising(lost_reply())]
    message = booking()
    assert len(worker.consume(record(message))) == 1
    assert len(worker.consume(record(message, receives=2))) == 1, "the lease must hold back the next attempt"
    worker.invocation.time += 25
    worker.invocation.ends += 25
    assert worker.consume(record(message, receives=3)) == []
    assert len(worker.ses.accepted) == 2


def test_a_throttled_table_fails_the_message_and_nothing_is_sent() -> None:
    worker = Worker()
    worker.table.reads.before = [raising(client_error("ThrottlingException"))] * 3
    delivery = record(booking())
    assert worker.consume(delivery) == ids([delivery])
    assert worker.ses.attempts == 0
    assert delivery["receiptHandle"] in worker.sqs.visibility


def test_a_failed_message_comes_back_later_the_more_often_it_came() -> None:
    drawn = []
    for receives in (1, 2, 3):
        worker = Worker(invocation=FakeInvocation(time=0, ends=1))
        batch = [record(body, receives=receives) for body in bookings(10)] * 20
        worker.consume(*[record(delivery["body"], receives=receives) for delivery in batch])
        drawn.append(worker.sqs.visibility.values())
    longest = [max(values) for values in drawn]
    # One second left is enough for one call of SQS and no more in reality; the fake's calls take no time.
    assert 550 < longest[0] <= 600
    assert 800 < longest[1] <= 900
    assert 800 < longest[2] <= 900
    assert min(min(values) for values in drawn) >= 25


def test_putting_back_that_fails_ends_neither_the_batch_nor_its_report() -> None:
    worker = Worker()
    worker.sqs.calls.before = [raising(client_error("AccessDenied"))]
    poison, good = record("{"), record(booking())
    assert worker.consume(poison, good) == ids([poison])
    assert "visibility not set" in worker.logged_events()


def test_putting_back_that_fails_in_part_is_told() -> None:
    worker = Worker()
    first, second = record("{"), record("{")
    worker.sqs.failing = {first["receiptHandle"]}
    assert worker.consume(first, second) == ids([first, second])
    [line] = [line for line in worker.logged() if line["message"] == "visibility not set"]
    assert line["messages"] == 1


def test_without_time_for_a_call_of_sqs_the_queues_own_timeout_is_left_to_hold() -> None:
    worker = Worker(invocation=FakeInvocation(time=0, ends=0.5))
    delivery = record(booking())
    assert worker.consume(delivery) == ids([delivery])
    assert worker.sqs.visibility == {}
