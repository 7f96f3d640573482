"""Tasks get the credentials of their role as ECS gives them."""

import threading
from collections.abc import Iterator

import httpx
import pytest
from botocore.credentials import ContainerProvider
from botocore.exceptions import ClientError, CredentialRetrievalError

from local.credentials import CredentialsEndpoint
from local.emulator import Clients, Credentials
from local.processes import free_port
from tests.fixtures.emulator import RunningEmulator, allow
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration


@pytest.fixture
def endpoint(emulator: RunningEmulator) -> Iterator[CredentialsEndpoint]:
    endpoint = CredentialsEndpoint(port=free_port(), root=emulator.aws)
    stop = endpoint.start()
    yield endpoint
    stop()


def test_the_sdk_finds_credentials_that_may_do_what_the_role_may(
    emulator: RunningEmulator, endpoint: CredentialsEndpoint
) -> None:
    role = emulator.make_role(allow("dynamodb:ListTables", on="*"))

    found = ContainerProvider(environ=dict(endpoint.lend(role))).load()

    assert found is not None
    frozen = found.get_frozen_credentials()
    clients = Clients(
        emulator.endpoint,
        credentials=Credentials(
            access_key_id=str(frozen.access_key),
            secret_access_key=str(frozen.secret_key),
            session_token=frozen.token,
        ),
    )
    clients("dynamodb").list_tables()
    with pytest.raises(ClientError, match="AccessDenied"):
        clients("sqs").list_queues()
    clients.close()


def test_nobody_gets_credentials_without_a_token_that_was_lent(
    emulator: RunningEmulator, endpoint: CredentialsEndpoint
) -> None:
    lent = endpoint.lend(emulator.make_role())
    url = lent["AWS_CONTAINER_CREDENTIALS_FULL_URI"]

    for headers in ({}, {"Authorization": ""}, {"Authorization": "guess"}):
        reply = httpx.get(url, headers=headers, trust_env=False)
        assert reply.status_code == 403
        assert "SecretAccessKey" not in reply.text


def test_a_revoked_token_lends_no_more(emulator: RunningEmulator, endpoint: CredentialsEndpoint) -> None:
    lent = endpoint.lend(emulator.make_role())

    endpoint.revoke(lent)

    with pytest.raises(CredentialRetrievalError):
        ContainerProvider(environ=dict(lent)).load()


@pytest.mark.parametrize("ends", ["stopped", "by itself"])
def test_what_was_lent_to_a_process_ends_with_it(stage: HandledStage, emulator: RunningEmulator, ends: str) -> None:
    platform = stage.platform
    lent = platform.lend_credentials(emulator.make_role())
    ended = threading.Event()
    seconds = "60" if ends == "stopped" else "0.1"
    child = platform.start_process("sleeper", ["/bin/sleep", seconds], env=lent, on_exit=lambda _: ended.set())
    assert ContainerProvider(environ=dict(lent)).load() is not None

    if ends == "stopped":
        platform.stop_process("sleeper")
    else:
        assert ended.wait(10)

    assert child.exit_code() is not None
    with pytest.raises(CredentialRetrievalError):
        ContainerProvider(environ=dict(lent)).load()


def test_a_role_that_cannot_be_assumed_is_said(emulator: RunningEmulator, endpoint: CredentialsEndpoint) -> None:
    lent = endpoint.lend(f"arn:aws:iam::{emulator.account}:role/no-such-role")

    reply = httpx.get(
        lent["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
        headers={"Authorization": lent["AWS_CONTAINER_AUTHORIZATION_TOKEN"]},
        trust_env=False,
    )

    assert reply.status_code == 500
    assert "no-such-role" in reply.json()["message"]
