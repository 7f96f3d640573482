"""What the local platform costs this machine: CPU seconds of a demo and of a rehearsal, as ratios.

Seconds differ from machine to machine, and with what else runs there. So each run is divided by a calibration, a fixed
piece of work that is timed in the same process just before and after, and by the resources that the run made or
deleted. A ratio of 0.1 means: one resource costs a tenth of the calibration. Exit codes: 0 within the limits; 1 a ratio
is above its limit; 2 a run failed.
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from local.engine.cli import NoCliError, find_cli
from local.session import python_command
from local.stage_folder import REPOSITORY

_CALIBRATION_ROUNDS = 400_000
_LONGEST_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run: CPU seconds of all its processes, and the resources that it made, changed or deleted."""

    name: str
    seconds: float
    resources: int
    calibration: float
    limit: float

    @property
    def ratio(self) -> float:
        """Calibrations a resource."""
        return self.seconds / self.resources / self.calibration


def calibrate() -> float:
    """CPU seconds of the fixed piece of work: hashing, and what an interpreter does all day."""
    began = time.process_time()
    table: dict[str, int] = {}
    digest = b""
    for number in range(_CALIBRATION_ROUNDS):
        digest = hashlib.sha256(digest).digest()
        key = digest[:2].hex()
        table[key] = table.get(key, 0) + number
    return time.process_time() - began


def measure(
    name: str, argv: Sequence[str], *, count: Callable[[str], int], limit: float, path: str | None = None
) -> Measured:
    """Run a command to its end. RuntimeError with the end of its output if it fails."""
    before = calibrate()
    began = _children_seconds()
    environment = {**os.environ, **({"PATH": path} if path else {})}
    done = subprocess.run(
        argv, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=_LONGEST_SECONDS, check=False
    )
    seconds = _children_seconds() - began
    if done.returncode != 0:
        raise RuntimeError(f"{name} ended with exit code {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    calibration = (before + calibrate()) / 2
    return Measured(name=name, seconds=seconds, resources=count(done.stdout), calibration=calibration, limit=limit)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _of_rehearsal(output: str) -> int:
    """Resources that its steps created, changed or deleted."""
    steps = json.loads(output)["steps"]
    return sum(len(step[what]) for step in steps for what in ("created", "updated", "replaced", "deleted"))


def _of_demo(folder: Path) -> int:
    """Resources that the platform kept."""
    return len(json.loads((folder / "resources.json").read_text()))


@click.command()
def main() -> None:
    """Measure a demo and, where there is a CLI, a rehearsal of stage dev."""
    with tempfile.TemporaryDirectory(prefix="minitickets-bench-") as scratch:
        demo, rehearsal = Path(scratch) / "demo", Path(scratch) / "rehearsal"
        try:
            found = [
                measure(
                    "demo",
                    python_command("local", "demo", "--folder", str(demo)),
                    count=lambda _: _of_demo(demo),
                    limit=0.3,
                )
            ]
            cli = find_cli(say=click.echo)
            found.append(
                measure(
                    "rehearsal",
                    python_command("local.rehearse", "--stage", "dev", "--json", "--folder", str(rehearsal)),
                    count=_of_rehearsal,
                    limit=0.65,
                    path=os.pathsep.join((str(cli.parent), os.environ.get("PATH", ""))),
                )
            )
        except NoCliError as error:
            click.echo(f"rehearsal: not measured ({error})")
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            click.echo(error, err=True)
            sys.exit(2)
    for one in found:
        click.echo(
            f"{one.name:<10} {one.seconds:6.1f} CPU s, {one.resources:4d} resources, calibration "
            f"{one.calibration:.2f} s: ratio {one.ratio:.3f} (limit {one.limit})"
        )
    sys.exit(1 if any(one.ratio > one.limit for one in found) else 0)


if __name__ == "__main__":
    main()
