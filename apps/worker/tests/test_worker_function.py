"""The entry point: wired once per process, with time-outs that fit into the time of one message."""

from typing import Any

import pytest

from apps.worker.tests.conftest import LoadFunction
from minitickets_worker import clients
from minitickets_worker.clients import Clients
from minitickets_worker.invocation import MESSAGE_SECONDS
from minitickets_worker.settings import SettingsError

pytestmark = pytest.mark.unit

ENVIRONMENT = {
    "STAGE": "dev",
    "PROCESSED_JOBS_TABLE": "minitickets-dev-processed-jobs",
    "JOBS_QUEUE_URL": "https://queue.invalid",
    "SENDER": "tickets@example.org",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
}


def test_all_calls_of_one_message_at_their_slowest_fit_into_its_time() -> None:
    read_lease_and_record = 3 * clients.DYNAMODB_CALL_SECONDS
    assert read_lease_and_record + clients.SES_CALL_SECONDS <= MESSAGE_SECONDS


def test_every_client_makes_one_attempt_within_its_time_out(load_function: LoadFunction) -> None:
    module = load_function(ENVIRONMENT)
    made: Clients = module._clients
    for client, seconds in (
        (made.dynamodb, clients.DYNAMODB_CALL_SECONDS),
        (made.ses, clients.SES_CALL_SECONDS),
        (made.sqs, clients.SQS_CALL_SECONDS),
    ):
        config: Any = client.meta.config
        assert config.retries["total_max_attempts"] == 1
        assert config.connect_timeout + config.read_timeout == pytest.approx(seconds)


def test_clients_are_made_once_per_process(load_function: LoadFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_function(ENVIRONMENT)

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a client per call leaks sockets")

    monkeypatch.setattr("boto3.client", refuse)
    context = Context()
    for _ in range(2):
        assert module.lambda_handler({"Records": []}, context) == {"batchItemFailures": []}


def test_connections_that_a_freeze_may_have_killed_are_dropped_and_fresh_ones_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[str] = []

    class Client:
        def __init__(self, name: str, **options: object) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

    monkeypatch.setattr("boto3.client", Client)
    time = [0.0]
    made = Clients(monotonic=lambda: time[0])
    time[0] += clients.IDLE_SECONDS
    made.drop_idle_connections()
    assert closed == []
    time[0] += clients.IDLE_SECONDS + 1
    made.drop_idle_connections()
    assert sorted(closed) == ["dynamodb", "sesv2", "sqs"]


def test_a_function_without_its_settings_does_not_start(load_function: LoadFunction) -> None:
    with pytest.raises(SettingsError, match="SENDER"):
        load_function({name: value for name, value in ENVIRONMENT.items() if name != "SENDER"})


def test_an_event_that_is_no_batch_is_refused_by_name(load_function: LoadFunction) -> None:
    module = load_function(ENVIRONMENT)
    with pytest.raises(ValueError, match="Records"):
        module.lambda_handler({}, Context())


class Context:
    """Lambda's context of one invocation."""

    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return 9_900
