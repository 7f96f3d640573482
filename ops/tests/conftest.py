"""Stage dev of a project of its own, with a `pulumi` that plays canned answers."""

import os
import shutil
from pathlib import Path

import pytest

from ops.stage_file import find_stage_file
from ops.tests.stages import FakeAws, Stage, StubProgram, make_project, willing


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def pulumi(tmp_path: Path) -> StubProgram:
    return willing(StubProgram(tmp_path, "pulumi"))


@pytest.fixture
def stage(project: Path, pulumi: StubProgram) -> Stage:
    path = os.pathsep.join((str(pulumi.folder), os.path.dirname(shutil.which("ps") or "/bin/ps")))  # noqa: PTH120
    return Stage(
        project=project,
        file=find_stage_file(project, "dev"),
        pulumi=pulumi,
        aws=FakeAws(),
        environment={"PATH": path, "RESTORE_FROM": "must-not-leak"},
    )
