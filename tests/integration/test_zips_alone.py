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
WATCHED = ("PIL", "minitickets_contracts", "aws_lambda_powertools", "qrcode", "jmespath", "icalendar", "tzdata")
# -I keeps our folders and environment out; a package called PIL lies ready to be picked up by mistake. The system has
# no time zones: Lambda's need not have any.
PROGRAM = """
import importlib, json, sys, types, zoneinfo
sys.path[:0] = [sys.argv[1], sys.argv[2]]
zoneinfo.reset_tzpath([])
importlib.import_module("dateutil.tz.tz").TZPATHS.clear()
module = importlib.import_module(sys.argv[3])
context = types.SimpleNamespace(
    function_name="f", function_version="1", memory_limit_in_mb=256, invoked_function_arn="arn:f",
    aws_request_id="r", log_group_name="g", log_stream_name="s", get_remaining_time_in_millis=lambda: 9000,
)
reply = module.lambda_handler(json.loads(sys.argv[4]), context)
origins = {
    name: getattr(loaded, "__file__", None) or ""
    for name, loaded in sys.modules.items()
    if name.split(".")[0] in sys.argv[5:]
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
    arguments = [str(folder / "task"), str(folder / "trap"), MODULES[app], json.dumps({"Records": records}), *WATCHED]
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
    return {**result, "log": [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]}


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


USER, EVENT, BOOKING = (f"{number}f2b8f3e-5c1e-4b5e-9a51-0d6c9f0a7b11" for number in (1, 2, 3))
CUSTOMER = {"userId": USER, "email": "ada@example.org", "name": "Ada"}
BOOKED = {
    "version": 1,
    "messageId": EVENT,
    "bookingId": BOOKING,
    "correlationId": "c-1",
    "occurredAt": "2026-11-29T12:00:00Z",
    "customer": CUSTOMER,
    "event": {
        "eventId": EVENT,
        "title": "Nachtmusik",
        "venue": "Große Halle",
        "startsAt": "2026-12-31T20:00:00+01:00",
        "timeZone": "Europe/Berlin",
        "sequence": 1,
    },
    "seats": ["A-1"],
    "totalMinor": 4200,
    "currency": "EUR",
}
MAILED = {
    "booking.confirmed": BOOKED,
    "booking.mail-requested": BOOKED,
    "event.moved": {
        **BOOKED,
        "previous": {"startsAt": "2026-12-30T20:00:00-08:00", "timeZone": "America/Los_Angeles", "venue": "Hall"},
    },
    "booking.cancelled": {**BOOKED, "cancelledAt": "2026-11-29T12:00:00Z"},
    "password.reset-requested": {
        **{name: BOOKED[name] for name in ("version", "messageId", "correlationId", "occurredAt", "customer")},
        "token": "t" * 43,
        "expiresAt": "9999-01-01T00:00:00Z",
    },
}


def test_the_worker_writes_each_mail_from_its_zip_alone_and_brings_the_time_zones(tmp_path: Path) -> None:
    records = [record(json.dumps({"type": name, **body}), f"m-{name}") for name, body in MAILED.items()]

    result = run_alone("worker", records, tmp_path)

    # Each mail was written; then no table answered.
    failed = [(line["sqsMessageId"], line["error"]) for line in result["log"] if line["message"] == "message failed"]
    assert failed == [(f"m-{name}", "EndpointConnectionError") for name in MAILED]
    assert "tzdata.zoneinfo.Europe" in result["origins"]
    assert "icalendar.cal.event" in result["origins"]
