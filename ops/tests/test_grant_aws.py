"""What a one-off task asks of AWS: the stubs hold requests and answers to the services' own models."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.stub import Stubber

from ops.aws_account import AwsAccount
from ops.grant.aws_tasks import AwsTasks
from ops.grant.one_off_task import ContainerEnd, RunningService, TaskState
from ops.refusal import Failure

pytestmark = pytest.mark.unit

CLUSTER = "minitickets-dev"
DEFINITION = "arn:aws:ecs:eu-west-1:123456789012:task-definition/minitickets-dev-api:7"
TASK = f"arn:aws:ecs:eu-west-1:123456789012:task/{CLUSTER}/0a1b2c"
NETWORK = {"awsvpcConfiguration": {"subnets": ["subnet-1"], "securityGroups": ["sg-1"], "assignPublicIp": "ENABLED"}}
SERVICE = RunningService(task_definition=DEFINITION, network=NETWORK)
COMMAND = ["python", "-m", "minitickets_api.grant", "--", "ada@example.org", "organiser"]


@dataclass(frozen=True, kw_only=True)
class Stubs:
    """The adapter with both services stubbed."""

    tasks: AwsTasks
    ecs: Stubber
    logs: Stubber


class _Account(AwsAccount):
    """An account whose clients are kept, to be stubbed."""

    def __init__(self) -> None:
        super().__init__(region="eu-west-1")
        self.clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        return self.clients.setdefault(service, super().client(service))


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubs]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    kept = _Account()
    tasks = AwsTasks(kept)
    with Stubber(kept.clients["ecs"]) as ecs, Stubber(kept.clients["logs"]) as logs:
        yield Stubs(tasks=tasks, ecs=ecs, logs=logs)
        ecs.assert_no_pending_responses()
        logs.assert_no_pending_responses()


def _service(status: str) -> dict[str, Any]:
    return {"status": status, "taskDefinition": DEFINITION, "networkConfiguration": NETWORK}


def test_the_service_that_runs_gives_its_definition_and_its_network(stubs: Stubs) -> None:
    asked = {"cluster": CLUSTER, "services": ["minitickets-dev-api"]}
    stubs.ecs.add_response("describe_services", {"services": [_service("ACTIVE")], "failures": []}, asked)
    assert stubs.tasks.service(cluster=CLUSTER, name="minitickets-dev-api") == SERVICE


def test_no_service_a_deleted_one_and_no_cluster_are_all_none(stubs: Stubs) -> None:
    stubs.ecs.add_response("describe_services", {"services": [], "failures": [{"reason": "MISSING"}]})
    stubs.ecs.add_response("describe_services", {"services": [_service("INACTIVE")], "failures": []})
    stubs.ecs.add_client_error("describe_services", "ClusterNotFoundException", "Cluster not found.")
    assert [stubs.tasks.service(cluster=CLUSTER, name="x") for _ in range(3)] == [None] * 3
    stubs.ecs.add_client_error("describe_services", "AccessDeniedException", "not yours")
    with pytest.raises(Failure, match=r"look up service x \(AccessDeniedException: not yours"):
        stubs.tasks.service(cluster=CLUSTER, name="x")


def test_a_task_is_one_on_fargate_with_one_container_s_command_replaced(stubs: Stubs) -> None:
    asked = {
        "cluster": CLUSTER,
        "taskDefinition": DEFINITION,
        "launchType": "FARGATE",
        "networkConfiguration": NETWORK,
        "overrides": {"containerOverrides": [{"name": "api", "command": COMMAND}]},
        "propagateTags": "TASK_DEFINITION",
        "startedBy": "minitickets-operator",
        "count": 1,
    }
    stubs.ecs.add_response("run_task", {"tasks": [{"taskArn": TASK}], "failures": []}, asked)
    assert stubs.tasks.start(cluster=CLUSTER, beside=SERVICE, container="api", command=COMMAND) == TASK


def test_a_call_that_is_repeated_starts_no_second_task() -> None:
    model = _Account().client("ecs").meta.service_model.operation_model("RunTask")
    assert [member for member in model.idempotent_members if member == "clientToken"], "botocore fills it in"


def test_a_task_that_ecs_does_not_start_is_a_failure_with_its_reason(stubs: Stubs) -> None:
    failures = [{"reason": "RESOURCE:ENI", "detail": "no address left"}]
    stubs.ecs.add_response("run_task", {"tasks": [], "failures": failures})
    with pytest.raises(Failure, match=r"started no task in minitickets-dev.*RESOURCE:ENI no address left"):
        stubs.tasks.start(cluster=CLUSTER, beside=SERVICE, container="api", command=COMMAND)
    stubs.ecs.add_client_error("run_task", "AccessDeniedException", "no iam:PassRole")
    with pytest.raises(Failure, match=r"run a task in minitickets-dev \(AccessDeniedException: no iam:PassRole"):
        stubs.tasks.start(cluster=CLUSTER, beside=SERVICE, container="api", command=COMMAND)


def test_a_task_s_end_is_read_container_by_container(stubs: Stubs) -> None:
    containers = [{"name": "migrate", "exitCode": 0}, {"name": "api", "reason": "CannotPullContainerError:\n  gone"}]
    ecs_task = {"lastStatus": "STOPPED", "stoppedReason": "failed", "containers": containers}
    stubs.ecs.add_response("describe_tasks", {"tasks": [ecs_task]}, {"cluster": CLUSTER, "tasks": [TASK]})
    stubs.ecs.add_response("describe_tasks", {"tasks": [], "failures": [{"reason": "MISSING"}]})
    assert stubs.tasks.state(cluster=CLUSTER, task=TASK) == TaskState(
        status="STOPPED",
        reason="failed",
        containers=(
            ContainerEnd(name="migrate", exit_code=0, reason=""),
            ContainerEnd(name="api", exit_code=None, reason="CannotPullContainerError: gone"),
        ),
    )
    assert stubs.tasks.state(cluster=CLUSTER, task=TASK) is None


def _definition() -> dict[str, Any]:
    options = {"awslogs-group": "/ecs/minitickets-dev-api", "awslogs-stream-prefix": "api"}
    container = {"name": "api", "logConfiguration": {"logDriver": "awslogs", "options": options}}
    return {"taskDefinition": {"containerDefinitions": [container]}}


def test_the_log_is_found_by_what_the_definition_says(stubs: Stubs) -> None:
    for _ in range(3):
        stubs.ecs.add_response("describe_task_definition", _definition(), {"taskDefinition": DEFINITION})
    stubs.logs.add_client_error("get_log_events", "ResourceNotFoundException", "no stream")
    asked = {
        "logGroupName": "/ecs/minitickets-dev-api",
        "logStreamName": "api/api/0a1b2c",
        "startFromHead": True,
        "limit": 50,
    }
    stubs.logs.add_response("get_log_events", {"events": [{"message": "grant: done\n"}]}, asked)
    stubs.logs.add_client_error("get_log_events", "AccessDeniedException", "not yours")
    log = {"task_definition": DEFINITION, "container": "api", "task": TASK}
    assert stubs.tasks.log(**log) == ()
    assert stubs.tasks.log(**log) == ("grant: done",)
    with pytest.raises(Failure, match="read the log of api"):
        stubs.tasks.log(**log)
