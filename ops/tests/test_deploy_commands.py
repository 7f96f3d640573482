"""The commands as a person or CI runs them: exit codes, one line on what is missing, questions, signals."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from local.emulator import Clients
from ops.tests.stages import STAGE_FILE, StubProgram, preview, resource, state, step
from tests.fixtures.emulator import RunningEmulator

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SECONDS = 60
DATABASE = "minitickets-dev-db"
REGION = "eu-west-1"  # the stage file's, not the emulator's own


class Commands:
    """`python -m ops.deploy` in a project of its own, with the emulator as AWS."""

    def __init__(self, project: Path, pulumi: StubProgram, environment: Mapping[str, str]) -> None:
        self.project = project
        self.pulumi = pulumi
        self.environment = dict(environment)

    def argv(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ops.deploy", *arguments, "--stage", "dev", "--project", str(self.project)]

    def run(self, *arguments: str, **environment: str | None) -> "subprocess.CompletedProcess[str]":
        """One run without a terminal; None takes a variable out of its environment."""
        changed = {**self.environment, **environment}
        return subprocess.run(
            self.argv(*arguments),
            cwd=ROOT,
            env={key: value for key, value in changed.items() if value is not None},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @property
    def stage_file(self) -> str:
        return (self.project / "Pulumi.dev.yaml").read_text()

    def refused(self, result: "subprocess.CompletedProcess[str]", match: str) -> None:
        """Exit code 2, one line on stderr, nothing changed."""
        assert result.returncode == 2, result.stderr
        assert re.fullmatch(r"error: [^\n]+\n", result.stderr), result.stderr
        assert re.search(match, result.stderr), result.stderr
        assert self.stage_file == STAGE_FILE
        assert not {"up", "destroy", "refresh", "cancel", "stack init", "stack import"} & set(self.pulumi.commands)


@pytest.fixture
def commands(project: Path, pulumi: StubProgram, emulator: RunningEmulator) -> Commands:
    environment = {
        "PATH": os.pathsep.join((str(pulumi.folder), os.environ["PATH"])),
        "HOME": str(project),
        "AWS_ENDPOINT_URL": emulator.endpoint,
        "AWS_ACCESS_KEY_ID": emulator.account,
        "AWS_SECRET_ACCESS_KEY": "root",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return Commands(project, pulumi, environment)


@pytest.fixture
def aws(emulator: RunningEmulator) -> Iterator[Clients]:
    """Clients of the stage's region."""
    clients = Clients(emulator.endpoint, region=REGION)
    yield clients
    clients.close()


@pytest.fixture
def database(aws: Clients) -> Iterator[None]:
    """The stage's database in the emulator, without deletion protection; gone afterwards with its snapshots."""
    rds = aws("rds")
    rds.create_db_instance(
        DBInstanceIdentifier=DATABASE,
        Engine="postgres",
        DBInstanceClass="db.t4g.micro",
        AllocatedStorage=20,
        MasterUsername="minitickets",
        MasterUserPassword="only-in-the-emulator",
    )
    yield
    for snapshot in rds.describe_db_snapshots(DBInstanceIdentifier=DATABASE)["DBSnapshots"]:
        rds.delete_db_snapshot(DBSnapshotIdentifier=snapshot["DBSnapshotIdentifier"])
    rds.modify_db_instance(DBInstanceIdentifier=DATABASE, DeletionProtection=False)
    rds.delete_db_instance(DBInstanceIdentifier=DATABASE, SkipFinalSnapshot=True)


def test_up_from_nothing_works_and_says_what_it_does(commands: Commands) -> None:
    result = commands.run("up", YES="1")
    assert result.returncode == 0, result.stderr
    assert commands.pulumi.commands == ["whoami", "stack export", "preview", "up"]
    assert "+ aws:sqs:Queue jobs" in result.stdout
    assert "make push STAGE=dev" in result.stdout


@pytest.mark.parametrize("command", ["up", "preview", "sleep"])
def test_a_missing_cli_is_one_line_and_exit_code_2(commands: Commands, command: str) -> None:
    commands.refused(commands.run(command, PATH="/usr/bin:/bin"), r"No pulumi on PATH: install the Pulumi CLI")


@pytest.mark.parametrize("command", ["up", "destroy", "outputs"])
def test_a_missing_login_is_one_line_and_exit_code_2(commands: Commands, command: str) -> None:
    commands.pulumi.answers(whoami={"code": 3, "err": "error: this command requires logging in\n"})
    commands.refused(commands.run(command), "not logged in .*run pulumi login")


