"""The emulator decides as AWS does: by signature and by policy."""

import os
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from local.emulator import Emulator
from local.processes import start
from tests.fixtures.emulator import RunningEmulator, allow

pytestmark = pytest.mark.integration


def test_a_role_may_do_what_its_statement_says_and_nothing_else(emulator: RunningEmulator) -> None:
    url = emulator.aws("sqs").create_queue(QueueName="emulator-roles")["QueueUrl"]
    client = emulator.client_as(
        "sqs", allow("sqs:GetQueueAttributes", on=f"arn:aws:sqs:{emulator.region}:{emulator.account}:emulator-roles")
    )

    client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    with pytest.raises(ClientError, match="AccessDenied"):
        client.receive_message(QueueUrl=url)


def test_a_role_without_statements_may_do_nothing(emulator: RunningEmulator) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        emulator.client_as("dynamodb").list_tables()


def test_what_an_emulator_did_not_write_at_its_end_is_known(tmp_path: Path) -> None:
    child = start("emulator", [sys.executable, "-c", ""], env={}, log=None)
    child.wait(10)
    state = tmp_path / "state"
    state.mkdir()
    found = {"ssm": 1_000_000_000, "sqs": 1_000_000_000}

    def written(name: str, at: int) -> None:
        (state / f"{name}.json").touch()
        os.utime(state / f"{name}.json", ns=(at, at))

    first = Emulator(endpoint="", folder=tmp_path, child=child, found={})
    assert first.unsaved() == ["ssm"]
    later = Emulator(endpoint="", folder=tmp_path, child=child, found=found)
    written("ssm", 2_000_000_000)
    written("sqs", 1_000_000_000)
    assert later.unsaved() == ["sqs"]
    # Whatever the clock says: it may have been set back meanwhile.
    written("sqs", 500_000_000)
    assert later.unsaved() == []
    assert first.unsaved() == []


def test_log_lines_that_an_emulator_did_not_write_at_its_end_are_no_loss_of_the_stage(tmp_path: Path) -> None:
    child = start("emulator", [sys.executable, "-c", ""], env={}, log=None)
    child.wait(10)
    state = tmp_path / "state"
    state.mkdir()
    (state / "cloudwatch_logs.json").touch()
    (state / "ssm.json").touch()
    logs = (state / "cloudwatch_logs.json").stat().st_mtime_ns

    later = Emulator(endpoint="", folder=tmp_path, child=child, found={"ssm": 1, "cloudwatch_logs": logs})

    assert later.unsaved() == []
