"""Bursts and outages of SES, hour by hour: the real worker in virtual time, a hundred times in different orders."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest

from apps.worker.tests.fakes import client_error
from apps.worker.tests.test_burst import BOOKINGS, SES_CALL_SECONDS, one_a_second, simulate
from apps.worker.tests.virtual_time import VirtualTime

pytestmark = pytest.mark.faults

SEEDS = range(100)
_CORES = 2
TEN_MINUTES, A_DAY = 600.0, 86_400.0


def refused_until(end: float, code: str) -> Callable[[VirtualTime], Callable[[], None]]:
    """SES that refuses everything with ``code`` until ``end`` (virtual seconds), and then takes one mail a second."""

    def rate(time: VirtualTime) -> Callable[[], None]:
        afterwards = one_a_second(time)

        def allow() -> None:
            if time.now < end:
                time.sleep(SES_CALL_SECONDS)
                raise client_error(code, status=429 if code == "TooManyRequestsException" else 400)
            afterwards()

        return allow

    return rate


def test_of_a_hundred_bursts_of_200_bookings_at_one_mail_a_second_none_loses_or_doubles_a_mail() -> None:
    # Each takes most of a second of one core.
    with ProcessPoolExecutor(max_workers=_CORES, mp_context=multiprocessing.get_context("spawn")) as cores:
        ended = list(cores.map(a_burst, SEEDS, chunksize=5))
    assert ended == [(seed, 0, BOOKINGS, BOOKINGS) for seed in SEEDS]


def a_burst(seed: int) -> tuple[int, int, int, int]:
    """The seed; how many dead letters it made, how many people got a mail, how many mails were accepted."""
    ses, queue = simulate(seed)
    return seed, len(queue.dead), len(set(ses.recipients())), len(ses.accepted)


@pytest.mark.parametrize("seed", range(5))
def test_ten_minutes_of_throttling_cost_no_mail_once_the_dead_letters_are_sent_again(seed: int) -> None:
    throttled = refused_until(TEN_MINUTES, "TooManyRequestsException")
    ses, queue = simulate(seed, bookings=60, rate=throttled, redriven_at=TEN_MINUTES)
    assert queue.dead == []
    assert len(set(ses.recipients())) == len(ses.accepted) == 60


def test_most_of_what_ten_minutes_of_throttling_hold_up_needs_no_operator() -> None:
    throttled = refused_until(TEN_MINUTES, "TooManyRequestsException")
    dead = [len(simulate(seed, bookings=60, rate=throttled)[1].dead) for seed in range(5)]
    assert sum(dead) < 5 * 60 / 2, dead


@pytest.mark.parametrize("seed", range(5))
def test_a_daily_quota_used_up_makes_dead_letters_and_no_loss_and_each_is_mailed_once_the_next_day(seed: int) -> None:
    used_up = refused_until(A_DAY, "LimitExceededException")
    _, waiting = simulate(seed, bookings=60, rate=used_up)
    assert len(waiting.dead) == 60, "every message is kept, where an alarm shows it"

    ses, queue = simulate(seed, bookings=60, rate=used_up, redriven_at=A_DAY)
    assert queue.dead == []
    assert len(set(ses.recipients())) == len(ses.accepted) == 60
