"""Deploying with the real Pulumi CLI: a small program, and a provider that keeps its resources in a file."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ops.deploy.deployment import Deployment
from ops.deploy.preflight import Ready, make_stack
from ops.pulumi_cli import PulumiCli
from ops.refusal import Failure, Refusal
from ops.stage_file import StageFile, find_stage_file
from ops.tests.stages import STAGE_FILE, FakeAws, ScriptedConsole, make_project

pytestmark = pytest.mark.engine

SECONDS = 60
EVERYTHING = {"minitickets-dev-tickets", "minitickets-dev-db"}
OFF = {"computeEnabled": False, "dataEnabled": False}
ON = {"computeEnabled": True, "dataEnabled": True}


@dataclass(frozen=True, kw_only=True)
class Rig:
    """Stage dev on the real engine. ``folder`` also holds what engine_rig.py reads and writes."""

    folder: Path
    file: StageFile
    environment: dict[str, str]
    aws: FakeAws
    console: ScriptedConsole

    @property
    def ready(self) -> Ready:
        project = self.file.path.parent
        cli = PulumiCli(project=project, stage="dev", environment=self.environment)
        return Ready(project=project, file=self.file, cli=cli, aws=self.aws, account="123456789012")

    def deployment(self) -> Deployment:
        return Deployment(self.ready, console=self.console, restore_from=None, unlock=False)

    @property
    def cloud(self) -> dict[str, dict[str, Any]]:
        """What the provider holds, by name."""
        path = self.folder / "cloud.json"
        found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def pulumi(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """The CLI itself, in a process of its own."""
        command = ["pulumi", *arguments, "--stack", "dev", "--non-interactive"]
        return subprocess.Popen(
            command,
            cwd=self.file.path.parent,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def set_raw(self, line: str) -> None:
        """Add a line of configuration, as an editor would."""
        text = self.file.path.read_text()
        self.file.path.write_text(text.replace("config:\n", f"config:\n  {line}\n", 1))


@pytest.fixture
def rig(tmp_path: Path, cli: Path) -> Iterator[Rig]:
    project = make_project(tmp_path / "project")
    (project / "Pulumi.yaml").write_text("name: minitickets\nruntime: python\n")
    process = subprocess.Popen([sys.executable, str(Path(__file__).with_name("engine_rig.py")), str(tmp_path)])
    try:
        _wait(lambda: (tmp_path / "ports.json").exists(), "the provider does not serve")
        ports = json.loads((tmp_path / "ports.json").read_text())
        environment = {
            "PATH": os.pathsep.join((str(_wrapper(tmp_path, cli, ports["language"])), os.environ["PATH"])),
            "HOME": str(tmp_path),
            "PULUMI_HOME": str(tmp_path / "home"),
            "PULUMI_BACKEND_URL": f"file://{tmp_path}/backend",
            "PULUMI_CONFIG_PASSPHRASE": "only-in-this-test",
            "PULUMI_DEBUG_PROVIDERS": f"aws:{ports['provider']}",
        }
        (tmp_path / "backend").mkdir()
        yield Rig(
            folder=tmp_path,
            file=find_stage_file(project, "dev"),
            environment=environment,
            aws=FakeAws(),
            console=ScriptedConsole(types="dev"),
        )
    finally:
        process.terminate()
        process.wait(SECONDS)


def _wrapper(folder: Path, real: Path, language_port: int) -> Path:
    """A `pulumi` that runs the rig's program by its language server, so that no language host is needed."""
    program = folder / "bin" / "pulumi"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        f'preview|up|refresh|destroy) exec {real} "$@" --client=127.0.0.1:{language_port} --exec-kind=auto.inline;;\n'
        f'*) exec {real} "$@";;\n'
        "esac\n"
    )
    program.chmod(0o755)
    return program.parent


