"""The Pulumi CLI as these commands use it: what is asked of it, what it answers, what it has to say about a lock."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.refusal import Failure, Refusal

# Seconds that an answer may take before the command gives up and says so. Runs that change resources have no such end
# of ours: Pulumi ends each resource's wait itself, and cutting it short would leave the stage half done.
_QUESTION_SECONDS = 120
_PREVIEW_SECONDS = 1800

RESTORE_FROM = "RESTORE_FROM"

_LOCK = re.compile(r"the stack is currently locked by|Another update is currently in progress", re.IGNORECASE)
_OWNER = re.compile(r"created by (?P<user>\S*)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<time>\S+)")


@dataclass(frozen=True, kw_only=True)
class LockOwner:
    """Who holds the stack's lock, as the lock itself says."""

    user: str
    host: str
    process: int
    since: str


class StackLocked(Exception):  # noqa: N818 - a state of the stack, not a fault
    """Another run holds the stack's lock, or died with it. Pulumi Cloud does not name the owners."""

    def __init__(self, owners: Sequence[LockOwner]) -> None:
        super().__init__("the stack is locked")
        self.owners = tuple(owners)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a run of the CLI wrote, and the code that it ended with."""

    code: int
    output: str
    errors: str

    @property
    def reason(self) -> str:
        """Its own words about what went wrong, in one line."""
        lines = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        told = [line for line in lines if line.startswith("error:")] or lines[-1:]
        return "; ".join(line.removeprefix("error:").strip() for line in told) or f"exit code {self.code}"

    @property
    def lacks_passphrase(self) -> bool:
        """Whether it failed because it cannot decrypt the stack's secrets."""
        return self.code != 0 and re.search(r"(incorrect passphrase|passphrase must be set)", self.errors) is not None


def cannot_decrypt(stage: str) -> str:
    """What to do about that."""
    return f"Pulumi cannot decrypt stack {stage}: set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE"


