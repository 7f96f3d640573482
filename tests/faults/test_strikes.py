"""What the striker counts: only a worker that it killed can have been cut off in a send."""

import pytest

from tests.faults.strikes import API, TICKETS, WORKER, Struck

pytestmark = pytest.mark.unit


def test_each_worker_that_was_killed_was_cut_off_once() -> None:
    struck = Struck()

    struck.note_kill(WORKER, 71, "1000")
    struck.note_kill(WORKER, 71, "1000")  # a second signal to one that is dying
    struck.note_kill(WORKER, 71, "2000")  # another process under the same number

    assert struck.cut_off == {(71, "1000"), (71, "2000")}


def test_nobody_elses_death_cuts_off_a_send() -> None:
    struck = Struck()

    struck.note_kill(API, 71, "1000")
    struck.note_kill(TICKETS, 72, "1000")
    struck.note_kill(WORKER, 73, None)

    assert struck.cut_off == set()
    assert struck.killed == {API: 1, TICKETS: 1, WORKER: 1}


def test_a_pause_cuts_off_no_send() -> None:
    """One that lasts ends by the function's time, which the emulator's log tells; another delays a send, no more."""
    struck = Struck()

    struck.paused[WORKER] += 1

    assert struck.cut_off == set()


def test_what_was_done_is_told_by_victim() -> None:
    struck = Struck(seconds_away=[1.25, 2.0])
    struck.note_kill(WORKER, 71, "1000")
    struck.paused[API] += 1

    assert str(struck) == "1 kills (worker 1), 1 pauses (API 1), 2 restarts of the emulator (away for 1.2 s, 2.0 s)"
