"""The emulator decides as AWS does: by signature and by policy."""

import pytest
from botocore.exceptions import ClientError

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
