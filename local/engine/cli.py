"""The Pulumi CLI: the one on PATH, or one built once from a pinned Go module. ``python -m local.engine.cli`` finds it.

No package registry ships its binary, but the Go module proxy serves its source: ``local/pulumi_cli/`` pins it, hashes
of all that it is made of included.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from local.stage_folder import REPOSITORY

MODULE = REPOSITORY / "local" / "pulumi_cli"
_CACHE = REPOSITORY / ".local" / "cache" / "pulumi"
_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
_VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"

# 30 s of downloads and 4 minutes of compiling were measured on 2 cores.
_BUILD_SECONDS = 1800


class NoCliError(RuntimeError):
    """There is no CLI and none can be built here; the message says what to install."""


def pinned_version(module: Path = MODULE) -> str:
    """The version that ``go.mod`` asks for, such as ``v3.274.1``."""
    found = re.search(r"^require github\.com/pulumi/pulumi/pkg/v3 (v\S+)$", (module / "go.mod").read_text(), re.M)
    if found is None:
        raise NoCliError(f"{module / 'go.mod'} names no version of Pulumi")
    return found[1]


def why_none(*, path: str | None = None) -> str | None:
    """Why there is neither a CLI nor a way to build one; None if there is. Builds nothing."""
    if shutil.which("pulumi", path=path) or _built().exists() or shutil.which("go", path=path):
        return None
    return "neither pulumi nor go is on PATH: install the Pulumi CLI, or Go, from which `make rehearse` builds it"


def find_cli(*, say: Callable[[str], None], path: str | None = None) -> Path:
    """The CLI on ``path`` (None: this process's PATH), the one built before, or one built now. NoCliError if none."""
    on_path = shutil.which("pulumi", path=path)
    if on_path is not None:
        return Path(on_path)
    if not _built().exists():
        reason = why_none(path=path)
        if reason is not None:
            raise NoCliError(reason)
        _build(say)
    return _built()


def _built() -> Path:
    return _CACHE / pinned_version() / "pulumi"


def _build(say: Callable[[str], None]) -> None:
    target = _built()
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not target.exists():
                _compile(target, say)
            return
        say("another process builds the Pulumi CLI: waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)
    if not target.exists():
        raise NoCliError("the build of the Pulumi CLI in another process failed; what it said is there")


def _compile(target: Path, say: Callable[[str], None]) -> None:
    version = pinned_version()
    say(f"building the Pulumi CLI {version} from its source, once on this machine: about 5 minutes on 2 cores")
    draft = target.with_name(f"pulumi.{os.getpid()}.draft")
    command = [
        *("go", "build", "-mod=readonly", "-buildvcs=false"),
        *("-ldflags", f"-s -w -X {_VERSION_VARIABLE}={version}", "-o", str(draft), _PACKAGE),
    ]
    try:
        done = subprocess.run(
            command, cwd=MODULE, capture_output=True, text=True, errors="replace", timeout=_BUILD_SECONDS, check=False
        )
        if done.returncode != 0:
            raise NoCliError(f"go could not build the Pulumi CLI {version}:\n{_end(done.stderr)}")
        draft.replace(target)
    except subprocess.TimeoutExpired as error:
        raise NoCliError(f"go did not build the Pulumi CLI within {_BUILD_SECONDS // 60} minutes") from error
    finally:
        draft.unlink(missing_ok=True)


def _end(text: str, lines: int = 15) -> str:
    return "\n".join(text.splitlines()[-lines:])


if __name__ == "__main__":
    try:
        print(find_cli(say=lambda text: print(text, file=sys.stderr)))
    except NoCliError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
