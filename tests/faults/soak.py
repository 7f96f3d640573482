"""``python -m tests.faults.soak --minutes 5``: customers book while the platform's processes die and stand still, and
the emulator is restarted.

Then everything comes to rest, and the ledger is checked. Exit codes: 0 the ledger is in order; 1 it is not, or the
platform did not come to rest; 2 the platform did not come up. The same seed wants and strikes the same things; when
each comes through is this machine's business.
"""

import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from local.progress import Progress
from local.session import Session, SessionError, running_platform
from local.stage_folder import StageFolder
from tests.faults.customers import Customer, Hall, Journal
from tests.faults.dead_letters import queue_counts, redrive
from tests.faults.emulator_strikes import EmulatorStriker
from tests.faults.excuses import Excuses, read_excuses
from tests.faults.ledger import Books, Finding, audit, extra_mails, report
from tests.faults.platform_books import read_books
from tests.faults.strikes import WORKER, Striker, processes
from tests.fixtures.platform import ALL_ON, RunningPlatform
from tests.fixtures.platform import Customer as Registered

# Two tasks, so that there are two relays, and one is left while the other stands still. Few functions at a time: the
# emulator counts a cold start, of which two cores can bear only so many, against the function's timeout.
_STAGE = {**ALL_ON, "apiMinTasks": "2", "apiMaxTasks": "2", "workerMaxConcurrency": "2"}
_CUSTOMERS = 12
_BOOKINGS_A_SECOND = 11.0  # asked for; what is acknowledged is a little less
_SECONDS_A_STRIKE = 3.5
_TELL_SECONDS = 10.0
_CONTENDED_SEATS_A_MINUTE = 25
_SEATS_A_ROW = 50
_SEATS_AN_EVENT = 15_000
_LEAST_EVENTS = 3  # so that a batch of bookings locks several
_MEAN_SEATS = 3
# A message that a killed function held comes back after 180 s; one that the worker put back after up to 600 s, and
# after 900 s the second time. On an idle machine few are put back, and it rests after some minutes.
_REST_SECONDS = 1_500.0
_LOOK_SECONDS = 10.0
# The emulator's end and start, and two new tasks, on a machine that is busy.
_RESTART_SECONDS = 240.0


def soak(session: Session, *, minutes: float, seed: int, progress: Progress) -> list[str]:
    """Run it; what is not in order, as lines for people."""
    platform = RunningPlatform(session)
    seconds = minutes * 60
    halls = _halls(platform, minutes=minutes)
    registered = [platform.register() for _ in range(_CUSTOMERS)]
    _warm_up(platform)
    end = time.monotonic() + seconds
    journal = Journal()
    customers = _customers(registered, halls=halls, journal=journal, end=end, seed=seed)
    striker = Striker(session.folder, seconds=_SECONDS_A_STRIKE, end=end, seed=f"{seed} striker")
    restarter = EmulatorStriker(
        lambda: float(session.client.post("/emulator/restart", {}, seconds=_RESTART_SECONDS)["secondsAway"]),
        workers=lambda: list(processes(session.folder, WORKER)),
        struck=striker.struck,
        end=end,
        seed=f"{seed} striker of the emulator",
    )
    threads = (restarter, striker, *customers)
    for thread in threads:
        thread.start()
    _tell_until(end, journal, striker, restarter, progress)
    if restarter.failure is None:
        for thread in threads:
            thread.join(_RESTART_SECONDS)
    if restarter.failure is not None:  # the platform has gone down: nobody need ask it until the end
        platform.close()
        return [restarter.failure]
    progress.say(f"answers: {', '.join(f'{code} {count}' for code, count in journal.answers.most_common())}")
    progress.say(f"{len(journal.acknowledged)} bookings acknowledged, {journal.undecided} undecided; {striker.struck}")
    findings = _come_to_rest(platform, halls, journal, registered, striker, progress)
    platform.close()
    problems = [f"surprise: {surprise}" for surprise in journal.surprises]
    problems += [f"{thread.name} is stuck" for thread in threads if thread.is_alive()]
    return [*problems, *([report(findings)] if findings else [])]


def _warm_up(platform: RunningPlatform) -> None:
    """One booking, mailed and ticketed: both functions have started once."""
    first = platform.register()
    first.visitor.book(event_id=platform.make_event(rows=[("A", 1)]), seats=["A-1"])
    platform.wait_for_mails(to=first.email)
    platform.wait_for_tickets(first.visitor, count=1)


