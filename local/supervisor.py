"""The platform as one process: ``python -m local.supervisor --stage dev`` stays until a signal, or a driver, ends it.

Exit codes: 0 it was asked to end; 1 a part of it failed; 2 the stage has a platform already; 3 the emulator lost its
half of the stage.
"""

import gc
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from local.balancer import as_served
from local.call_recorder import CallRecorder
from local.children import Children
from local.control_api import ControlApi, Parts, Readiness
from local.emulator import Clients, Emulator, start_emulator
from local.generation import LostHalfError, check_generation, forget_generation
from local.handlers.handler import InvokeError
from local.handlers.lookups import look_up
from local.handlers.registry import HANDLERS
from local.handlers.tasks import run_task
from local.loopback import serve
from local.mail_recorder import MailRecorder
from local.mailbox import Mailbox
from local.mailbox_pages.pages import MailboxPages
from local.platform import Platform
from local.processes import ProcessError, what_failed
from local.progress import Progress
from local.provider import Provider
from local.resource_store import ResourceStore
from local.stage_folder import StageFolder, StageInUseError, read_json, stage_folder, write_json

STOPPED, FAILED, IN_USE, LOST_HALF = 0, 1, 2, 3

# ECS's own: what a task gets between SIGTERM and SIGKILL.
_TASK_STOP_SECONDS = 30.0
_SERVER_STOP_SECONDS = 20.0
# The emulator answers what it has begun (3 s), then writes; killed, it would lose its half of the stage.
_EMULATOR_STOP_SECONDS = 60.0
_RENEW_SECONDS = 120.0
# In about the order in which a first start needs them.
_SERVICES = (
    *("sqs", "iam", "sns", "dynamodb", "secretsmanager", "s3", "logs", "ec2", "sesv2", "ecr", "lambda"),
    *("ssm", "rds", "elasticache", "ecs", "elbv2", "cloudwatch"),
)
_GENERATION = "generation.json"
_TASK_DEFINITION = "aws:ecs/taskDefinition:TaskDefinition"
_TASKS = "aws:ecs/service:Service"


