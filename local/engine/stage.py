"""A stage on this machine, deployed by the real Pulumi engine and by the same commands as to AWS (``ops.deploy``)."""

import os
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.control_client import ControlClient
from local.emulator import ACCOUNT, REGION, ROOT_SECRET_KEY
from local.engine.folder import EngineFolder
from local.engine.holds import Holds
from local.engine.operations import Changes, OperationLog, changes
from local.engine.stage_copy import Override, copy_of
from local.processes import Child, ProcessError, start, wait_until
from local.progress import Progress
from local.session import Session, child_environment, python_command, stop_supervisor
from local.stage_folder import REPOSITORY, StageFolder, read_json
from ops.deploy.plan import Plan, read_plan
from ops.pulumi_cli import PulumiCli

_COME_UP_SECONDS = 60.0
# A deploy of the whole stage takes 10 s here; on a machine that is busy with other things, a few times that.
_DEPLOY_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Run:
    """One deploy command that has ended. ``changes`` is what it did to the platform; ``output`` all that it said."""

    exit_code: int
    output: str
    seconds: float
    changes: Changes


class EngineStage:
    """A stage in a project of its own, with a state of its own, on a platform that runs."""

    def __init__(
        self,
        *,
        stage: str,
        folder: StageFolder,
        control: ControlClient,
        supervisor: Child,
        cli: Path,
        ports: Mapping[str, int],
        overrides: Sequence[Override],
    ) -> None:
        self.stage = stage
        self.folder = folder
        self.control = control
        self.overrides = overrides
        self._supervisor = supervisor
        self._served = EngineFolder(folder.path)
        self.project = self._served.project
        self._log = OperationLog(self._served.operations)
        self.holds = Holds(self._served.path)
        running = folder.running() or {}
        self.endpoint: str = running["endpoint"]
        self._mailbox: str = running["mailbox"]
        self.environment = _environment(self._served, stage=stage, endpoint=self.endpoint, port=ports["provider"])
        _write_wrapper(self._served, cli=cli, language_port=ports["language"])
        self._served.backend.mkdir(exist_ok=True)
        self.pulumi = PulumiCli(project=self.project, stage=stage, environment=self.environment)

    @property
    def file(self) -> Path:
        """The copy of the stage's file, which the commands change."""
        return self.project / f"Pulumi.{self.stage}.yaml"

    @property
    def state_file(self) -> Path:
        """The engine's state, as it lies on the disk."""
        [found] = self._served.backend.glob(f".pulumi/stacks/**/{self.stage}.json")
        return found

    def deploy(self, command: str, *, restore_from: str | None = None) -> Run:
        """Run a command of ``python -m ops.deploy`` (``up``, ``data-off``, ``destroy``, …), every question answered.

        ProcessError if it has not ended after ten minutes; a refusal or a failure is the run's exit code.
        """
        before = len(self._log.read())
        began = time.monotonic()
        with self.begin(command, restore_from=restore_from) as process:
            try:
                output, _ = process.communicate(timeout=_DEPLOY_SECONDS)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise ProcessError(f"{command}: not after {_DEPLOY_SECONDS:g} s") from error
                raise
        return Run(
            exit_code=process.returncode,
            output=output,
            seconds=time.monotonic() - began,
            changes=self.changes_since(before),
        )

    def begin(self, command: str, *, restore_from: str | None = None) -> "subprocess.Popen[str]":
        """Start a deploy command, in a process group of its own, so that whatever it starts can be ended with it. All
        that it says comes on its standard output."""
        environment = {**self.environment, **({"RESTORE_FROM": restore_from} if restore_from else {})}
        return subprocess.Popen(
            python_command("ops.deploy", command, "--stage", self.stage, "--project", str(self.project)),
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def operations(self) -> int:
        """How many verbs of the provider have changed something so far, to count from."""
        return len(self._log.read())

    def changes_since(self, count: int) -> Changes:
        """What the engine did to the platform after the first ``count`` operations."""
        return changes(self._log.read(skip=count))

    def plan(self) -> Plan:
        """What an ``up`` would do now. ProcessError with the engine's words if the preview fails."""
        answer = self.pulumi.preview()
        try:
            plan = read_plan(answer.output)
        except ValueError as error:
            raise ProcessError(f"the preview failed: {answer.reason}") from error
        if answer.code != 0 or plan.errors:
            raise ProcessError(f"the preview failed: {'; '.join(plan.errors) or answer.reason}")
        return plan

    def session(self) -> Session:
        """The running stage as what books in it takes it: its addresses, its stack's outputs of now."""
        return Session(
            folder=self.folder,
            client=self.control,
            supervisor=self._supervisor,
            outputs=self.pulumi.outputs(),
            mailbox_url=self._mailbox,
            endpoint=self.endpoint,
        )

    def resources(self) -> list[str]:
        """What exists on the platform, ``type name`` each."""
        return [f"{found['type']} {found['name']}" for found in self.control.get("/resources")]

    def remaining(self) -> list[str]:
        """What exists when each is looked at anew: some go with others (a balancer takes its listeners along)."""
        listed = self.control.get("/resources")
        bodies = [{"type": found["type"], "name": found["name"]} for found in listed]
        return [f"{body['type']} {body['name']}" for body in bodies if self.control.post("/resources/read", body)]


@contextmanager
def engine_stage(
    folder: StageFolder, *, stage: str, cli: Path, progress: Progress, log: Path, root: Path = REPOSITORY
) -> Iterator[EngineStage]:
    """A platform on an empty folder, the engine's provider beside it, a copy of the stage; all ends with the block.

    Nothing is deployed yet. What the processes say goes to ``log``. ProcessError if one does not come up.
    """
    copy = copy_of(root, stage=stage)
    arguments = ["--folder", str(folder.path)]
    with ExitStack() as down:
        platform = ["--stage", stage, *arguments, "--since", repr(progress.since)]
        supervisor = start("platform", python_command("local.supervisor", *platform), env=child_environment(), log=log)
        down.callback(stop_supervisor, supervisor, progress)
        provider = start(
            "provider",
            python_command("local.engine.serve", *arguments, "--root", str(root)),
            env=child_environment(),
            log=log,
        )
        down.callback(provider.stop)
        control = ControlClient.of(folder, seconds=_COME_UP_SECONDS, supervisor=supervisor)
        down.callback(control.close)
        control.wait_until_ready(seconds=_COME_UP_SECONDS)
        copy.write(EngineFolder(folder.path).project)  # the folder is the platform's by now
        ports_file = EngineFolder(folder.path).ports
        wait_until("the engine's provider serves", ports_file.exists, seconds=_COME_UP_SECONDS, alive=provider)
        yield EngineStage(
            stage=stage,
            folder=folder,
            control=control,
            supervisor=supervisor,
            cli=cli,
            ports=read_json(ports_file),
            overrides=copy.overrides,
        )


def _environment(served: EngineFolder, *, stage: str, endpoint: str, port: int) -> dict[str, str]:
    """What the deploy commands get: the emulator as AWS, a backend of files, and an answer to every question."""
    inherited = child_environment()
    return {
        **inherited,
        "PATH": os.pathsep.join((str(served.programs), inherited["PATH"])),
        "HOME": str(served.path),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": ROOT_SECRET_KEY,
        "AWS_REGION": REGION,
        # Without a side file beside the state, which a run killed while it writes that one leaves empty and unreadable.
        "PULUMI_BACKEND_URL": f"file://{served.backend}?metadata=skip",
        "PULUMI_HOME": str(served.home),
        "PULUMI_CONFIG_PASSPHRASE": secrets.token_urlsafe(16),
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",  # a copy of the state at each step, for nobody
        "GOGC": "400",  # a CLI lives for seconds: collecting its garbage took a fifth of them
        "PULUMI_DEBUG_PROVIDERS": f"aws:{port}",
        "YES": "1",
        "CONFIRM": stage,
    }


def _write_wrapper(served: EngineFolder, *, cli: Path, language_port: int) -> None:
    """A `pulumi` that runs the program by the language host that is served beside the provider."""
    program = served.programs / "pulumi"
    program.parent.mkdir(exist_ok=True)
    real, wish = shlex.quote(str(cli)), shlex.quote(str(served.restore_from))
    program.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "preview|up|refresh|destroy)\n"
        f'  printf %s "${{RESTORE_FROM-}}" > {wish}\n'
        f'  exec {real} "$@" --client=127.0.0.1:{language_port} --exec-kind=auto.inline;;\n'
        f'*) exec {real} "$@";;\n'
        "esac\n"
    )
    program.chmod(0o755)
