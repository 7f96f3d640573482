"""A worker that dies at each of its calls, and what the next delivery makes of it."""

import pytest

from apps.worker.tests.fakes import FakeSes, FakeTable, Killed, raising
from apps.worker.tests.worker_under_test import Worker, booking, record

pytestmark = pytest.mark.unit

KILL = raising(Killed())


def die_then_retry(worker: Worker) -> None:
    """The message is delivered to a worker that dies, and, after the queue's visibility timeout, to another."""
    with pytest.raises(Killed):
        worker.consume(record(booking()))
    worker.invocation.time += 60
    worker.invocation.ends += 60
    successor = Worker(table=worker.table, ses=worker.ses, invocation=worker.invocation)
    assert successor.consume(record(booking(), receives=2)) == []
    assert successor.status() == "done"


@pytest.mark.parametrize("moment", ["before the read", "after the read", "before the lease", "after the lease"])
def test_a_death_before_the_send_costs_nothing(moment: str) -> None:
    table = FakeTable()
    when, what = moment.split(" the ")
    calls = table.reads if what == "read" else table.writes
    setattr(calls, when, [KILL])
    worker = Worker(table=table)
    die_then_retry(worker)
    assert len(worker.ses.accepted) == 1


def test_a_death_before_ses_took_the_mail_costs_nothing() -> None:
    ses = FakeSes()
    ses.sends.before = [KILL]
    worker = Worker(ses=ses)
    die_then_retry(worker)
    assert len(ses.accepted) == 1


def test_a_death_after_ses_took_the_mail_sends_once_more_and_no_more() -> None:
    ses = FakeSes()
    ses.sends.after = [KILL]
    worker = Worker(ses=ses)
    die_then_retry(worker)
    assert worker.consume(record(booking(), receives=3)) == []
    assert len(ses.accepted) == 2


def test_a_death_before_the_record_sends_once_more_and_no_more() -> None:
    table = FakeTable()
    table.writes.before = [None, KILL]
    worker = Worker(table=table)
    die_then_retry(worker)
    assert worker.consume(record(booking(), receives=3)) == []
    assert len(worker.ses.accepted) == 2


def test_a_death_after_the_record_costs_nothing() -> None:
    table = FakeTable()
    table.writes.after = [None, KILL]
    worker = Worker(table=table)
    die_then_retry(worker)
    assert len(worker.ses.accepted) == 1


def test_a_mail_that_was_accepted_but_not_recorded_leaves_a_line_in_the_log() -> None:
    table = FakeTable()
    table.writes.before = [None, KILL]
    worker = Worker(table=table)
    with pytest.raises(Killed):
        worker.consume(record(booking()))
    assert "mail accepted" in worker.logged_events()
