"""Stage dev of a project of its own, with a `pulumi` that plays canned answers; an emulated account."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.emulator import Clients
from ops.aws_account import AwsAccount
from ops.stage_file import find_stage_file
from ops.tests.stages import FakeAws, Stage, StubProgram, make_project, willing
from tests.fixtures.emulator import RunningEmulator


@pytest.fixture
def account(emulator: RunningEmulator, region: str, monkeypatch: pytest.MonkeyPatch) -> AwsAccount:
    """The emulated account as the deploys see it, in the ``region`` that the test's module has for itself."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", emulator.account)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "root")
    return AwsAccount(region=region)


@pytest.fixture
def aws(emulator: RunningEmulator, region: str) -> Iterator[Clients]:
    clients = Clients(emulator.endpoint, region=region)
    yield clients
    clients.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def pulumi(tmp_path: Path) -> StubProgram:
    return willing(StubProgram(tmp_path, "pulumi"))


@pytest.fixture
def stage(project: Path, pulumi: StubProgram) -> Stage:
    path = os.pathsep.join((str(pulumi.folder), os.path.dirname(shutil.which("ps") or "/bin/ps")))  # noqa: PTH120 - a string is joined, no path
    return Stage(
        project=project,
        file=find_stage_file(project, "dev"),
        pulumi=pulumi,
        aws=FakeAws(),
        environment={"PATH": path, "RESTORE_FROM": "must-not-leak"},
    )
