"""ECS and the tasks' log groups, as a one-off task needs them."""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ops.aws_account import AwsAccount, aws_failure, error_code
from ops.grant.one_off_task import ContainerEnd, RunningService, TaskState
from ops.refusal import Failure

_MOST_LINES = 50

# How ECS says that a cluster or a service is not there.
_NOT_THERE = ("ClusterNotFoundException", "ServiceNotFoundException")


class AwsTasks:
    """Tasks in the account's region. Failure where AWS refuses."""

    def __init__(self, account: AwsAccount) -> None:
        self._ecs = account.client("ecs")
        self._logs = account.client("logs")

    def service(self, *, cluster: str, name: str) -> RunningService | None:
        """The service, or None where there is none, or it is being deleted."""
        try:
            found = self._ecs.describe_services(cluster=cluster, services=[name])["services"]
        except ClientError as error:
            if error_code(error) in _NOT_THERE:
                return None
            raise aws_failure(f"look up service {name}", error) from error
        except BotoCoreError as error:
            raise aws_failure(f"look up service {name}", error) from error
        live = [service for service in found if service["status"] == "ACTIVE"]
        if not live:
            return None
        return RunningService(task_definition=live[0]["taskDefinition"], network=live[0]["networkConfiguration"])

    def start(self, *, cluster: str, beside: RunningService, container: str, command: Sequence[str]) -> str:
        """Start a task whose ``container`` runs ``command``; the task's ARN."""
        try:
            answer = self._ecs.run_task(
                cluster=cluster,
                taskDefinition=beside.task_definition,
                launchType="FARGATE",
                networkConfiguration=beside.network,
                overrides={"containerOverrides": [{"name": container, "command": list(command)}]},
                propagateTags="TASK_DEFINITION",
                startedBy="minitickets-operator",
                count=1,
            )
        except (BotoCoreError, ClientError) as error:
            raise aws_failure(f"run a task in {cluster}", error) from error
        if not answer["tasks"]:
            told = "; ".join(
                " ".join(part for part in (failure.get("reason"), failure.get("detail")) if part)
                for failure in answer["failures"]
            )
            raise Failure(f"ECS started no task in {cluster}, so nothing was changed: {told or 'it gives no reason'}")
        return str(answer["tasks"][0]["taskArn"])

    def state(self, *, cluster: str, task: str) -> TaskState | None:
        """The task as it is now; None while, or once, ECS does not know it."""
        try:
            found = self._ecs.describe_tasks(cluster=cluster, tasks=[task])["tasks"]
        except (BotoCoreError, ClientError) as error:
            raise aws_failure(f"watch task {task} (it goes on; running this again is safe)", error) from error
        if not found:
            return None
        return TaskState(
            status=str(found[0]["lastStatus"]),
            reason=str(found[0].get("stoppedReason", "")),
            containers=tuple(_container(container) for container in found[0].get("containers", [])),
        )

    def stop(self, *, cluster: str, task: str, reason: str) -> None:
        """Have the task stopped; does not wait for it."""
        try:
            self._ecs.stop_task(cluster=cluster, task=task, reason=reason)
        except (BotoCoreError, ClientError) as error:
            raise aws_failure(f"stop task {task}", error) from error

    def log(self, *, task_definition: str, container: str, task: str) -> Sequence[str]:
        """The first lines that a container of the task wrote; empty while none has arrived."""
        try:
            known = self._ecs.describe_task_definition(taskDefinition=task_definition)["taskDefinition"]
            options = next(
                found["logConfiguration"]["options"]
                for found in known["containerDefinitions"]
                if found["name"] == container
            )
            events = self._logs.get_log_events(
                logGroupName=options["awslogs-group"],
                logStreamName=f"{options['awslogs-stream-prefix']}/{container}/{task.rpartition('/')[2]}",
                startFromHead=True,
                limit=_MOST_LINES,
            )["events"]
        except ClientError as error:
            if error_code(error) == "ResourceNotFoundException":  # the stream is made with its first line
                return ()
            raise aws_failure(f"read the log of {container}", error) from error
        except BotoCoreError as error:
            raise aws_failure(f"read the log of {container}", error) from error
        return tuple(event["message"].rstrip() for event in events)


def _container(found: dict[str, Any]) -> ContainerEnd:
    return ContainerEnd(
        name=str(found["name"]), exit_code=found.get("exitCode"), reason=" ".join(str(found.get("reason", "")).split())
    )
