"""A project with one stage, a `pulumi` that plays canned answers, an AWS account of fakes."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ops.aws_account import LiveDatabase, Snapshot
from ops.deploy.console import Console
from ops.deploy.deployment import Deployment
from ops.deploy.preflight import Ready
from ops.pulumi_cli import PulumiCli
from ops.refusal import Refusal
from ops.stage_file import StageFile

STAGE_FILE = """\
# The cheapest stage.
config:
  aws:region: eu-west-1   # Ireland
  # The two switches.
  minitickets:computeEnabled: true
  minitickets:dataEnabled: true  # its snapshot costs little
  minitickets:sender: tickets@example.org
  minitickets:deletionProtection: false
  minitickets:allowedCidrs: []
"""
PROJECT_FILE = """\
name: minitickets
runtime: python
config:
  deletionProtection: {type: boolean, default: true}
"""

Answer = dict[str, Any]


def step(operation: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A step of a preview, as `pulumi preview --json` writes it."""
    return {"op": operation, "urn": f"urn:pulumi:dev::minitickets::{kind}::{name}", "detailedDiff": None, **more}


def preview(*steps: Mapping[str, Any], **more: Any) -> str:
    """The document of a preview."""
    return json.dumps({"config": {}, "steps": list(steps), "changeSummary": {}, **more})


def resource(kind: str, logical_name: str, /, **inputs: Any) -> dict[str, Any]:
    """A resource of a state."""
    return {
        "urn": f"urn:pulumi:dev::minitickets::{kind}::{logical_name}",
        "type": kind,
        "custom": True,
        "inputs": inputs,
    }


def state(*resources: Mapping[str, Any], pending: Sequence[Mapping[str, Any]] = ()) -> str:
    """The document of a state; ``pending`` are creates that were cut off."""
    operations = [{"resource": found, "type": "creating"} for found in pending]
    return json.dumps({"version": 3, "deployment": {"resources": list(resources), "pending_operations": operations}})


