"""``make grant`` on a stage that it cannot work on: one line with the way there, exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ops.grant.__main__ import api_cluster
from ops.refusal import Refusal
from ops.tests.stages import Stage

pytestmark = pytest.mark.integration

CLUSTER = "minitickets-dev"


@pytest.mark.parametrize(
    ("outputs", "switches", "match"),
    [
        ({}, {}, "Compute is off in dev.*: run make up STAGE=dev first"),
        ({}, {"computeEnabled": False}, "run make compute-on STAGE=dev first"),
        ({}, {"computeEnabled": False, "dataEnabled": False}, "run make wake STAGE=dev first"),
        ({"apiCluster": CLUSTER}, {}, "has no image yet.*make image, make push STAGE=dev, make up STAGE=dev"),
    ],
    ids=["not up", "compute off", "asleep", "no image"],
)
def test_a_stage_without_a_running_api_is_refused_with_the_way_there(
    stage: Stage, outputs: dict[str, object], switches: dict[str, bool], match: str
) -> None:
    stage.set(**switches)
    with pytest.raises(Refusal, match=match):
        api_cluster(outputs, stage.file.settings(), stage="dev")


def test_a_stage_with_a_running_api_names_its_cluster(stage: Stage) -> None:
    outputs = {"apiCluster": CLUSTER, "apiTaskDefinition": "arn:…:7"}
    assert api_cluster(outputs, stage.file.settings(), stage="dev") == CLUSTER


@pytest.mark.parametrize(
    ("environment", "match"),
    [
        ({"GRANT_EMAIL": ""}, "Set EMAIL="),
        ({"GRANT_EMAIL": "ada@example.org", "STAGE": "prod"}, "No Pulumi.prod.yaml here"),
        ({"GRANT_EMAIL": "ada@example.org", "GRANT_ROLE": ""}, "Compute is off in dev"),
    ],
    ids=["nobody", "no stage", "compute off"],
)
def test_what_is_missing_is_one_line_and_exit_code_2(stage: Stage, environment: dict[str, str], match: str) -> None:
    command = subprocess.run(
        [sys.executable, "-m", "ops.grant", "--project", str(stage.project)],
        cwd=Path(__file__).parents[2],
        env={"PATH": stage.environment["PATH"], "STAGE": "dev", "AWS_CONFIG_FILE": os.devnull, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (command.returncode, command.stderr.count("\n")) == (2, 1)
    assert match in command.stderr


@pytest.mark.parametrize(
    ("said", "given"),
    [
        (["EMAIL=ada@example.org"], ["dev", "ada@example.org", "", ""]),
        (["EMAIL=ada@example.org", "REVOKE=1", "STAGE=prod"], ["prod", "ada@example.org", "", "1"]),
        (["EMAIL=$$(touch x)`id`;'@example.org"], ["dev", "$(touch x)`id`;'@example.org", "", ""]),
        ([], ["dev", "", "", ""]),
    ],
    ids=["grant", "revoke", "no shell reads it", "the shell's own EMAIL does not count"],
)
def test_make_hands_on_what_its_command_line_says(tmp_path: Path, said: list[str], given: list[str]) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$*" "$STAGE" "$GRANT_EMAIL" "$GRANT_ROLE" "$GRANT_REVOKE"\n')
    python.chmod(0o755)
    made = subprocess.run(
        ["make", "--silent", "--old-file=.venv/.stamp", "grant", f"BIN={tmp_path}", *said],
        cwd=Path(__file__).parents[2],
        env={"PATH": os.environ["PATH"], "EMAIL": "operator@example.org", "ROLE": "admin", "REVOKE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines() == ["-m ops.grant", *given]
