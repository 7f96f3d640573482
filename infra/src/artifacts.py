"""The zips that `make build` leaves in ``dist/``."""

from dataclasses import dataclass
from pathlib import Path

import pulumi

# infra/src/artifacts.py → the project's folder. A relative path would mean one thing to the engine, which runs the
# program in infra/, and another to a program that runs inside a test or the local platform.
PROJECT_ROOT = Path(__file__).resolve().parents[2]


class ArtifactError(pulumi.RunError):
    """A zip is not there."""


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    """The code of each function."""

    worker: pulumi.FileArchive
    tickets: pulumi.FileArchive


def find_artifacts(folder: str) -> Artifacts:
    """The zips in ``folder``; a relative one starts at the project's folder. Raises ArtifactError if one is missing."""
    return Artifacts(worker=_archive(folder, "worker"), tickets=_archive(folder, "tickets"))


def _archive(folder: str, app: str) -> pulumi.FileArchive:
    path = PROJECT_ROOT / folder / f"{app}.zip"
    if not path.is_file():
        raise ArtifactError(f"{path} is not there: run `make build` first")
    return pulumi.FileArchive(str(path))
