"""What a soak relies on: the emulator, restarted in its place, has lost nothing; and it says whose time ended."""

import http.client
import os
import signal
import urllib.parse

import pytest

from local.processes import wait_until
from local.session import Session
from local.stage_folder import read_json
from tests.faults.excuses import read_excuses
from tests.faults.strikes import WORKER, processes
from tests.fixtures.platform import RunningPlatform, image_hash

pytestmark = pytest.mark.faults

_SECONDS = 120.0


def _pids(session: Session) -> dict[str, int]:
    return {entry["name"]: int(entry["pid"]) for entry in read_json(session.folder.path / "children.json")}


def test_what_was_there_is_there_and_what_comes_next_goes_its_way(platform: RunningPlatform) -> None:
    event_id = platform.make_event()
    customer = platform.register()
    customer.visitor.book(event_id=event_id, seats=["A-1", "A-2"])
    before = platform.wait_for_tickets(customer.visitor, count=2)
    platform.wait_for_mails(to=customer.email)
    pids = _pids(platform.session)
    log = platform.folder.path / "emulator" / "emulator.log"
    size = log.stat().st_size

    away = platform.session.client.post("/emulator/restart", {}, seconds=_SECONDS)["secondsAway"]

    assert 0 < away < _SECONDS
    assert b"shutting down" in log.read_bytes()[size:]  # by SIGTERM: killed, it would say nothing
    after = _pids(platform.session)
    assert after["emulator"] != pids["emulator"]
    servers = [name for name in pids if name.startswith(("postgres:", "valkey:"))]
    assert [after[name] for name in servers] == [pids[name] for name in servers]
    tickets = platform.wait_for_tickets(customer.visitor, count=2)
    assert [(ticket["ticketId"], ticket["qrToken"]) for ticket in tickets] == [
        (ticket["ticketId"], ticket["qrToken"]) for ticket in before
    ]
    for ticket in tickets:
        image_hash(ticket["imageUrl"])  # presigned by the new tasks' credentials
    # The topic, the mappings, the roles: all still do, and still refuse, what they did.
    customer.visitor.book(event_id=event_id, seats=["A-3"])
    platform.wait_for_mails(to=customer.email, count=2)
    platform.wait_for_tickets(customer.visitor, count=3)
    address = urllib.parse.urlsplit(tickets[0]["imageUrl"])
    connection = http.client.HTTPConnection(str(address.hostname), int(address.port or 80), timeout=10)
    connection.request("GET", address.path)
    assert connection.getresponse().status == 403
    connection.close()


def test_an_invocation_that_stands_still_past_its_time_is_told_in_the_emulators_log(platform: RunningPlatform) -> None:
    event_id = platform.make_event()
    customer = platform.register()
    customer.visitor.book(event_id=event_id, seats=["A-1"])
    platform.wait_for_mails(to=customer.email)
    log = platform.folder.path / "emulator" / "emulator.log"

    def timed_out() -> int:
        with log.open(errors="replace") as lines:
            return read_excuses(lines).timed_out

    before = timed_out()
    workers = set(processes(platform.folder, WORKER))
    try:
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        customer.visitor.book(event_id=event_id, seats=["A-2"])

        wait_until("the function's time has ended", lambda: timed_out() > before, seconds=30)

        wait_until("its process has ended", lambda: not workers <= set(processes(platform.folder, WORKER)), seconds=30)
    finally:
        for pid in workers & set(processes(platform.folder, WORKER)):
            os.kill(pid, signal.SIGCONT)