class Supervisor:
    """One stage's platform from its start to its end."""

    def __init__(self, folder: StageFolder, *, stage: str, progress: Progress) -> None:
        self._folder = folder
        self._stage = stage
        self._progress = progress
        self._end = threading.Event()
        self._exit_code = STOPPED
        self._readiness = Readiness()
        self._emulator: Emulator | None = None
        self._emulator_changes = threading.RLock()  # nobody ends it while somebody starts it
        self._renewal = threading.Lock()
        self._children = Children(folder.path / "children.json", say=progress.say)
        self._began = time.monotonic()

    def end(self, exit_code: int = STOPPED) -> None:
        """Have ``run`` shut everything down and return; the first caller decides the exit code."""
        if not self._end.is_set():
            self._exit_code = exit_code
            self._end.set()

    def run(self) -> int:
        """Come up, stay, go down. Returns the exit code; nothing that it started still runs then."""
        self._children.end_leftovers()
        with ExitStack() as down:
            down.callback(self._stop_children)
            down.callback(self._readiness.fail, "the platform is going down")
            try:
                self._come_up(down)
            except LostHalfError as error:
                self.end(LOST_HALF)
                self._fail(f"{error}.\nNothing was started. `make local-reset STAGE={self._stage}` empties the stage.")
            except ProcessError as error:
                self.end(FAILED)
                self._fail(f"The platform cannot come up: {error}")
            except OSError as error:
                self.end(FAILED)
                self._fail(f"The platform cannot come up: {what_failed(error)}")
            self._end.wait()
            self._progress.say("going down")
        if self._emulator is not None and (unsaved := self._emulator.unsaved()):
            self._exit_code = self._exit_code or FAILED
            forget_generation(self._folder.path / _GENERATION)
            self._progress.say(
                f"the emulator could not write what it holds ({', '.join(unsaved)}): is the disk full? The next start "
                "will say that it is lost"
            )
        self._progress.say("everything has ended")
        return self._exit_code

    def _come_up(self, down: ExitStack) -> None:
        folder, path = self._folder, self._folder.path
        token = secrets.token_urlsafe(32)
        api = ControlApi(
            token=token,
            readiness=self._readiness,
            status=self._status,
            finish=self.end,
            report=self._progress.say,
        )
        # First of all: drivers may come now, and wait for the rest.
        down.callback(serve("control API", port=folder.port("control"), answer=api.answer))
        control = f"http://127.0.0.1:{folder.port('control')}"
        mailbox = Mailbox(path / "mailbox")
        mailbox_url = self._serve_mailbox(mailbox, down)
        folder.announce(
            {
                "pid": os.getpid(),
                "stage": self._stage,
                "control": control,
                "controlPort": folder.port("control"),
                "token": token,
                "mailbox": mailbox_url,
                "endpoint": f"http://127.0.0.1:{folder.port('emulator')}",
            }
        )
        emulator = start_emulator(path / "emulator", port=folder.port("emulator"))
        self._emulator = emulator
        self._children.watch(emulator.child, on_exit=self._emulator_ended)
        self._progress.say(f"the emulator answers at {emulator.endpoint}")
        clients = Clients(emulator.endpoint)
        down.callback(clients.close)
        check_generation(clients, path / _GENERATION)

        mail_recorder = MailRecorder(port=folder.port("mail"), upstream_port=folder.port("emulator"), mailbox=mailbox)
        call_recorder = CallRecorder(port=folder.port("calls"), file=path / "calls.jsonl")
        platform = Platform(
            folder=folder,
            root_clients=clients,
            children=self._children,
            progress=self._progress,
            mailbox_url=mailbox_url,
        )
        # What the children talk to ends after them; the balancer goes with them.
        down.callback(mail_recorder.start())
        down.callback(call_recorder.start())
        down.callback(platform.credentials.start())
        down.callback(platform.balancer.stop)
        down.callback(self._stop_children)

        store = ResourceStore(path / "resources.json")
        provider = Provider(platform, store, handlers=HANDLERS, look_up=look_up)
        provider.resume()
        if store.all():
            self._progress.say(f"{len(store.all())} resources of the last start are there again")
        self._readiness.succeed(
            Parts(
                provider=provider,
                mailbox=mailbox,
                mail_recorder=mail_recorder,
                call_recorder=call_recorder,
                run_task=_task_runner(platform, store),
                restart_emulator=lambda: self._restart_emulator(clients, provider),
                differences=platform.differences,
            )
        )
        self._progress.say(f"the platform takes programs after {time.monotonic() - self._began:.1f} s")
        threading.Thread(target=clients.warm, args=(_SERVICES,), name="warm clients", daemon=True).start()

    def _fail(self, reason: str) -> None:
        self._readiness.fail(reason)
        self._progress.say(reason)

    def _emulator_ended(self, exit_code: int) -> None:
        log = self._folder.path / "emulator" / "emulator.log"
        self._emulator = None  # what is lost, the next start says
        reason = f"The emulator ended by itself (exit code {exit_code}): the platform goes down. Its log: {log}"
        self.end(FAILED)
        self._fail(reason)

    def _restart_emulator(self, clients: Clients, provider: Provider) -> float:
        """End the emulator as the platform's own end does, and start it again in its place; for how long it was away.

        All else goes on. It forgets the sessions that it lent (STS has no state on disk), so tasks are replaced by ones
        with new credentials, as a deployment does it. ProcessError, and the platform goes down, if it has lost
        something or does not come back.
        """
        with self._renewal:
            try:
                with self._emulator_changes:
                    seconds = self._replace_emulator(clients)
            except (LostHalfError, ProcessError) as error:
                self.end(FAILED)
                self._fail(f"The emulator was to be restarted: {error}. The platform goes down")
                raise ProcessError(str(error)) from error
            self._progress.say(f"the emulator was restarted, and was away for {seconds:.1f} s")
            self._renew_tasks(provider)
        return seconds

    def _replace_emulator(self, clients: Clients) -> float:
        old, path = self._emulator, self._folder.path
        if old is None or self._end.is_set():
            raise ProcessError("the platform is going down")
        began = time.monotonic()
        self._children.stop(old.child.name, seconds=_EMULATOR_STOP_SECONDS)
        old.child.end_group()  # the functions that it was running
        if unsaved := old.unsaved():
            raise ProcessError(f"it could not write what it holds ({', '.join(unsaved)})")
        self._emulator = None
        new = start_emulator(path / "emulator", port=self._folder.port("emulator"))
        self._children.watch(new.child, on_exit=self._emulator_ended)
        self._emulator = new
        seconds = time.monotonic() - began
        check_generation(clients, path / _GENERATION)
        return seconds

    def _renew_tasks(self, provider: Provider) -> None:
        """Replace all tasks; again, if one of the new ones dies meanwhile."""
        end = time.monotonic() + _RENEW_SECONDS
        while True:
            try:
                provider.resume(only=_TASKS)
            except ProcessError as error:
                if time.monotonic() > end or self._end.is_set():
                    raise
                self._progress.say(f"{error}; next attempt in 1 s")
                time.sleep(1)
            else:
                return

    def _stop_children(self) -> None:
        """The API drains first, while what it needs still answers; then the servers, all at once."""
        servers = ("emulator", "postgres:", "valkey:")
        self._children.stop_all(
            [name for name in self._children.names() if not name.startswith(servers)], seconds=_TASK_STOP_SECONDS
        )
        with self._emulator_changes:
            self._children.stop_all(self._children.names(), seconds=_SERVER_STOP_SECONDS)

    def _status(self) -> dict[str, Any]:
        return {
            "stage": self._stage,
            "isUp": self._readiness.is_up,
            "processes": self._children.names(),
            "logs": str(self._folder.path / "logs"),
        }

    def _serve_mailbox(self, mailbox: Mailbox, down: ExitStack) -> str:
        """Serve its pages; where they are, with the key that opens them, the same at every start."""
        key, port = self._lasting_secret("mailbox-key"), self._folder.port("mailbox")
        pages = MailboxPages(mailbox=mailbox, key=key, stage=self._stage)
        down.callback(serve("mailbox", port=port, answer=pages.answer))
        return f"http://127.0.0.1:{port}/{key}/"

    def _lasting_secret(self, name: str) -> str:
        file = self._folder.path / f"{name}.json"
        secret: str = read_json(file) or secrets.token_urlsafe(18)
        write_json(file, secret)
        return secret


