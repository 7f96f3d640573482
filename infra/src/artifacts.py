"""The zips that `make build` leaves in ``dist/``."""

from pathlib import Path

import pulumi

# infra/src/artifacts.py → the project's folder. A relative path would mean one thing to the engine, which runs the
# program in infra/, and another to a program that runs inside a test or the local platform.
PROJECT_ROOT = Path(__file__).resolve().parents[2]


class ArtifactError(pulumi.RunError):
    """A zip is not there."""


def function_archive(app: str, *, folder: str) -> pulumi.FileArchive:
    """The code of a function: ``<folder>/<app>.zip``; a relative ``folder`` starts at the project's folder.

    Raises ArtifactError if it has not been built.
    """
    path = PROJECT_ROOT / folder / f"{app}.zip"
    if not path.is_file():
        raise ArtifactError(f"{path} is not there: run `make build` first")
    return pulumi.FileArchive(str(path))