def _wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def test_up_sleep_wake_and_destroy_leave_the_stage_file_s_comments_and_nothing_else(rig: Rig) -> None:
    rig.deployment().up({})
    assert set(rig.cloud) == EVERYTHING
    salted = rig.file.path.read_text()
    assert salted.startswith(STAGE_FILE)
    assert salted.removeprefix(STAGE_FILE).startswith("encryptionsalt: ")

    rig.deployment().up({})
    assert "  nothing to change" in rig.console.said

    rig.deployment().up(OFF)
    assert set(rig.cloud) == {"minitickets-dev-tickets"}
    rig.deployment().up(ON)
    assert set(rig.cloud) == EVERYTHING
    assert rig.file.path.read_text() == salted

    rig.deployment().destroy()
    assert rig.cloud == {}
    assert rig.file.path.read_text() == salted


def test_the_engine_s_replacement_of_a_database_is_refused_with_its_input(rig: Rig) -> None:
    rig.deployment().up({})
    rig.set_raw("minitickets:username: other")
    with pytest.raises(Refusal, match="replace the database aws:rds:Instance db: a change of username does that"):
        rig.deployment().up({})
    assert rig.cloud["minitickets-dev-db"]["username"] == "minitickets"


def test_a_running_service_is_not_removed_because_its_image_is_gone_from_the_file(rig: Rig) -> None:
    rig.file.write(rig.file.changed({"image": "repository@sha256:1"}))
    rig.deployment().up({})
    rig.file.write(rig.file.changed({"image": None}))
    with pytest.raises(Refusal, match=r"delete the running service .*Pulumi\.dev\.yaml names no image"):
        rig.deployment().up({})
    assert "minitickets-dev-api" in rig.cloud


def test_the_program_s_own_refusal_of_a_flip_is_shown_and_touches_nothing(rig: Rig) -> None:
    rig.deployment().up({})
    rig.set_raw("minitickets:fails: the database is being deleted")
    before = rig.file.read()
    with pytest.raises(Failure, match=r"nothing was changed in dev:\n(.|\n)*the database is being deleted"):
        rig.deployment().up(OFF)
    assert rig.file.read() == before
    assert set(rig.cloud) == EVERYTHING


def _kill_in_mid_up(rig: Rig) -> None:
    """Start an up, and kill it once resources are made that the state does not know yet."""
    make_stack(rig.ready)
    (rig.folder / "hold").touch()
    process = rig.pulumi("up", "--yes", "--skip-preview")
    _wait(lambda: len(rig.cloud) == len(EVERYTHING), "the resources were not made")
    process.send_signal(signal.SIGKILL)
    process.wait(SECONDS)
    (rig.folder / "hold").unlink()


def test_a_run_killed_in_mid_create_is_finished_without_making_anything_twice(rig: Rig) -> None:
    _kill_in_mid_up(rig)
    made = rig.cloud
    rig.deployment().up({})
    said = "\n".join(rig.console.said)
    assert "cut off while creating" in said
    assert "cancel: its process is gone" in said
    assert rig.cloud == made
    rig.console.said.clear()
    rig.deployment().up({})
    assert "  nothing to change" in rig.console.said


def test_what_the_killed_run_had_not_made_yet_is_made_by_the_next(rig: Rig) -> None:
    _kill_in_mid_up(rig)
    cloud = rig.cloud
    del cloud["minitickets-dev-db"]
    (rig.folder / "cloud.json").write_text(json.dumps(cloud))
    rig.deployment().up({})
    assert set(rig.cloud) == EVERYTHING


def test_a_run_that_still_goes_on_is_not_cut_off(rig: Rig) -> None:
    make_stack(rig.ready)
    (rig.folder / "hold").touch()
    process = rig.pulumi("up", "--yes", "--skip-preview")
    _wait(lambda: len(rig.cloud) == len(EVERYTHING), "the resources were not made")
    try:
        with pytest.raises(Refusal, match=f"going on here .process {process.pid}"):
            rig.deployment().up(OFF)
    finally:
        (rig.folder / "hold").unlink()
    assert process.wait(SECONDS) == 0, "the other run ends well"
    assert set(rig.cloud) == EVERYTHING


def test_a_stage_killed_in_mid_up_can_be_destroyed_whole(rig: Rig) -> None:
    _kill_in_mid_up(rig)
    rig.deployment().destroy()
    assert rig.cloud == {}
