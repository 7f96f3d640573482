"""``python -m ops.deploy <command> --stage <stage>``; the Makefile has a target for each command."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import click

from ops.deploy import switches
from ops.deploy.console import Console
from ops.deploy.deployment import Deployment
from ops.deploy.preflight import Ready, logged_in, make_ready
from ops.exits import exits
from ops.pulumi_cli import RESTORE_FROM
from ops.refusal import Refusal
from ops.stage_file import StageSettings, find_stage_file

_PROJECT = Path(__file__).resolve().parents[2]

_stage = click.option("--stage", envvar="STAGE", required=True, help="Name of the stage, as in Pulumi.<stage>.yaml.")
_project = click.option(
    "--project",
    default=_PROJECT,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of Pulumi.yaml.",
)


@click.group()
def main() -> None:
    """Deploy a stage to AWS, or switch off what costs money while nobody books."""


@main.command()
@_stage
@_project
@click.option("--diff", "difference", is_flag=True, help="Show every property that changes, too.")
@exits
def preview(stage: str, project: Path, *, difference: bool) -> None:
    """Show what up would do, and refuse what it would refuse."""
    ready = make_ready(project=project, stage=stage, environment=os.environ, runs_program=True)
    _deployment(ready).preview(difference=difference)


@main.command()
@_stage
@_project
@exits
def up(stage: str, project: Path) -> None:
    """Preview, ask, apply the stage's file."""
    ready = make_ready(project=project, stage=stage, environment=os.environ, runs_program=True)
    _deployment(ready).up({})


@main.command()
@_stage
@_project
@exits
def destroy(stage: str, project: Path) -> None:
    """Delete the stage with everything in it."""
    _require_no_restore("destroy")
    ready = make_ready(project=project, stage=stage, environment=os.environ, runs_program=False)
    _deployment(ready).destroy()


@main.command()
@_stage
@_project
@exits
def outputs(stage: str, project: Path) -> None:
    """Print the stack's outputs as JSON."""
    cli = logged_in(project=project, stage=stage, environment=os.environ)
    click.echo(json.dumps(cli.outputs(), indent=2))


def _turn(name: str, changes: Callable[..., switches.Changes], text: str, *, restores: bool = False) -> None:
    @main.command(name=name, help=text)
    @_stage
    @_project
    @exits
    def turn(stage: str, project: Path) -> None:
        if not restores:
            _require_no_restore(name)
        # What the file alone can answer is refused before anything else is looked at.
        settings: StageSettings = find_stage_file(project, stage).settings()
        wanted = changes(settings, stage=stage)
        ready = make_ready(project=project, stage=stage, environment=os.environ, runs_program=True)
        _deployment(ready).up(wanted)


_turn("compute-on", switches.compute_on, "Bring containers and load balancer up.")
_turn("compute-off", switches.compute_off, "Take containers and load balancer away.")
_turn("data-on", switches.data_on, "Bring the database back from its final snapshot, and the cache.", restores=True)
_turn("data-off", switches.data_off, "Take database and cache away; a final snapshot keeps every booking.")
_turn("sleep", switches.sleep, "Both off.")
_turn("wake", switches.wake, "Both on.", restores=True)


def _deployment(ready: Ready) -> Deployment:
    return Deployment(
        ready,
        console=Console(os.environ),
        restore_from=os.environ.get(RESTORE_FROM) or None,
        unlock=os.environ.get("UNLOCK", "") == "1",
    )


def _require_no_restore(command: str) -> None:
    wish = os.environ.get(RESTORE_FROM)
    if wish:
        raise Refusal(
            f"{RESTORE_FROM}={wish} has no meaning for {command}: it is for make wake, make data-on and make up"
        )


if __name__ == "__main__":
    main(prog_name="python -m ops.deploy")
