"""Whatever ends the platform, nothing is lost and nothing still runs; and what it cannot mend, it says."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.processes import ProcessError, kernel_start_time, wait_until
from local.progress import Progress
from local.session import SessionError, running_platform
from local.stage_folder import StageFolder, read_json
from tests.fixtures.platform import ALL_OFF, ALL_ON, RunningPlatform, image_hash

pytestmark = pytest.mark.e2e


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a stage holds: what must be the same after whatever happened to the platform."""

    bookings: list[dict[str, Any]]
    tickets: list[tuple[str, str, str, str]]  # id, status, token, hash of the PNG
    mails: list[dict[str, Any]]
    dead_letters: int


@dataclass(frozen=True, kw_only=True)
class Booked:
    """A stage that was stopped cleanly after a customer had booked, and how to look at it again."""

    folder: Path
    email: str
    password: str
    event_id: str
    facts: Facts


@contextmanager
def _up(folder: Path, config: Mapping[str, str] = ALL_ON) -> Iterator[RunningPlatform]:
    log = folder.with_suffix(".log")
    with running_platform(
        StageFolder(folder), stage="dev", config=config, progress=Progress(log=log), log=log
    ) as session:
        running = RunningPlatform(session)
        try:
            yield running
        finally:
            running.close()


def _facts(running: RunningPlatform, *, email: str, password: str) -> Facts:
    visitor = running.visitor()
    visitor.login(email=email, password=password)
    tickets = [
        (ticket["ticketId"], ticket["status"], ticket["qrToken"], image_hash(ticket["imageUrl"]))
        for ticket in visitor.tickets()
    ]
    return Facts(
        bookings=visitor.bookings(), tickets=sorted(tickets), mails=running.mails(to=email), dead_letters=_dead(running)
    )


