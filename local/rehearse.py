"""`make rehearse`: a stage's own configuration, deployed to this machine by the real Pulumi engine, flipped, destroyed.

Exit codes: 0 nothing was lost and the preview after the flips is empty; 1 not so, or a step failed; 2 it cannot begin
(no such stage, no CLI, another rehearsal of the stage runs).
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import click

from local.engine.cli import NoCliError, find_cli
from local.engine.operations import Changes
from local.engine.rehearsal import Rehearsal, Report, Step, summary
from local.engine.stage import engine_stage
from local.engine.stage_copy import StageCopyError, copy_of
from local.processes import ProcessError
from local.progress import Progress
from local.session import reset_stage
from local.signals import end_on_signals
from local.stage_folder import REPOSITORY, StageFolder, StageInUseError, stage_folder

LOST, CANNOT_BEGIN = 1, 2
_MOST_NAMES = 12  # of one kind of change in a step: a first deploy has eighty


class _OnStderr(Progress):
    """Progress where standard output belongs to the report."""

    def say(self, text: str) -> None:
        click.echo(f"{time.time() - self.since:6.1f} s  {text}", err=True)
        self.note(text)


@click.command()
@click.option("--stage", default="dev", show_default=True, help="Stage whose Pulumi.<stage>.yaml is rehearsed.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON on standard output.")
@click.option("--folder", type=click.Path(path_type=Path), help="State folder, emptied first.")
def main(stage: str, *, as_json: bool, folder: Path | None) -> None:
    """Show what a deploy and the switches would do to STAGE, and that nothing is lost. AWS is never asked."""
    end_on_signals()
    kept = StageFolder(folder or stage_folder(f"rehearsal-{stage}"))
    log = kept.path / "logs" / "rehearsal.log"
    progress = _OnStderr(log=log)
    try:
        copy_of(REPOSITORY, stage=stage)  # before five minutes are spent on a CLI for it
        cli = find_cli(say=progress.say)
        reset_stage(kept, progress)
        with engine_stage(kept, stage=stage, cli=cli, progress=progress, log=log) as ready:
            progress.say("the platform is up; deploying")
            report = Rehearsal(ready, say=progress.say, clock=time.monotonic).run()
    except (NoCliError, StageCopyError, StageInUseError) as error:
        _fail(str(error), CANNOT_BEGIN)
    except ProcessError as error:
        _fail(f"{error}\nThe log is {log}", LOST)
    click.echo(json.dumps(report.to_json(), indent=2) if as_json else "\n".join(_lines(report)))
    sys.exit(LOST if report.problems else 0)


def _lines(report: Report) -> Iterator[str]:
    yield ""
    yield f"Rehearsal of stage {report.stage} on this machine"
    if report.overrides:
        yield "  Overridden in its copy of the stage's file (the file itself is as it was):"
        yield from (f"    {override}" for override in report.overrides)
    for step in report.steps:
        yield f"  {step.name:<12}{step.seconds:6.1f} s  {step.note or summary(step.changes)}"
        yield from (f"      {line}" for line in _changed(step.changes))
        yield from _problems(step)
    yield f"  {'together':<12}{report.seconds:6.1f} s"
    yield ""
    if report.problems:
        yield f"NOT SAFE: {len(report.problems)} problem{'s' if len(report.problems) > 1 else ''}, as said above"
    else:
        yield (
            "SAFE: bookings, tickets (byte for byte) and mails survived, the preview after the flips is empty, and "
            "destroy left nothing"
        )


def _changed(found: Changes) -> Iterator[str]:
    for sign, labels in (("+", found.created), ("~", found.updated), ("!", found.replaced), ("-", found.deleted)):
        shown = list(labels[:_MOST_NAMES])
        if len(labels) > _MOST_NAMES:
            shown.append(f"and {len(labels) - _MOST_NAMES} more")
        if shown:
            yield f"{sign} {', '.join(shown)}"


def _problems(step: Step) -> Iterator[str]:
    for problem in step.problems:
        first, *rest = problem.splitlines()
        yield f"      PROBLEM {first}"
        yield from (f"        {line}" for line in rest)


def _fail(text: str, exit_code: int) -> NoReturn:
    click.echo(text, err=True)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
