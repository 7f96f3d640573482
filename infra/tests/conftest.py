"""Recordings of the whole program, for every test of this folder."""

import importlib.util
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol
from zipfile import ZipFile

import pytest

if TYPE_CHECKING:
    from tests.recording import Recording


class Record(Protocol):
    """Runs the program: configuration, and what its look-ups find (recording.Surroundings)."""

    def __call__(self, config: Mapping[str, str], *, stage: str = "dev", **found: Any) -> "Recording": ...


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with placeholders for what `make build` makes."""
    folder = tmp_path_factory.mktemp("dist")
    for app in ("worker", "tickets"):
        with ZipFile(folder / f"{app}.zip", "w") as archive:
            archive.writestr("placeholder.py", "")
    return folder


def _recording() -> ModuleType:
    """The neighbouring module. Tests of this folder belong to no package, so it is loaded by its path."""
    name = "infra_recording"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("recording.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def record_anew(artifacts: Path) -> Record:
    """Run the whole program under recording mocks."""
    return partial(_recording().record, artifacts=artifacts)


@pytest.fixture(scope="session")
def record(record_anew: Record) -> Record:
    """The same, once for each configuration: a recording is only read, and a run costs half a second."""
    recordings: dict[str, Recording] = {}

    def recall(config: Mapping[str, str], *, stage: str = "dev", **found: Any) -> "Recording":
        key = repr((sorted(config.items()), stage, sorted(found.items())))
        if key not in recordings:
            recordings[key] = record_anew(config, stage=stage, **found)
        return recordings[key]

    return recall


@pytest.fixture(scope="session")
def program_failed() -> type[Exception]:
    """What ``record`` raises when the program ends itself; it carries ``error``, ``resources`` and ``lookups``."""
    error: type[Exception] = _recording().ProgramFailedError
    return error


@pytest.fixture(scope="session")
def both_on(record: Record) -> "Recording":
    """Compute and data on."""
    return record({"computeEnabled": "true", "dataEnabled": "true"})


@pytest.fixture(scope="session")
def compute_off(record: Record) -> "Recording":
    """Data on, compute off."""
    return record({"computeEnabled": "false", "dataEnabled": "true"})


@pytest.fixture(scope="session")
def both_off(record: Record) -> "Recording":
    """Both off."""
    return record({"computeEnabled": "false", "dataEnabled": "false"})
