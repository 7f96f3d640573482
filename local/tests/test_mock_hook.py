"""A small program under the mock hook, in the driver's own process, against a platform with handlers that only note."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from local.call_recorder import CallRecorder
from local.control_api import ControlApi, Parts, Readiness
from local.handlers.handler import Handler, HandlerError, Inputs, InvokeError, Made, Outputs
from local.loopback import serve
from local.mail_recorder import MailRecorder
from local.mailbox import Mailbox
from local.processes import free_port
from local.provider import Provider
from local.resource_store import Key, ResourceStore
from local.stage_folder import StageFolder, read_json

pytestmark = pytest.mark.integration

QUEUE = Key(type="aws:sqs/queue:Queue", name="jobs")
VERSION = Key(type="aws:secretsmanager/secretVersion:SecretVersion", name="key")
FUNCTION = Key(type="aws:lambda/function:Function", name="worker")

PROGRAM = """
    import pulumi, pulumi_aws as aws

    config = pulumi.Config()
    try:
        aws.rds.get_snapshot(db_snapshot_identifier="absent")
    except Exception as error:
        pulumi.export("snapshot", str(error))
    queue = aws.sqs.Queue("jobs", name="jobs", delay_seconds=config.require_int("delay"), tags={"Own": "1"})
    secret = aws.secretsmanager.SecretVersion(
        "key",
        secret_id="s",
        secret_string=pulumi.Output.secret(config.require("secret")),
        opts=pulumi.ResourceOptions(ignore_changes=["secret_string"], depends_on=[queue]),
    )
    if config.require_bool("withFunction"):
        function = aws.lambda_.Function(
            "worker", name=queue.name, role="r", code=pulumi.FileArchive("../worker.zip"), handler="h"
        )
        pulumi.export("function", function.arn)
    pulumi.export("queue", queue.arn)
    pulumi.export("secret", secret.secret_string)
"""


class Noting(Handler):
    """Makes what is declared; ``refused`` names are refused."""

    refused: ClassVar[set[str]] = set()

    def create(self, name: str, inputs: Inputs) -> Made:
        if name in self.refused:
            raise HandlerError("InvalidParameterValue: not like this")
        return Made(name, {**inputs, "arn": f"arn:{name}"})

    def read(self, id: str, inputs: Inputs) -> Made | None:
        return None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        return {**new, "arn": f"arn:{id}"}

    def delete(self, id: str, outputs: Outputs) -> None:
        """Nothing to do."""


class FakePlatform:
    def say(self, text: str) -> None:
        """Nobody listens."""


class Project:
    """A project's folder, and a platform for it."""

    def __init__(self, path: Path, provider: Provider, store: ResourceStore) -> None:
        self.root = path
        self.folder = StageFolder(path / "stage")
        self.provider = provider
        self.store = store
        (path / "infra").mkdir()
        (path / "worker.zip").write_bytes(b"first")
        (path / "Pulumi.yaml").write_text("name: shop\nconfig:\n  delay: {type: integer, default: 1}\n")
        (path / "Pulumi.dev.yaml").write_text(
            "config:\n  aws:region: us-east-1\n  aws:defaultTags:\n    tags: {Stage: dev, Own: default}\n"
            "  shop:secret: first\n  shop:withFunction: true\n"
        )
        self.write(PROGRAM)

    def write(self, program: str) -> None:
        (self.root / "infra" / "__main__.py").write_text(textwrap.dedent(program))

    def apply(self, *settings: str) -> "subprocess.CompletedProcess[str]":
        places = ["--root", str(self.root), "--folder", str(self.folder.path)]
        chosen = [f"--set={setting}" for setting in settings]
        command = [sys.executable, "-m", "local.drivers.mock", *places, *chosen]
        return subprocess.run(command, capture_output=True, text=True, timeout=90)

    def inputs(self, key: Key) -> dict[str, Any]:
        stored = self.store.get(key)
        assert stored is not None
        return dict(stored.inputs)

    @property
    def outputs(self) -> Any:
        return read_json(self.folder.path / "stack-outputs.json")