class StubProgram:
    """A program on PATH with canned answers."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / f"stub-{name}"
        self.folder.mkdir()
        self.name = name
        self._answers: dict[str, list[Answer]] = {}
        program = self.folder / name
        source = Path(__file__).with_name("stub_program.py").read_text()
        program.write_text(f"#!{sys.executable} -S\n{source}")
        program.chmod(0o755)
        self.answers()

    def answers(self, **given: Answer | Sequence[Answer]) -> None:
        """Set what it answers to a command; underscores in a name stand for blanks."""
        for command, answer in given.items():
            self.answers_to(command.replace("_", " "), *([answer] if isinstance(answer, dict) else answer))
        (self.folder / "answers.json").write_text(json.dumps(self._answers))

    def answers_to(self, command: str, *answers: Answer) -> None:
        """Set what it answers, one after the other, to a command line that begins so."""
        self._answers[command] = list(answers)
        (self.folder / "answers.json").write_text(json.dumps(self._answers))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call so far, as stub_program.py wrote it down."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def commands(self) -> list[str]:
        """The commands called, without their options."""
        return [
            " ".join(part for part in call["arguments"] if not part.startswith("-")).removesuffix(" dev")
            for call in self.calls
        ]

    def call(self, command: str) -> dict[str, Any]:
        """The first call of a command."""
        return next(call for call in self.calls if " ".join(call["arguments"]).startswith(command))


@dataclass
class FakeAws:
    """An account with at most one database; what it deletes stands in ``deleted``."""

    live: LiveDatabase | None = None
    kept: list[Snapshot] = field(default_factory=list)
    remembered: frozenset[str] | None = frozenset()
    found: dict[str, list[str]] = field(default_factory=dict)  # ids of what look-ups find, by type
    deleted: list[str] = field(default_factory=list)

    def database(self, identifier: str) -> LiveDatabase | None:
        assert identifier == "minitickets-dev-db"
        return self.live

    def snapshots(self, identifier: str) -> list[Snapshot]:
        assert identifier == "minitickets-dev-db"
        return list(self.kept)

    def snapshot(self, name: str) -> Snapshot | None:
        return next((found for found in self.kept if found.name == name), None)

    def delete_snapshot(self, name: str) -> None:
        self.kept = [found for found in self.kept if found.name != name]
        self.deleted.append(name)

    def remembered_snapshots(self, parameter: str) -> frozenset[str] | None:
        assert parameter == "/minitickets-dev/database-life"
        return self.remembered

    def candidates(self, kind: str, inputs: Mapping[str, Any]) -> list[str] | None:
        assert inputs is not None
        return self.found.get(kind)


def final_snapshots(count: int) -> list[Snapshot]:
    """Final snapshots of stage dev, oldest first, a day apart: ``minitickets-dev-db-final-1`` and so on."""
    first = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Snapshot(name=f"minitickets-dev-db-final-{number}", status="available", made=first + timedelta(days=number))
        for number in range(1, count + 1)
    ]


class ScriptedConsole(Console):
    """A terminal on which someone answers as told; what was said stands in ``said``."""

    def __init__(self, *, agrees: bool = True, types: str = "") -> None:
        super().__init__({})
        self.said: list[str] = []
        self.questions: list[str] = []
        self._answer = agrees
        self._typed = types

    def say(self, text: str) -> None:
        self.said.append(text)

    def agrees(self, question: str) -> bool:
        self.questions.append(question)
        return self._answer

    def require_typed(self, word: str, question: str) -> bool:
        self.questions.append(question)
        return self._typed == word


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Stage dev of a project of its own, its stub of Pulumi and its account."""

    project: Path
    file: StageFile
    pulumi: StubProgram
    aws: FakeAws
    environment: Mapping[str, str]

    def deployment(
        self, *, console: Console | None = None, restore_from: str | None = None, unlock: bool = False
    ) -> Deployment:
        """A deployment of it, on a terminal where everything is agreed to unless another is given."""
        cli = PulumiCli(project=self.project, stage="dev", environment=self.environment)
        ready = Ready(project=self.project, file=self.file, cli=cli, aws=self.aws, account="123456789012")
        return Deployment(ready, console=console or ScriptedConsole(), restore_from=restore_from, unlock=unlock)

    def set(self, **settings: bool | str | None) -> None:
        """Change settings of the stage file."""
        self.file.write(self.file.changed(settings))

    def refuses(self, action: Any, match: str) -> Refusal:
        """Run ``action``, which must refuse with ``match`` and leave file, state and account as they were."""
        before = (self.file.read(), list(self.aws.kept), list(self.aws.deleted))
        with pytest.raises(Refusal, match=match) as refusal:
            action()
        assert (self.file.read(), list(self.aws.kept), list(self.aws.deleted)) == before
        changing = {"up", "destroy", "refresh", "cancel", "stack import"}
        assert not changing & set(self.pulumi.commands), "a refusal must change nothing"
        return refusal.value


def make_project(folder: Path) -> Path:
    """A folder with the project's file, stage dev and both archives."""
    (folder / "dist").mkdir(parents=True)
    for archive in ("worker", "tickets"):
        (folder / "dist" / f"{archive}.zip").write_bytes(b"PK")
    (folder / "Pulumi.yaml").write_text(PROJECT_FILE)
    (folder / "Pulumi.dev.yaml").write_text(STAGE_FILE)
    return folder


def willing(pulumi: StubProgram) -> StubProgram:
    """Answers under which everything goes well, in a stage with nothing in it."""
    pulumi.answers(
        whoami={"out": "engineer\n"},
        stack_export={"out": state()},
        stack_import={},
        preview={"out": preview(step("create", "aws:sqs/queue:Queue", "jobs"))},
        up={"out": "Updating (dev)\n"},
        refresh={},
        destroy={},
        cancel={},
        stack_output={"out": '{"repositoryUrl": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/minitickets-dev-api"}'},
    )
    return pulumi
