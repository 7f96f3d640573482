"""A pytest plugin for the process that runs a mutant's tests: tells each outcome, and that the mutant is what ran."""

import json
import os
import sys
from pathlib import Path

import pytest

_SEEN: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """``failed`` is a test that noticed by a line of its own file; all else that goes wrong is an ``error``."""
    before = _SEEN.get(report.nodeid)
    if report.when == "call" and not report.failed:
        _SEEN[report.nodeid] = report.outcome
    elif report.when == "call":
        crash = getattr(report.longrepr, "reprcrash", None)
        noticed = crash is not None and Path(crash.path).name.startswith("test_")
        _SEEN[report.nodeid] = "failed" if noticed else f"error: {report.longreprtext[-500:]}"
    elif report.failed and before != "failed":
        _SEEN[report.nodeid] = f"error: {report.longreprtext[-500:]}"
    elif report.skipped:
        _SEEN[report.nodeid] = "skipped"


def pytest_sessionfinish(session: pytest.Session) -> None:
    folder = Path(os.environ["MUTANT_FOLDER"])
    for package in (entry.name for entry in folder.iterdir() if (entry / "__init__.py").exists()):
        module = sys.modules.get(package)
        if module is None or module.__file__ is None or folder not in Path(module.__file__).parents:
            raise pytest.UsageError(f"{package} was not imported from its copy in {folder}")
    Path(os.environ["MUTANT_REPORT"]).write_text(json.dumps(_SEEN))