def _dead(running: RunningPlatform) -> int:
    url = running.outputs["jobsDlqUrl"]
    attributes = running.aws("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    return int(attributes["Attributes"]["ApproximateNumberOfMessages"])


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Booked:
    folder = tmp_path_factory.mktemp("original") / "stage"
    with _up(folder) as running:
        event_id = running.make_event()
        customer = running.register()
        customer.visitor.book(event_id=event_id, seats=["A-1", "A-2", "A-3"])
        running.wait_for_tickets(customer.visitor, count=3)
        running.wait_for_mails(to=customer.email)
        running.aws("sqs").send_message(QueueUrl=running.outputs["jobsDlqUrl"], MessageBody="{}")
        facts = _facts(running, email=customer.email, password=customer.password)
    return Booked(folder=folder, email=customer.email, password=customer.password, event_id=event_id, facts=facts)


@pytest.fixture
def booked(original: Booked, tmp_path: Path) -> Booked:
    """A copy of the stage for one test: it keeps the ports, so one copy runs at a time."""
    shutil.copytree(original.folder, tmp_path / "stage")
    return Booked(**{**vars(original), "folder": tmp_path / "stage"})


def _processes(folder: Path) -> list[dict[str, Any]]:
    return list(read_json(folder / "children.json") or [])


def _still_running(processes: list[dict[str, Any]]) -> list[str]:
    return [entry["name"] for entry in processes if kernel_start_time(entry["pid"]) == entry["started"]]


def _members(groups: list[int]) -> list[int]:
    """Processes in these process groups: a child's own children too."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[2]) in groups:
            found.append(int(stat.parent.name))
    return found


def test_a_restart_keeps_bookings_tickets_images_queues_and_mails(booked: Booked) -> None:
    with _up(booked.folder) as running:
        assert _facts(running, email=booked.email, password=booked.password) == booked.facts
        processes = _processes(booked.folder)

    assert {name.partition(":")[0] for name in (entry["name"] for entry in processes)} >= {
        "emulator",
        "postgres",
        "valkey",
    }
    assert _members([entry["pid"] for entry in processes]) == []


def test_after_a_sigkill_of_the_supervisor_nothing_runs_and_the_next_start_has_everything(booked: Booked) -> None:
    with _up(booked.folder) as running:
        visitor = running.visitor()
        visitor.login(email=booked.email, password=booked.password)
        late = visitor.book(event_id=booked.event_id, seats=["A-9"])
        processes = _processes(booked.folder)
        os.kill(running.session.supervisor.pid, signal.SIGKILL)

        wait_until("all children have ended", lambda: not _members([entry["pid"] for entry in processes]), seconds=30)

    with _up(booked.folder) as running:
        visitor = running.visitor()
        visitor.login(email=booked.email, password=booked.password)
        tickets = running.wait_for_tickets(visitor, count=4)
        mails = running.wait_for_mails(to=booked.email, count=2)
        facts = _facts(running, email=booked.email, password=booked.password)

    assert late["bookingId"] in {ticket["bookingId"] for ticket in tickets}
    assert facts.bookings[0]["bookingId"] == late["bookingId"]
    assert set(booked.facts.tickets) <= set(facts.tickets)
    # At most one more mail than bookings: a send whose record was cut off.
    assert len(mails) in (2, 3)
    assert facts.dead_letters == booked.facts.dead_letters


def test_switching_both_halves_off_and_on_again_keeps_every_booking_and_ticket(booked: Booked) -> None:
    with _up(booked.folder, ALL_OFF) as running:
        assert running.session.api_url is None
        assert [entry["name"] for entry in _processes(booked.folder)] == ["emulator"]
        table = running.aws("dynamodb").scan(TableName=running.outputs["ticketsTable"])
        assert {item["ticketId"]["S"] for item in table["Items"]} == {ticket[0] for ticket in booked.facts.tickets}

    with _up(booked.folder) as running:
        assert _facts(running, email=booked.email, password=booked.password) == booked.facts


def test_a_killed_emulator_ends_the_platform_and_the_next_start_says_what_is_lost(booked: Booked) -> None:
    with _up(booked.folder) as running:
        processes = _processes(booked.folder)
        (emulator,) = [entry["pid"] for entry in processes if entry["name"] == "emulator"]
        os.kill(emulator, signal.SIGKILL)

        assert running.session.supervisor.wait(30) == 1
        assert _members([entry["pid"] for entry in processes]) == []
    assert "emulator ended by itself" in booked.folder.with_suffix(".log").read_text()

    with pytest.raises(SessionError) as refused, _up(booked.folder):
        pass
    assert refused.value.exit_code == 3
    said = booked.folder.with_suffix(".log").read_text()
    assert "lost what it held" in said
    assert "make local-reset" in said
    assert _still_running(_processes(booked.folder)) == []


def test_an_emulator_that_cannot_write_when_it_is_restarted_ends_the_platform_and_the_next_start_says_so(
    booked: Booked,
) -> None:
    with _up(booked.folder) as running:
        processes = _processes(booked.folder)
        in_the_way = booked.folder / "emulator" / "state" / "sqs.json.tmp"
        in_the_way.mkdir()

        with pytest.raises(ProcessError, match=r"could not write what it holds \(sqs\)"):
            running.session.client.post("/emulator/restart", {})

        assert running.session.supervisor.wait(30) == 1
        assert _members([entry["pid"] for entry in processes]) == []

    in_the_way.rmdir()
    with pytest.raises(SessionError) as refused, _up(booked.folder):
        pass
    assert refused.value.exit_code == 3


def test_a_platform_that_is_ended_while_its_emulator_restarts_leaves_nothing_behind(booked: Booked) -> None:
    groups: set[int] = set()

    def without_emulator() -> bool:
        processes = _processes(booked.folder)
        groups.update(entry["pid"] for entry in processes)
        return all(entry["name"] != "emulator" for entry in processes)

    with _up(booked.folder) as running, ThreadPoolExecutor(1) as pool:
        pool.submit(running.session.client.post, "/emulator/restart", {})
        wait_until("the emulator has ended", without_emulator, seconds=30)
        running.session.supervisor.send(signal.SIGTERM)
        assert running.session.supervisor.wait(60) == 0
        groups.update(entry["pid"] for entry in _processes(booked.folder))

    assert _processes(booked.folder) == []
    assert _members(sorted(groups)) == []
    with _up(booked.folder) as running:
        assert _facts(running, email=booked.email, password=booked.password) == booked.facts


def _local(*arguments: str, seconds: float = 120) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "local", *arguments], capture_output=True, text=True, timeout=seconds)


def test_a_second_start_says_where_the_first_one_is_and_changes_nothing(platform: RunningPlatform) -> None:
    done = _local("up", "--folder", str(platform.folder.path))

    assert done.returncode == 2
    running = platform.folder.running()
    assert running is not None
    assert running["control"] in done.stdout + done.stderr
    assert platform.visitor().query("auth.me") == {"user": None}


def test_a_running_stage_is_not_reset(platform: RunningPlatform) -> None:
    done = _local("reset", "--folder", str(platform.folder.path))

    assert done.returncode == 2
    assert "nothing was deleted" in done.stderr
    assert platform.visitor().query("auth.me") == {"user": None}


def test_a_stage_that_does_not_run_is_reset_to_nothing(booked: Booked) -> None:
    done = _local("reset", "--folder", str(booked.folder))

    assert done.returncode == 0
    assert not booked.folder.exists()


def test_compute_without_data_is_refused_with_what_to_set(tmp_path: Path) -> None:
    done = _local("up", "--data", "off", "--folder", str(tmp_path / "stage"))

    assert done.returncode == 2
    assert "Set DATA=on, or COMPUTE=off." in done.stderr
    assert not (tmp_path / "stage").exists()


def test_what_the_program_refuses_ends_the_platform_with_its_own_sentence(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    config = {**ALL_ON, "dataEnabled": "false"}
    folder = StageFolder(tmp_path / "stage")

    with (
        pytest.raises(SessionError) as refused,
        running_platform(folder, stage="dev", config=config, progress=Progress(log=log), log=log),
    ):
        pass

    assert refused.value.exit_code == 2
    assert re.search(
        r"the program refuses: .*computeEnabled is true .*dataEnabled is false", log.read_text(), re.DOTALL
    )
    assert _processes(folder.path) == []


def test_a_stage_without_a_file_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = _local("up", "--stage", "nonsense", "--folder", str(tmp_path / "stage"))

    assert done.returncode == 2
    assert "Pulumi.nonsense.yaml is missing" in done.stderr
    assert "dev, prod" in done.stderr
    assert not (tmp_path / "stage").exists()


def test_nothing_listens_on_other_than_loopback(platform: RunningPlatform) -> None:
    groups = [platform.session.supervisor.pid, *(entry["pid"] for entry in _processes(platform.folder.path))]
    sockets = {_target(link) for pid in _members(groups) for link in Path(f"/proc/{pid}/fd").glob("*")}
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    listening = [
        address
        for table in ("tcp", "tcp6", "udp", "udp6")
        for address, port, state, inode in _socket_table(table)
        if f"socket:[{inode}]" in sockets
        # A UDP socket whose port the kernel drew only sends: the SDK's clients report their calls by such ones.
        and (not first <= port <= last if table.startswith("udp") else state == "0A")
    ]

    # Control, emulator, mail, credentials, calls, balancer, PostgreSQL, Valkey, API.
    assert len(listening) >= 9
    assert set(listening) <= {"0100007F", "0" * 24 + "01000000"}


@contextmanager
def _killed_after(process: "subprocess.Popen[str]", *, seconds: float) -> Iterator[None]:
    """Reading what a process says must come to an end, whatever it does."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _socket_table(name: str) -> Iterator[tuple[str, int, str, str]]:
    """Local address (hexadecimal), port, state and inode of each socket."""
    for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
        fields = line.split()
        address, _, port = fields[1].partition(":")
        yield address, int(port, 16), fields[3], fields[9]


@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN], ids=["terminal", "background job"])
def test_ctrl_c_ends_everything_and_says_so(tmp_path: Path, inherited: signal.Handlers) -> None:
    folder = tmp_path / "stage"
    command = [sys.executable, "-m", "local", "up", "--compute", "off", "--data", "off", "--folder", str(folder)]
    with (
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, inherited),
        ) as process,
        _killed_after(process, seconds=90),
    ):
        assert process.stdout is not None
        assert any("Ctrl-C" in line for line in process.stdout)
        processes = _processes(folder)
        assert [entry["name"] for entry in processes] == ["emulator"]

        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole foreground group
        rest = process.stdout.read()

    assert process.returncode == 0
    assert "everything has ended" in rest
    assert _members([entry["pid"] for entry in processes]) == []


def test_ended_by_a_death_of_its_terminal_nothing_still_runs(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    command = [sys.executable, "-m", "local", "up", "--compute", "off", "--data", "off", "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    wait_until("the emulator runs", lambda: bool(_processes(folder)), seconds=30)
    processes = _processes(folder)
    running = StageFolder(folder).running()
    assert running is not None

    process.kill()
    process.wait(5)

    wait_until("all has ended", lambda: not _members([running["pid"], *(e["pid"] for e in processes)]), seconds=30)


def test_the_control_api_answers_nobody_without_the_token(platform: RunningPlatform) -> None:
    running = platform.folder.running()
    assert running is not None
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {secrets.token_urlsafe(32)}"}):
        reply = httpx.get(f"{running['control']}/resources", headers=headers, trust_env=False)
        assert reply.status_code == 401
        assert "resources" not in reply.text
    assert platform.folder.running_file.stat().st_mode & 0o077 == 0
