"""Each function's zip runs with nothing beside it but boto3: the emulator's interpreter has it, and nothing of ours."""

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ops.artifacts import ROOT, build

pytestmark = pytest.mark.integration

INTERPRETER = ROOT / ".local" / "emulator" / "bin" / "python"

# Both read settings and make clients at import; nothing here is called.
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "POWERTOOLS_LOG_LEVEL": "INFO",
    "STAGE": "test",
}
MODULES = {"worker": "minitickets_worker.batch", "tickets": "minitickets_tickets.handler"}
SETTINGS = {
    "worker": {
        "PROCESSED_JOBS_TABLE": "processed-jobs",
        "JOBS_QUEUE_URL": "http://127.0.0.1:9/000000000000/jobs",
        "SENDER": "tickets@example.org",
    },
    "tickets": {"TICKETS_TABLE": "tickets", "ASSETS_BUCKET": "assets", "SIGNING_SECRET_ARN": "arn"},
}
# -I keeps our folders and environment out; a package called PIL lies ready to be picked up by mistake.
PROGRAM = """
import importlib, json, sys, types
sys.path[:0] = [sys.argv[1], sys.argv[2]]
module = importlib.import_module(sys.argv[3])
context = types.SimpleNamespace(
    function_name="f", function_version="1", memory_limit_in_mb=256, invoked_function_arn="arn:f",
    aws_request_id="r", log_group_name="g", log_stream_name="s", get_remaining_time_in_millis=lambda: 9000,
)
reply = module.lambda_handler(json.loads(sys.argv[4]), context)
origins = {
    name: getattr(loaded, "__file__", None) or ""
    for name, loaded in sys.modules.items()
    if name.split(".")[0] in ("PIL", "minitickets_contracts", "aws_lambda_powertools", "qrcode", "jmespath")
}
print("REPLY " + json.dumps({"reply": reply, "origins": origins}))
"""


def run_alone(app: str, records: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    if not INTERPRETER.exists():
        pytest.skip("the emulator's environment is missing: `make env` makes it")
    with zipfile.ZipFile(build(app, to=folder / f"{app}.zip").path) as archive:
        archive.extractall(folder / "task")
    (folder / "trap" / "PIL").mkdir(parents=True)
    (folder / "trap" / "PIL" / "__init__.py").write_text("")
    arguments = [str(folder / "task"), str(folder / "trap"), MODULES[app], json.dumps({"Records": records})]
    done = subprocess.run(
        [str(INTERPRETER), "-I", "-B", "-W", "error::SyntaxWarning", "-c", PROGRAM, *arguments],
        env={**ENVIRONMENT, **SETTINGS[app]},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith("REPLY ")]
    result: dict[str, Any] = json.loads(line.removeprefix("REPLY "))
    return result


def record(body: str, message_id: str) -> dict[str, Any]:
    return {
        "messageId": message_id,
        "receiptHandle": f"handle-{message_id}",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:queue",
    }


@pytest.mark.parametrize("app", MODULES)
def test_a_function_runs_from_its_zip_alone(app: str, tmp_path: Path) -> None:
    result = run_alone(app, [record('{"type":"event.archived"}', "m-1")], tmp_path)

    assert result["reply"] == {"batchItemFailures": []}
    assert "aws_lambda_powertools" in result["origins"]
    for name, origin in result["origins"].items():
        if not name.startswith("jmespath"):  # boto3 brings its own
            assert origin.startswith(str(tmp_path / "task")), name


def test_the_ticket_function_reports_poison_from_its_zip_alone(tmp_path: Path) -> None:
    result = run_alone("tickets", [record("poison", "m-1")], tmp_path)

    assert result["reply"] == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}


def test_the_ticket_function_never_imports_pillow(tmp_path: Path) -> None:
    origins = run_alone("tickets", [record('{"type":"other"}', "m-1")], tmp_path)["origins"]

    assert "qrcode.main" in origins
    assert "PIL" not in origins