class PulumiCli:
    """Commands on one stack of one project. Every call names the stack, so that the selected one never matters."""

    def __init__(self, *, project: Path, stage: str, environment: Mapping[str, str]) -> None:
        found = shutil.which("pulumi", path=environment.get("PATH", ""))
        if found is None:
            raise Refusal("No pulumi on PATH: install the Pulumi CLI (pulumi.com/docs/install), then try again")
        self._program = found
        self._project = project
        self._stage = stage
        # A snapshot to restore from is asked for in one run, so only the runs that are told of it see it.
        self._environment = {key: value for key, value in environment.items() if key != RESTORE_FROM}
        self._environment["PULUMI_SKIP_UPDATE_CHECK"] = "true"

    def user(self) -> str:
        """Who is logged in to the backend. Refusal where nobody is."""
        answer = self._ask("whoami", "--non-interactive")
        if answer.code != 0:
            raise Refusal(f"Pulumi is not logged in ({answer.reason}): run pulumi login, or set PULUMI_BACKEND_URL")
        return answer.output.strip()

    def state(self) -> Mapping[str, Any] | None:
        """The stack's deployment, secrets encrypted; None where there is no such stack."""
        answer = self._ask("stack", "export", *self._named())
        if answer.code != 0 and re.search(r"no stack named", answer.errors):
            return None
        self._expect(answer, "cannot read the stack's state")
        deployment = json.loads(answer.output).get("deployment")
        return deployment if isinstance(deployment, dict) else {}

    def replace_state(self, deployment: Mapping[str, Any]) -> None:
        """Write a deployment that was read with :meth:`state` back. StackLocked while another run goes on."""
        document = json.dumps({"version": 3, "deployment": deployment})
        answer = self._ask("stack", "import", *self._named(), stdin=document)
        self._unlocked(answer)
        self._expect(answer, "cannot write the stack's state")

    def make_stack(self) -> None:
        """Make the stack in the backend. Pulumi may write into the stage's file how its secrets are encrypted."""
        self._expect(
            self._ask("stack", "init", self._stage, "--no-select", "--non-interactive"), "cannot make the stack"
        )

    def outputs(self) -> Mapping[str, Any]:
        """The stack's outputs; secret ones as ``[secret]``. Refusal where there is no stack yet."""
        if self.state() is None:
            raise Refusal(f"There is no stack {self._stage} yet: run make up STAGE={self._stage}")
        answer = self._ask("stack", "output", "--json", *self._named())
        self._expect(answer, "cannot read the stack's outputs")
        outputs = json.loads(answer.output or "{}")
        return outputs if isinstance(outputs, dict) else {}

    def preview(self, *, config: Path | None = None, restore_from: str | None = None) -> Answer:
        """What an ``up`` would do, as a JSON document; with ``config``, under that file instead of the stage's own."""
        chosen = [f"--config-file={config}"] if config is not None else []
        return self._ask(
            "preview", "--json", *self._named(), *chosen, seconds=_PREVIEW_SECONDS, restore_from=restore_from
        )

    def show_difference(self) -> int:
        """Pulumi's own preview, property by property, on this terminal; its exit code."""
        return self._watch("preview", "--diff", *self._named())

    def up(self, *, restore_from: str | None = None) -> int:
        """Apply the program, with progress on this terminal; its exit code. StackLocked before anything began."""
        return self._watch("up", "--yes", "--skip-preview", *self._named(), restore_from=restore_from)

    def refresh(self) -> int:
        """Read every resource anew, with progress on this terminal; its exit code. StackLocked before it began."""
        return self._watch("refresh", "--yes", "--skip-preview", *self._named())

    def destroy(self) -> int:
        """Delete every resource, with progress on this terminal; its exit code. StackLocked before it began."""
        return self._watch("destroy", "--yes", "--skip-preview", *self._named())

    def cancel(self) -> None:
        """Take away the lock that a dead run left."""
        answer = self._ask("cancel", "--yes", "--stack", self._stage, "--non-interactive")
        # The cloud backend has nothing to cancel once it noticed by itself that the run is gone.
        if answer.code != 0 and not re.search(r"no (such )?update|has already completed", answer.errors, re.IGNORECASE):
            self._expect(answer, "cannot cancel the earlier run")

    def _named(self) -> tuple[str, ...]:
        return ("--stack", self._stage, "--non-interactive")

    def _ask(
        self,
        *arguments: str,
        stdin: str | None = None,
        seconds: float = _QUESTION_SECONDS,
        restore_from: str | None = None,
    ) -> Answer:
        try:
            ended = subprocess.run(
                [self._program, *arguments],
                cwd=self._project,
                env=self._with(restore_from),
                input=stdin or "",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            command = " ".join(arguments[:2])
            raise Failure(
                f"pulumi {command} gave no answer in {seconds:g} s: is its backend, or AWS, reachable?"
            ) from error
        return Answer(code=ended.returncode, output=ended.stdout, errors=ended.stderr)

    def _watch(self, *arguments: str, restore_from: str | None = None) -> int:
        process = subprocess.Popen(
            [self._program, *arguments],
            cwd=self._project,
            env=self._with(restore_from),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        errors: list[str] = []
        reader = threading.Thread(target=_pass_on, args=(process, errors), daemon=True)
        with _ends_gracefully(process):
            reader.start()
            code = _exit_code(process)
            reader.join(5)
        self._unlocked(Answer(code=code, output="", errors="".join(errors)))
        return code

    def _with(self, restore_from: str | None) -> dict[str, str]:
        return {**self._environment, **({RESTORE_FROM: restore_from} if restore_from is not None else {})}

    def _unlocked(self, answer: Answer) -> None:
        if answer.code != 0 and _LOCK.search(answer.errors):
            raise StackLocked(
                [
                    LockOwner(user=found["user"], host=found["host"], process=int(found["pid"]), since=found["time"])
                    for found in _OWNER.finditer(answer.errors)
                ]
            )

    def _expect(self, answer: Answer, what: str) -> None:
        if answer.code == 0:
            return
        if answer.lacks_passphrase:
            raise Refusal(cannot_decrypt(self._stage))
        raise Failure(f"Pulumi {what} ({self._stage}): {answer.reason}")


def _pass_on(process: "subprocess.Popen[str]", kept: list[str]) -> None:
    if process.stderr is None:
        return
    with process.stderr:
        for line in process.stderr:
            kept.append(line)
            sys.stderr.write(line)
            sys.stderr.flush()


def _exit_code(process: "subprocess.Popen[str]") -> int:
    """Its exit code, however often Ctrl-C is pressed: Pulumi gets each as well, and ends after what is in flight."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


@contextlib.contextmanager
def _ends_gracefully(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Hand a SIGTERM of ours on as the interrupt after which Pulumi still writes down what it did."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
