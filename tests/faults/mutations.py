"""Guards, taken out of a copy of an app one at a time: the guard's own tests must notice.

A test that stays green without what it is there for proves nothing. ``outcomes`` runs tests of this repository in a
process of their own, against packages copied to a folder that comes first on its path.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = {
    "minitickets_api": REPOSITORY / "apps/api/src/minitickets_api",
    "minitickets_contracts": REPOSITORY / "packages/contracts/src/minitickets_contracts",
    "minitickets_tickets": REPOSITORY / "apps/tickets/src/minitickets_tickets",
    "minitickets_worker": REPOSITORY / "apps/worker/src/minitickets_worker",
}
_RUN_SECONDS = 150.0
_REPORTER = "tests.faults.mutant_report"


class MutationError(RuntimeError):
    """The mutation cannot be made or judged; the message says what to mend in the table of mutations."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One piece of source, which must stand exactly once in ``file`` (``minitickets_worker/consumer.py``)."""

    file: str
    replace: str
    by: str

    @property
    def package(self) -> str:
        return self.file.partition("/")[0]


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A guard taken out by ``edits``, and the tests, by node id, each of which must fail without it.

    ``fixtures``: modules of tests/fixtures that the tests need, each after those that it imports. All of ``red`` are
    below one folder of the repository.
    """

    guard: str
    edits: tuple[Edit, ...]
    red: tuple[str, ...]
    fixtures: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The guard, as a test's id."""
        return self.guard.replace(" ", "-")


def copy_of(packages: Iterable[str], folder: Path, edits: Sequence[Edit] = ()) -> Path:
    """``folder`` with copies of ``packages``, edited. MutationError if a piece of source is not there just once."""
    for package in packages:
        shutil.copytree(PACKAGES[package], folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in edits:
        file = folder / edit.file
        text = file.read_text() if file.exists() else ""
        if (times := text.count(edit.replace)) != 1:
            raise MutationError(
                f"{edit.file} holds {times} times, not once: {edit.replace!r}. The guard was moved or reworded: name "
                "it anew, so that its test is still known to notice when it is gone"
            )
        file.write_text(text.replace(edit.replace, edit.by))
    return folder


def outcomes(tests: Iterable[str], *, copies: Path, fixtures: Iterable[str] = ()) -> Mapping[str, str]:
    """What became of each test against ``copies``: ``passed``, ``failed`` (it noticed), ``error: …`` or ``skipped``.

    A parametrised test that is named without its parameters counts once, and noticed if one of them did.
    MutationError with the run's output if one of ``tests`` did not run, or ran on something else than ``copies``.
    """
    named = tuple(dict.fromkeys(tests))
    report = copies / "report.json"
    plugins = (_REPORTER, *(f"tests.fixtures.{module}" for module in dict.fromkeys(fixtures)))
    command = [
        sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-o", f"cache_dir={copies / 'cache'}",
        # Without the root's conftest, which loads everybody's fixtures: three seconds a run.
        f"--confcutdir={named[0].partition('/')[0]}", *(f"-p{plugin}" for plugin in plugins), *named,
    ]  # fmt: skip
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(copies), str(REPOSITORY)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "MUTANT_FOLDER": str(copies),
        "MUTANT_REPORT": str(report),
    }
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=_RUN_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise MutationError(f"{', '.join(named)}: no end after {_RUN_SECONDS:g} s") from None
    output = f"{done.stdout}\n{done.stderr}".strip()
    if not report.exists():
        raise MutationError(f"pytest ended with {done.returncode} before any test\n{output}")
    found: dict[str, str] = json.loads(report.read_text())
    result: dict[str, str] = {}
    for test in named:
        seen = [outcome for node, outcome in found.items() if node == test or node.startswith(f"{test}[")]
        if not seen:
            raise MutationError(f"{test} did not run (pytest ended with {done.returncode})\n{output}")
        result[test] = min(seen, key=_weight)
    return result


def _weight(outcome: str) -> int:
    return ("failed", "error", "passed", "skipped").index(outcome.partition(":")[0])
