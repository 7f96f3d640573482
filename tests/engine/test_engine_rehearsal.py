"""`make rehearse`: all of it at once, on the repository's own stage, which it leaves as it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local.stage_folder import REPOSITORY, StageFolder, read_json

pytestmark = pytest.mark.engine


def test_a_rehearsal_of_dev_loses_nothing_and_leaves_nothing_not_even_a_changed_file(tmp_path: Path, cli: Path) -> None:
    file = REPOSITORY / "Pulumi.dev.yaml"
    before = file.read_bytes()
    folder = tmp_path / "stage"
    done = subprocess.run(
        [sys.executable, "-m", "local.rehearse", "--stage", "dev", "--json", "--folder", str(folder)],
        env={**os.environ, "PATH": os.pathsep.join((str(cli.parent), os.environ["PATH"]))},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["ok"]
    steps = {step["name"]: step for step in report["steps"]}
    assert list(steps) == [
        *("up", "book", "compute-off", "data-off", "data-on", "compute-on", "book again", "preview", "destroy")
    ]
    assert len(steps["destroy"]["deleted"]) == len(steps["up"]["created"]) > 60
    assert steps["data-on"]["created"] == steps["data-off"]["deleted"]
    assert file.read_bytes() == before
    assert read_json(folder / "children.json") == []
    assert not StageFolder(folder).is_held()