def _task_runner(platform: Platform, store: ResourceStore) -> Callable[..., tuple[int, str]]:
    def run(*, command: list[str], environment: Mapping[str, str], seconds: float) -> tuple[int, str]:
        definitions = store.of_type(_TASK_DEFINITION)
        if not definitions:
            raise InvokeError("compute is switched off, so there is nothing to run a task in")
        done = run_task(
            platform, dict(definitions[-1].outputs), command=command, environment=environment, seconds=seconds
        )
        return done.exit_code, done.output

    return run


def _addresses(folder: StageFolder, running: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where a running platform answers, as far as it is up."""
    outputs = read_json(folder.path / "stack-outputs.json") or {}
    api = outputs.get("apiUrl")
    found = [("API", api and as_served(api)), ("Mailbox", running.get("mailbox")), ("AWS", running.get("endpoint"))]
    return [(what, where) for what, where in found if where]


@click.command()
@click.option("--stage", default="dev", show_default=True, help="Stage whose state folder the platform holds.")
@click.option("--folder", type=click.Path(path_type=Path), help="State folder; default .local/state/<stage>.")
@click.option("--since", type=float, help="Clock that the lines count from, in seconds since 1970.")
def main(stage: str, folder: Path | None, since: float | None) -> None:
    """Run the platform of a stage until SIGINT or SIGTERM."""
    gc.freeze()  # what the imports made stays: no collection need look at it again
    kept = StageFolder(folder or stage_folder(stage))
    progress = Progress(since=since, log=kept.path / "logs" / "platform.log")
    try:
        with kept.held():
            supervisor = Supervisor(kept, stage=stage, progress=progress)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: supervisor.end())
            exit_code = supervisor.run()
    except StageInUseError as error:
        click.echo(f"{error}.", err=True)
        for what, where in _addresses(kept, error.running or {}):
            click.echo(f"  {what:<8} {where}", err=True)
        click.echo("Stop that one first: Ctrl-C where it runs, or SIGTERM to its process.", err=True)
        sys.exit(IN_USE)
    except (ProcessError, OSError) as error:
        progress.say(f"The platform cannot come up: {what_failed(error) if isinstance(error, OSError) else error}")
        sys.exit(FAILED)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
