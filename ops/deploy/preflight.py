"""What must be there before a stage is touched. Each missing thing is one Refusal that says how to get it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ops.aws_account import AwsAccount
from ops.deploy.database import Databases
from ops.deploy.import_ids import Finder
from ops.pulumi_cli import PulumiCli
from ops.refusal import Refusal
from ops.stage_file import StageFile, find_stage_file

ARCHIVES = ("dist/worker.zip", "dist/tickets.zip")


class Account(Databases, Finder, Protocol):
    """What deploying asks of AWS beside what Pulumi does."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A stage that can be worked on: its file, the CLI, its account and who we are there."""

    project: Path
    file: StageFile
    cli: PulumiCli
    aws: Account
    account: str


def logged_in(*, project: Path, stage: str, environment: Mapping[str, str]) -> PulumiCli:
    """The CLI for a stage that has a file, once it is logged in. Changes nothing, and asks nothing of AWS."""
    find_stage_file(project, stage)
    cli = PulumiCli(project=project, stage=stage, environment=environment)
    cli.user()
    return cli


def make_ready(*, project: Path, stage: str, environment: Mapping[str, str], runs_program: bool) -> Ready:
    """Check in the order of what costs least: stage file, CLI, artifacts, login, credentials. Changes nothing."""
    file = find_stage_file(project, stage)
    cli = PulumiCli(project=project, stage=stage, environment=environment)
    if runs_program:
        missing = [archive for archive in ARCHIVES if not (project / archive).is_file()]
        if missing:
            raise Refusal(f"No {' and no '.join(missing)}: run make build")
    cli.user()
    settings = file.settings()
    aws = AwsAccount(region=settings.region, profile=settings.profile)
    return Ready(project=project, file=file, cli=cli, aws=aws, account=aws.number())


def make_stack(ready: Ready) -> None:
    """Make the stage's stack in the backend. Of what Pulumi writes into the stage's file, only the lines stay that say
    how secrets are encrypted: it would also drop blanks and quote the switches."""
    before = ready.file.read()
    ready.cli.make_stack()
    after = ready.file.read()
    if after == before:
        return
    kept = [
        line
        for line in after.splitlines(keepends=True)
        if line.startswith((b"encryptionsalt:", b"encryptedkey:", b"secretsprovider:"))
        and line.split(b":")[0] + b":" not in before
    ]
    end = b"" if before.endswith(b"\n") or not before else b"\n"
    ready.file.write(before + end + b"".join(kept))