@pytest.mark.parametrize("command", ["sleep", "destroy"])
def test_missing_credentials_are_one_line_and_exit_code_2(commands: Commands, command: str) -> None:
    commands.refused(commands.run(command, AWS_ACCESS_KEY_ID=None), "No AWS credentials that work .*set AWS_PROFILE")


def test_a_profile_that_is_not_there_is_one_line_and_exit_code_2(commands: Commands) -> None:
    commands.refused(commands.run("up", AWS_PROFILE="nowhere"), r"AWS credentials: .*nowhere.* Set AWS_PROFILE")


def test_an_aws_that_cannot_be_reached_is_one_line_and_exit_code_2(commands: Commands) -> None:
    result = commands.run("up", AWS_ENDPOINT_URL="http://127.0.0.1:1")
    commands.refused(result, "No AWS credentials that work")


def test_missing_archives_are_one_line_and_exit_code_2(commands: Commands) -> None:
    (commands.project / "dist" / "tickets.zip").unlink()
    commands.refused(commands.run("up"), r"No dist/tickets\.zip: run make build")


def test_a_missing_stage_file_is_one_line_and_exit_code_2(commands: Commands) -> None:
    argv = [sys.executable, "-m", "ops.deploy", "up", "--stage", "prod", "--project", str(commands.project)]
    asked = subprocess.run(argv, cwd=ROOT, env=commands.environment, capture_output=True, text=True, check=False)
    assert asked.returncode == 2
    assert re.fullmatch(r"error: No Pulumi\.prod\.yaml here[^\n]*\n", asked.stderr)


def test_without_a_terminal_nothing_is_done_unasked(commands: Commands) -> None:
    commands.refused(commands.run("sleep"), "no terminal to ask on: set YES=1")
    commands.pulumi.answers(stack_export={"out": state(resource("aws:sqs/queue:Queue", "jobs"))})
    commands.refused(commands.run("destroy", YES="1"), "set CONFIRM=dev")
    commands.refused(commands.run("destroy", CONFIRM="prod"), "CONFIRM=prod is not dev")


def test_each_switch_needs_the_other_as_the_program_does(commands: Commands) -> None:
    commands.refused(commands.run("data-off", YES="1"), "make compute-off STAGE=dev first, or make sleep STAGE=dev")
    assert commands.pulumi.calls == [], "refused before anything is asked"
    off = STAGE_FILE.replace("dataEnabled: true", "dataEnabled: false").replace(
        "computeEnabled: true", "computeEnabled: false"
    )
    (commands.project / "Pulumi.dev.yaml").write_text(off)
    result = commands.run("compute-on", YES="1")
    assert result.returncode == 2
    assert "make data-on STAGE=dev first, or make wake STAGE=dev" in result.stderr
    assert (commands.stage_file, commands.pulumi.calls) == (off, [])


def test_sleep_and_wake_turn_both_switches_there_and_back(commands: Commands) -> None:
    assert commands.run("sleep", YES="1").returncode == 0
    assert re.findall(r"(?:compute|data)Enabled: (\w+)", commands.stage_file) == ["false", "false"]
    assert commands.run("wake", YES="1").returncode == 0
    assert commands.stage_file == STAGE_FILE


def test_one_switch_at_a_time_turns_one(commands: Commands) -> None:
    seen = []
    for command in ("compute-off", "data-off", "data-on", "compute-on"):
        assert commands.run(command, YES="1").returncode == 0
        seen.append(re.findall(r"(?:compute|data)Enabled: (\w+)", commands.stage_file))
    assert seen == [["false", "true"], ["false", "false"], ["false", "true"], ["true", "true"]]


@pytest.mark.parametrize("command", ["sleep", "compute-on", "destroy"])
def test_a_restore_is_refused_where_no_database_is_born(commands: Commands, command: str) -> None:
    commands.refused(commands.run(command, RESTORE_FROM="none"), f"RESTORE_FROM=none has no meaning for {command}")


@pytest.mark.usefixtures("database")
def test_deletion_protection_of_the_real_database_refuses_sleep(commands: Commands, aws: Clients) -> None:
    aws("rds").modify_db_instance(DBInstanceIdentifier=DATABASE, DeletionProtection=True, ApplyImmediately=True)
    commands.refused(commands.run("sleep", YES="1"), f"Database {DATABASE} has deletion protection")