def _look_up(platform: object, token: str, arguments: object) -> Outputs:
    raise InvokeError("Your query returned no results.")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    Noting.refused.clear()
    platform: Any = FakePlatform()
    store = ResourceStore(tmp_path / "resources.json")
    handlers = {key.type: type("One", (Noting,), {"resource_type": key.type}) for key in (QUEUE, VERSION, FUNCTION)}
    provider = Provider(platform, store, handlers=handlers, look_up=_look_up)
    readiness = Readiness()
    mailbox = Mailbox(tmp_path / "mailbox")
    readiness.succeed(
        Parts(
            provider=provider,
            mailbox=mailbox,
            mail_recorder=MailRecorder(port=1, upstream_port=1, mailbox=mailbox),
            call_recorder=CallRecorder(port=1, file=tmp_path / "calls.jsonl"),
            run_task=lambda **_: (0, ""),
            restart_emulator=lambda: 0.0,
            differences=[],
        )
    )
    api = ControlApi(token="token", readiness=readiness, status=dict, finish=lambda: None, report=print)
    port = free_port()
    stop = serve("control API", port=port, answer=api.answer)
    project = Project(tmp_path, provider, store)
    project.folder.path.mkdir()
    project.folder.announce({"pid": 1, "controlPort": port, "token": "token"})
    yield project
    stop()


def test_a_program_arrives_whole(project: Project) -> None:
    done = project.apply()

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 created" in done.stdout
    # Defaults of Pulumi.yaml, default tags of the provider under the resource's own, numbers as the engine has them.
    assert project.inputs(QUEUE) == {"name": "jobs", "delaySeconds": 1.0, "tags": {"Stage": "dev", "Own": "1"}}
    # Secrets unwrapped; no tags where the provider takes none.
    assert project.inputs(VERSION) == {"secretId": "s", "secretString": "first"}
    code = project.inputs(FUNCTION)["code"]
    assert Path(code["path"]) == project.root / "worker.zip"
    assert len(code["sha256"]) == 64
    stored = project.store.get(FUNCTION)
    assert stored is not None
    assert stored.depends_on == (QUEUE,)
    assert project.outputs["queue"] == "arn:jobs"
    assert project.outputs["function"] == "arn:worker"
    # A failed look-up reaches the program as an error that it can catch.
    assert "Your query returned no results." in project.outputs["snapshot"]
    assert "first" not in done.stdout + done.stderr


def test_a_second_run_changes_what_changed_and_prunes_what_is_gone(project: Project) -> None:
    project.apply()
    before = project.inputs(FUNCTION)["code"]["sha256"]
    (project.root / "worker.zip").write_bytes(b"second")

    changed = project.apply("secret=second", "delay=5")

    assert "2 updated, 1 unchanged" in changed.stdout
    assert project.inputs(QUEUE)["delaySeconds"] == 5.0
    assert project.inputs(VERSION)["secretString"] == "first"  # its change is ignored
    assert project.outputs["secret"] == "first"  # and the program sees the stored one
    assert project.inputs(FUNCTION)["code"]["sha256"] != before

    pruned = project.apply("delay=5", "withFunction=false")

    assert "1 deleted, 2 unchanged" in pruned.stdout
    assert project.store.get(FUNCTION) is None


def test_what_aws_refuses_is_shown_by_resource_and_nothing_is_pruned(project: Project) -> None:
    project.apply()
    project.store.remove(QUEUE)
    Noting.refused.add("jobs")

    done = project.apply("withFunction=false")

    assert done.returncode == 1
    assert "Queue jobs (aws:sqs/queue:Queue): InvalidParameterValue: not like this" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert project.store.get(FUNCTION) is not None


def test_a_program_that_refuses_says_so_and_changes_nothing(project: Project) -> None:
    project.write("import pulumi\nraise pulumi.RunError('compute needs data: set dataEnabled')\n")

    done = project.apply()

    assert done.returncode == 2
    assert "the program refuses: compute needs data: set dataEnabled" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert project.store.all() == []


def test_a_program_with_a_fault_shows_where(project: Project) -> None:
    project.write("import pulumi\nboom = 1 / 0\n")

    done = project.apply()

    assert done.returncode == 2
    assert "boom = 1 / 0" in done.stdout
    assert "ZeroDivisionError" in done.stdout


def test_a_missing_zip_says_what_makes_it(project: Project) -> None:
    (project.root / "worker.zip").unlink()

    done = project.apply()

    assert done.returncode != 0
    assert "worker.zip is missing: `make build` makes it" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
