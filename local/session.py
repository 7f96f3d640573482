"""A platform with the program applied to it, for as long as somebody needs it: what `make demo` and `make local` open.

The platform and the driver are processes of their own, started at the same time: half of the driver's time is imports.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.balancer import as_served
from local.children import Children
from local.control_client import ControlClient
from local.processes import Child, ProcessError, start
from local.progress import Progress
from local.stage_folder import REPOSITORY, StageFolder, read_json

_COME_UP_SECONDS = 60.0
_APPLY_SECONDS = 180.0
# The API's drain (30 s), then the servers (20 s): more than any of them needs.
_GO_DOWN_SECONDS = 60.0
_OUTPUTS_FILE = "stack-outputs.json"


class SessionError(RuntimeError):
    """The platform or the program did not come up, and has said why. ``exit_code`` is the one to end with."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


@dataclass(frozen=True, kw_only=True)
class Session:
    """A platform that is up, and the outputs of the program's stack."""

    folder: StageFolder
    client: ControlClient
    supervisor: Child
    outputs: Mapping[str, Any]
    mailbox_url: str
    endpoint: str

    @property
    def api_url(self) -> str | None:
        """Where the API answers, without a final slash; None with compute off."""
        url: str | None = self.outputs.get("apiUrl")
        return as_served(url) if url else None

    def run_task(self, command: list[str], *, environment: Mapping[str, str], seconds: float = 60) -> str:
        """Run a one-off task of the API; its output. ProcessError with the output if it does not exit with 0."""
        done = self.client.post(
            "/tasks", {"command": command, "environment": dict(environment), "seconds": seconds}, seconds=seconds + 30
        )
        if done["exitCode"] != 0:
            raise ProcessError(f"{' '.join(command)}: exit code {done['exitCode']}\n{done['output']}")
        return str(done["output"])


@contextlib.contextmanager
def running_platform(
    folder: StageFolder,
    *,
    stage: str,
    config: Mapping[str, str],
    progress: Progress,
    root: Path = REPOSITORY,
    log: Path | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Session]:
    """Have the stage's platform up, with the program applied, while in the block; then everything ends.

    ``config`` is set over the stage's file. Lines of the two processes go to ``log`` (None: standard output).
    ``meanwhile`` is called once both have started, in a thread that takes only what processor they leave. SessionError
    if one of them does not come up.
    """
    arguments = ["--stage", stage, "--folder", str(folder.path), "--since", repr(progress.since)]
    supervisor = start("platform", python_command("local.supervisor", *arguments), env=child_environment(), log=log)
    driver: Child | None = None
    client: ControlClient | None = None
    try:
        settings = [f"--set={key}={value}" for key, value in config.items()]
        driver = start(
            "driver",
            python_command("local.drivers.mock", *arguments, "--root", str(root), *settings),
            env=child_environment(),
            log=log,
        )
        _in_idle_time(meanwhile)
        client = _client(folder, supervisor)
        yield _session(folder, client, supervisor, driver)
    finally:
        if driver is not None:
            driver.stop()
        if client is not None:
            client.close()
        stop_supervisor(supervisor, progress)


def reset_stage(folder: StageFolder, progress: Progress) -> None:
    """Delete all that a stage keeps, after ending what a crash may have left running; StageInUseError while it runs."""
    with folder.emptied():
        Children(folder.path / "children.json", say=progress.say).end_leftovers()


def _in_idle_time(work: Callable[[], object]) -> None:
    def run() -> None:
        if sys.platform == "linux":  # elsewhere the platform only comes up a little later
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        work()

    threading.Thread(target=run, name="meanwhile", daemon=True).start()


def _client(folder: StageFolder, supervisor: Child) -> ControlClient:
    try:
        return ControlClient.of(folder, seconds=_COME_UP_SECONDS, supervisor=supervisor)
    except ProcessError as error:
        raise _did_not_come_up(supervisor, error) from error


def _session(folder: StageFolder, client: ControlClient, supervisor: Child, driver: Child) -> Session:
    try:
        client.wait_until_ready(seconds=_COME_UP_SECONDS)
    except ProcessError as error:
        raise _did_not_come_up(supervisor, error) from error
    applied = _wait_for_driver(driver, supervisor)
    if applied != 0:
        raise SessionError("the program is not applied", applied)
    running = folder.running() or {}
    return Session(
        folder=folder,
        client=client,
        supervisor=supervisor,
        outputs=read_json(folder.path / _OUTPUTS_FILE),
        mailbox_url=running["mailbox"],
        endpoint=running["endpoint"],
    )


def _did_not_come_up(supervisor: Child, error: ProcessError) -> SessionError:
    # It has said why, and ends by itself.
    return SessionError(f"the platform did not come up: {error}", _exit_code_soon(supervisor) or 1)


def _exit_code_soon(child: Child) -> int | None:
    try:
        return child.wait(_GO_DOWN_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _wait_for_driver(driver: Child, supervisor: Child) -> int:
    end = time.monotonic() + _APPLY_SECONDS
    while (exit_code := driver.exit_code()) is None:
        if supervisor.exit_code() is not None:
            raise SessionError("the platform ended while the program was applied", supervisor.exit_code() or 1)
        if time.monotonic() > end:
            raise SessionError(f"the program is not applied after {_APPLY_SECONDS:g} s", 1)
        time.sleep(0.01)
    return exit_code


def stop_supervisor(supervisor: Child, progress: Progress) -> None:
    """End a platform, whole; says so if it had to be killed."""
    if supervisor.exit_code() is None and supervisor.stop(_GO_DOWN_SECONDS) < 0:
        progress.say(f"the platform did not go down within {_GO_DOWN_SECONDS:g} s and was killed")


def python_command(module: str, *arguments: str) -> list[str]:
    """A module of ours under this interpreter."""
    return [sys.executable, "-m", module, *arguments]


def child_environment() -> dict[str, str]:
    """What our processes get. Nothing of the user's AWS settings may reach what acts on the emulator."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C.UTF-8",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