@pytest.mark.usefixtures("database")
def test_wake_prunes_real_snapshots_and_keeps_what_the_stage_remembers(commands: Commands, aws: Clients) -> None:
    rds, names = aws("rds"), [f"{DATABASE}-final-2026010{day}t000000z" for day in range(1, 8)]
    for name in names:
        rds.create_db_snapshot(DBInstanceIdentifier=DATABASE, DBSnapshotIdentifier=name)
    aws("ssm").put_parameter(
        Name="/minitickets-dev/database-life",
        Type="String",
        Value=json.dumps({"final": names[0], "bornFrom": None, "rewoundAt": None}),
        Overwrite=True,
    )
    (commands.project / "Pulumi.dev.yaml").write_text(STAGE_FILE + "  minitickets:keepSnapshots: 4\n")
    result = commands.run("wake", YES="1")
    assert result.returncode == 0, result.stderr
    kept = {found["DBSnapshotIdentifier"] for found in rds.describe_db_snapshots()["DBSnapshots"]}
    assert kept == {names[0], *names[3:]}


@pytest.mark.usefixtures("database")
def test_destroy_deletes_the_real_final_snapshots(commands: Commands, aws: Clients) -> None:
    rds = aws("rds")
    for name in (f"{DATABASE}-final-1", "made-by-hand"):
        rds.create_db_snapshot(DBInstanceIdentifier=DATABASE, DBSnapshotIdentifier=name)
    result = commands.run("destroy", CONFIRM="dev")
    assert result.returncode == 0, result.stderr
    assert [found["DBSnapshotIdentifier"] for found in rds.describe_db_snapshots()["DBSnapshots"]] == ["made-by-hand"]


def test_a_failed_up_is_exit_code_1(commands: Commands) -> None:
    commands.pulumi.answers(up={"code": 255, "err": "error: update failed\n"})
    result = commands.run("up", YES="1")
    assert result.returncode == 1
    assert "error: update failed" in result.stderr
    assert "make up STAGE=dev: it goes on where this stopped" in result.stderr


def test_outputs_are_printed_without_aws(commands: Commands) -> None:
    result = commands.run("outputs", AWS_ACCESS_KEY_ID=None)
    assert result.returncode == 0
    assert json.loads(result.stdout)["repositoryUrl"].endswith("/minitickets-dev-api")


def test_a_refused_preview_is_exit_code_2_and_shows_the_inputs(commands: Commands) -> None:
    lost = step("replace", "aws:dynamodb/table:Table", "tickets", replaceReasons=["hashKey"])
    commands.pulumi.answers(preview={"out": preview(lost)})
    result = commands.run("preview")
    assert result.returncode == 2
    assert "replace the table aws:dynamodb:Table tickets: a change of hashKey does that" in result.stderr


@pytest.mark.parametrize(("typed", "code", "ran"), [(b"n\n", 1, False), (b"\n", 1, False), (b"y\n", 0, True)])
def test_on_a_terminal_it_asks_and_does_what_is_answered(
    commands: Commands, typed: bytes, code: int, *, ran: bool
) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        commands.argv("up"), cwd=ROOT, env=commands.environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    _read_until(ours, b"Do this in dev? [y/N]")
    assert "up" not in commands.pulumi.commands
    os.write(ours, typed)
    _drain(ours)
    assert process.wait(SECONDS) == code
    os.close(ours)
    assert ("up" in commands.pulumi.commands) is ran


def test_a_sigterm_reaches_pulumi_as_an_interrupt_that_it_ends_well_from(commands: Commands) -> None:
    commands.pulumi.answers(up={"waits_for_interrupt": True, "code": 1, "err": "error: update canceled\n"})
    process = subprocess.Popen(
        commands.argv("sleep"),
        cwd=ROOT,
        env={**commands.environment, "YES": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    waiting = commands.pulumi.folder / "waiting"
    end = time.monotonic() + SECONDS
    while not waiting.exists():
        assert time.monotonic() < end, "up was never begun"
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert "update canceled" in errors
    assert "keeps computeEnabled: false and dataEnabled: false" in errors


@pytest.mark.parametrize(
    "target",
    ["preview", "up", "destroy", "outputs", "compute-on", "compute-off", "data-on", "data-off", "sleep", "wake"],
)
def test_make_runs_the_command_of_its_target(target: str) -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--old-file=.venv/.stamp", target, "STAGE=prod"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},  # not of the make that may run this test
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines()[-1].split() == [".venv/bin/python", "-m", "ops.deploy", target]


def _read_until(terminal: int, text: bytes) -> None:
    seen = b""
    end = time.monotonic() + SECONDS
    while text not in seen:
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 4096)


def _drain(terminal: int) -> None:
    while True:
        try:
            if not os.read(terminal, 4096):
                return
        except OSError:  # the other side is closed
            return
