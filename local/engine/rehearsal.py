"""What a deploy and the flips do to a stage with bookings in it, step by step, and whether anything was lost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from local.emulator import Clients
from local.engine.guests import Guest, Held, NotServedError, Stored, book, held_by, lost, open_event, stored_in
from local.engine.operations import Changes, changes
from local.engine.stage import EngineStage
from local.engine.stage_copy import Override
from local.processes import ProcessError
from local.session import Session

_SEATS = 3
_OUTPUT_LINES = 40
_NO_CHANGES = changes([])


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step that has ended. ``problems`` is empty if it did what it should."""

    name: str
    seconds: float
    changes: Changes = _NO_CHANGES
    note: str = ""
    problems: tuple[str, ...] = ()


@dataclass
class Report:
    """A rehearsal: what was overridden, what each step did, what was lost."""

    stage: str
    overrides: Sequence[Override]
    steps: list[Step] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """Everything that went wrong, with the step that it was noticed after."""
        return [f"{step.name}: {problem}" for step in self.steps for problem in step.problems]

    @property
    def seconds(self) -> float:
        """How long the steps took together."""
        return sum(step.seconds for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """All of it, for a program."""
        return {
            "stage": self.stage,
            "ok": not self.problems,
            "seconds": round(self.seconds, 1),
            "overrides": [vars(override) for override in self.overrides],
            "steps": [
                {
                    "name": step.name,
                    "seconds": round(step.seconds, 1),
                    **{what: list(labels) for what, labels in vars(step.changes).items()},
                    "note": step.note,
                    "problems": list(step.problems),
                }
                for step in self.steps
            ],
            "problems": self.problems,
        }


class StepFailedError(RuntimeError):
    """A step did not end well, and the next ones make no sense."""


class Rehearsal:
    """One run on a stage that nothing is deployed to yet. ``clock`` counts seconds."""

    def __init__(self, stage: EngineStage, *, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self.report = Report(stage=stage.stage, overrides=stage.overrides)
        self._stage = stage
        self._say = say
        self._clock = clock
        self._stored: Stored | None = None
        self._held: Held | None = None
        self._guest: Guest | None = None
        self._event_id = ""

    def run(self) -> Report:
        """Every step, until one fails; the report."""
        try:
            for step in self._steps():
                step()
                last = self.report.steps[-1]
                self._say(f"{last.name}: {last.seconds:.1f} s, {last.note or summary(last.changes)}")
        except StepFailedError:
            self._say(f"{self.report.steps[-1].name}: failed")
        return self.report

    def _steps(self) -> Sequence[Callable[[], None]]:
        flips = [partial(self._deploy, flip) for flip in ("compute-off", "data-off", "data-on", "compute-on")]
        return [
            partial(self._deploy, "up"),
            partial(self._do, "book", self._first_booking),
            *flips,
            partial(self._do, "book again", self._second_booking),
            partial(self._do, "preview", self._preview),
            partial(self._deploy, "destroy"),
        ]

    def _deploy(self, command: str) -> None:
        run = self._stage.deploy(command)
        problems: list[str] = []
        if run.exit_code != 0:
            end = "\n".join(run.output.strip().splitlines()[-_OUTPUT_LINES:])
            problems.append(f"make {command} ended with exit code {run.exit_code}:\n{end}")
        elif command == "destroy":
            problems += self._left_over()
        elif self._stored is not None:
            problems += lost(self._stored, stored_in(self._stage.session()))
        step = Step(name=command, seconds=run.seconds, changes=run.changes, problems=tuple(problems))
        self._end(step, goes_on=run.exit_code == 0)

    def _do(self, name: str, work: Callable[[], tuple[str, list[str]]]) -> None:
        """A step that deploys nothing: its note and its problems come from ``work``."""
        began = self._clock()
        before = self._stage.operations()
        goes_on = True
        try:
            note, problems = work()
        except (NotServedError, ProcessError) as error:
            note, problems, goes_on = "", [str(error)], False
        self._end(
            Step(
                name=name,
                seconds=self._clock() - began,
                changes=self._stage.changes_since(before),
                note=note,
                problems=tuple(problems),
            ),
            goes_on=goes_on,
        )

    def _end(self, step: Step, *, goes_on: bool) -> None:
        self.report.steps.append(step)
        if not goes_on:
            raise StepFailedError(step.name)

    def _first_booking(self) -> tuple[str, list[str]]:
        session = self._stage.session()
        self._event_id = open_event(session)
        self._guest = book(session, event_id=self._event_id, number=1, seats=_SEATS)
        self._remember(session)
        return f"a guest booked {_SEATS} seats; mail and tickets came", []

    def _second_booking(self) -> tuple[str, list[str]]:
        session = self._stage.session()
        problems = self._compare(session)
        book(session, event_id=self._event_id, number=2, seats=_SEATS)
        problems += [problem for problem in self._compare(session) if problem not in problems]
        self._remember(session)
        kept = "the first guest's booking, tickets and mail are as they were" if not problems else "see the problems"
        return f"{kept}; a second guest booked {_SEATS} seats of the same event", problems

    def _compare(self, session: Session) -> list[str]:
        if self._guest is None or self._held is None or self._stored is None:
            raise StepFailedError("nothing was booked")
        return lost(self._held, held_by(session, self._guest, number=1)) + lost(self._stored, stored_in(session))

    def _remember(self, session: Session) -> None:
        if self._guest is not None:
            self._held = held_by(session, self._guest, number=1)
        self._stored = stored_in(session)

    def _preview(self) -> tuple[str, list[str]]:
        plan = self._stage.plan()
        if not plan.steps:
            return "nothing would change", []
        return "", [f"a preview after the flips is not empty: {line.strip()}" for line in plan.lines()[:-1]]

    def _left_over(self) -> list[str]:
        """What a destroy should have taken away."""
        aws = Clients(self._stage.endpoint)
        try:
            snapshots = aws("rds").describe_db_snapshots()["DBSnapshots"]
        finally:
            aws.close()
        left = self._stage.remaining() + [f"snapshot {found['DBSnapshotIdentifier']}" for found in snapshots]
        return [f"{thing} is still there" for thing in left]


def summary(found: Changes) -> str:
    """How many resources were created, changed, replaced, deleted."""
    counts: Mapping[str, tuple[str, ...]] = {
        "created": found.created,
        "changed": found.updated,
        "replaced": found.replaced,
        "deleted": found.deleted,
    }
    return ", ".join(f"{len(labels)} {what}" for what, labels in counts.items() if labels) or "nothing changed"
