"""What a rehearsal copies, overrides, counts and reports; the rehearsal itself is in tests/engine."""

from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner

from local.engine.cli import NoCliError, find_cli, pinned_version, why_none
from local.engine.guests import Held, Stored, lost
from local.engine.operations import CREATE, DELETE, UPDATE, Operation, OperationLog, changes
from local.engine.rehearsal import Rehearsal, Step
from local.engine.stage import EngineStage, Run
from local.engine.stage_copy import StageCopyError, copy_of
from local.rehearse import main as rehearse
from local.stage_folder import REPOSITORY

pytestmark = pytest.mark.unit

PROD = """\
encryptionsalt: v1:abc
secretsprovider: awskms://alias/prod
config:
  aws:region: eu-central-1
  aws:profile: prod
  minitickets:computeEnabled: false
  minitickets:dataEnabled: true
  minitickets:deletionProtection: true
  minitickets:certificateArn: arn:aws:acm:eu-central-1:123456789012:certificate/1
  minitickets:publicUrl: https://tickets.example.org
  minitickets:allowedCidrs: [0.0.0.0/0]
  minitickets:keepSnapshots: 9
"""
PROJECT = """\
name: minitickets
config:
  computeEnabled: {type: boolean}
  dataEnabled: {type: boolean}
  deletionProtection: {type: boolean, default: true}
  forceDestroy: {type: boolean, default: true}
  certificateArn: {type: string, default: ""}
  publicUrl: {type: string, default: ""}
  allowedCidrs: {type: array, default: []}
  keepSnapshots: {type: integer, default: 5}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "Pulumi.prod.yaml").write_text(PROD)
    return tmp_path


def test_the_copy_keeps_what_is_the_stage_s_own_and_says_all_that_it_does_not(project: Path) -> None:
    copy = copy_of(project, stage="prod")
    copy.write(project / "copy")
    config = yaml.safe_load((project / "copy" / "Pulumi.prod.yaml").read_text())["config"]
    assert config["minitickets:keepSnapshots"] == 9
    assert {override.key: override.becomes for override in copy.overrides} == {
        "aws:profile": None,
        "aws:region": "us-east-1",
        "minitickets:computeEnabled": True,
        "minitickets:deletionProtection": False,
        "minitickets:certificateArn": "",
        "minitickets:publicUrl": "",
        "minitickets:allowedCidrs": ["127.0.0.0/8"],
    }
    for override in copy.overrides:
        assert config.get(override.key) == override.becomes
        assert override.reason
    assert (project / "Pulumi.prod.yaml").read_text() == PROD


def test_the_copy_asks_no_foreign_key_for_its_secrets(project: Path) -> None:
    assert set(copy_of(project, stage="prod").document) == {"config"}


def test_a_value_that_only_the_stage_s_key_can_read_is_refused_by_name(project: Path) -> None:
    (project / "Pulumi.prod.yaml").write_text("config:\n  minitickets:sender: {secure: v1:abc}\n")
    with pytest.raises(StageCopyError, match="minitickets:sender is encrypted"):
        copy_of(project, stage="prod")


def test_a_stage_without_a_file_is_refused(project: Path) -> None:
    with pytest.raises(StageCopyError, match=r"Pulumi\.nowhere\.yaml is not there"):
        copy_of(project, stage="nowhere")


def _operation(verb: str, name: str, *, error: str | None = None) -> Operation:
    return Operation(verb=verb, type="aws:sqs/queue:Queue", name=name, seconds=0.1, changed=(), error=error)


def test_what_was_deleted_and_created_was_replaced_and_what_failed_did_nothing(tmp_path: Path) -> None:
    log = OperationLog(tmp_path / "operations.jsonl")
    for operation in (
        _operation(CREATE, "before"),
        _operation(CREATE, "new"),
        _operation(UPDATE, "changed"),
        _operation(DELETE, "replaced"),
        _operation(CREATE, "replaced"),
        _operation(DELETE, "stuck", error="in use"),
        _operation(DELETE, "gone"),
    ):
        log.write(operation)
    found = changes(log.read(skip=1))
    assert (found.created, found.updated) == (("sqs.Queue new",), ("sqs.Queue changed",))
    assert (found.replaced, found.deleted) == (("sqs.Queue replaced",), ("sqs.Queue gone",))
    assert not changes([])


def test_what_is_gone_or_changed_is_lost_and_what_came_is_not() -> None:
    before = Stored(tickets={"t1": {}, "t2": {}}, images={"k": "hash"}, mails={"m": "text"})
    after = Stored(tickets={"t1": {}, "t3": {}}, images={"k": "other"}, mails={"m": "text"})
    assert lost(before, after) == ["tickets: t2 is gone", "images: k has changed"]
    assert lost(after, after) == []
    held = Held(bookings={"b": {"seats": 1}}, tickets={})
    assert lost(held, Held(bookings={}, tickets={})) == ["bookings: b is gone"]


class _RefusedStage:
    """A stage whose first deploy fails."""

    stage = "dev"
    overrides = ()

    def deploy(self, command: str) -> Run:
        return Run(exit_code=1, output=f"error: {command} went wrong", seconds=1.0, changes=changes([]))


def test_a_step_that_fails_ends_the_rehearsal_with_what_it_said() -> None:
    said: list[str] = []
    rehearsal = Rehearsal(cast(EngineStage, _RefusedStage()), say=said.append, clock=lambda: 0.0)
    report = rehearsal.run()
    assert [step.name for step in report.steps] == ["up"]
    [problem] = report.problems
    assert "error: up went wrong" in problem
    assert report.to_json()["ok"] is False
    assert said == ["up: failed"]


def test_a_problem_is_reported_with_its_step() -> None:
    rehearsal = Rehearsal(cast(EngineStage, _RefusedStage()), say=lambda _: None, clock=lambda: 0.0)
    rehearsal.report.steps += [Step(name="up", seconds=2.0), Step(name="preview", seconds=1.0, problems=("not empty",))]
    document: dict[str, Any] = rehearsal.report.to_json()
    assert document["problems"] == ["preview: not empty"]
    assert document["seconds"] == 3.0


def test_the_cli_s_module_pins_a_version_and_every_hash_and_names_no_registry() -> None:
    module = REPOSITORY / "local" / "pulumi_cli"
    version = pinned_version()
    sums = (module / "go.sum").read_text()
    assert f"github.com/pulumi/pulumi/pkg/v3 {version} h1:" in sums
    assert "://" not in sums + (module / "go.mod").read_text()


def test_the_cli_on_path_is_taken_before_any_other(tmp_path: Path) -> None:
    program = tmp_path / "pulumi"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_cli(say=lambda _: None, path=str(tmp_path)) == program
    assert why_none(path=str(tmp_path)) is None


def test_without_a_cli_and_without_go_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.engine.cli._CACHE", tmp_path / "empty")
    assert "install the Pulumi CLI, or Go" in (why_none(path=str(tmp_path)) or "")
    with pytest.raises(NoCliError, match="neither pulumi nor go is on PATH"):
        find_cli(say=lambda _: None, path=str(tmp_path))


def test_a_stage_that_is_not_there_is_refused_before_a_cli_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(**_: object) -> Path:
        raise AssertionError("it may take five minutes to build one")

    monkeypatch.setattr("local.rehearse.find_cli", too_late)
    monkeypatch.setattr("local.rehearse.end_on_signals", lambda: None)
    done = CliRunner().invoke(rehearse, ["--stage", "nonsense", "--folder", str(tmp_path / "stage")])
    assert (done.exit_code, done.output.strip()) == (
        2,
        "Pulumi.nonsense.yaml is not there: no stage is described by it",
    )
    assert not (tmp_path / "stage").exists()