def _halls(platform: RunningPlatform, *, minutes: float) -> list[Hall]:
    """Events with more seats than there is time to book."""
    seats = int(minutes * 60 * _BOOKINGS_A_SECOND * _MEAN_SEATS)
    contended = int(minutes * _CONTENDED_SEATS_A_MINUTE / _LEAST_EVENTS) + 1
    events = max(_LEAST_EVENTS, -(-seats // _SEATS_AN_EVENT))
    rows = [(f"R{number}", _SEATS_A_ROW) for number in range(-(-(seats // events + contended) // _SEATS_A_ROW))]
    names = [f"{row}-{number + 1}" for row, count in rows for number in range(count)]
    return [
        Hall(event_id=platform.make_event(rows=rows), free=names[contended:], contended=names[:contended])
        for _ in range(events)
    ]


def _customers(
    registered: Sequence[Registered], *, halls: Sequence[Hall], journal: Journal, end: float, seed: int
) -> list[Customer]:
    return [
        Customer(
            customer.visitor,
            email=customer.email,
            hall=halls[number % len(halls)],
            journal=journal,
            seconds=len(registered) / _BOOKINGS_A_SECOND,
            end=end,
            seed=f"{seed} customer {number}",
        )
        for number, customer in enumerate(registered)
    ]


def _tell_until(end: float, journal: Journal, striker: Striker, restarter: EmulatorStriker, progress: Progress) -> None:
    told = 0
    while (left := end - time.monotonic()) > 0 and restarter.failure is None:
        time.sleep(min(left, _TELL_SECONDS))
        now = len(journal.acknowledged_at)
        progress.say(f"{now - told} more acknowledged ({now}), {striker.struck.killed.total()} kills")
        told = now


def _come_to_rest(
    platform: RunningPlatform,
    halls: Sequence[Hall],
    journal: Journal,
    registered: Sequence[Registered],
    striker: Striker,
    progress: Progress,
) -> list[Finding]:
    """Wait until nothing is on its way any more, or all is in order already; what is not in order then."""
    began = time.monotonic()
    redriven = False
    while True:
        waited = time.monotonic() - began
        waiting, in_work = _on_their_way(platform)
        if waiting and waited < _REST_SECONDS:
            progress.say(f"{waiting} messages wait, {in_work} are in work or come back later")
            time.sleep(_LOOK_SECONDS)
            continue
        if not in_work and not redriven:
            # What an operator does with dead letters once what made them is over.
            redriven = True
            progress.say(f"{redrive(platform)} dead letters sent again")
            continue
        books = read_books(
            platform, events={hall.event_id for hall in halls}, customers={customer.email for customer in registered}
        )
        findings = _findings(platform, books, journal, striker)
        if not findings or not in_work or waited > _REST_SECONDS:
            break
        progress.say(f"{len(findings)} findings, while {in_work} messages are in work or come back later")
        time.sleep(_LOOK_SECONDS)
    progress.say(
        f"at rest after {time.monotonic() - began:.0f} s; {extra_mails(books)} mails more than one a booking, excused "
        f"by {len(striker.struck.cut_off)} workers killed, {_excuses(platform)}"
    )
    return findings


def _findings(platform: RunningPlatform, books: Books, journal: Journal, striker: Striker) -> list[Finding]:
    excuses = _excuses(platform)
    return audit(
        journal.acknowledged.values(),
        books,
        excused_mails=len(striker.struck.cut_off) + excuses.timed_out,
        excused_of_bookings=excuses.of_bookings,
        finished_mails=excuses.finished,
    )


def _excuses(platform: RunningPlatform) -> Excuses:
    with (platform.folder.path / "emulator" / "emulator.log").open(errors="replace") as log:
        return read_excuses(log)


def _on_their_way(platform: RunningPlatform) -> tuple[int, int]:
    """How many messages wait in outbox and queues, and how many are in work, or hidden until they come back."""
    [unsent] = platform.rows("select count(*) from outbox where sent_at is null and parked_at is null")
    counts = [queue_counts(platform, queue) for queue in ("jobsQueueUrl", "ticketsQueueUrl")]
    return int(unsent["count"]) + sum(count.waiting for count in counts), sum(count.hidden for count in counts)


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0.1, max=120), default=5, show_default=True)
@click.option("--seed", type=int, help="What is wanted and struck; default: a new one, which is printed.")
def main(minutes: float, seed: int | None) -> None:
    """Book while processes are killed and paused at random, then check the ledger."""
    seed = secrets.randbelow(10**6) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    progress = Progress()
    progress.say(f"seed {seed}, {minutes:g} min, in {folder}")
    log = folder / "platform-output.log"
    try:
        with running_platform(
            StageFolder(folder / "stage"), stage="dev", config=_STAGE, progress=progress, log=log
        ) as session:
            problems = soak(session, minutes=minutes, seed=seed, progress=progress)
    except SessionError as error:
        progress.say(f"{error}; see {log}")
        sys.exit(2)
    for problem in problems:
        progress.say(problem)
    if problems:
        progress.say(f"not in order; the same again: make soak MINUTES={minutes:g} SEED={seed}. Logs are in {folder}")
        sys.exit(1)
    shutil.rmtree(folder)
    progress.say("nothing lost, nothing sold twice")


if __name__ == "__main__":
    main()
