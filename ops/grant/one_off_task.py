"""A command as a one-off task of a stage's running API: started, watched until it ends, told apart from what failed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ops.grant.role_grant import TaskEnd
from ops.refusal import Failure, Refusal

# The container of the task definition whose command is replaced (infra/src/compute/task.py).
CONTAINER = "api"

# Fargate takes about half a minute to start a task, the migrations before the command a minute at the most.
_LONGEST_SECONDS = 300.0
_PAUSE_SECONDS = 3.0
# A log line is a few seconds on its way after the container that wrote it has ended.
_LOG_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class RunningService:
    """What of a service a task beside it shares: its task definition, and ECS's own document of its network."""

    task_definition: str
    network: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ContainerEnd:
    """A container of a stopped task; ``exit_code`` is None where it never ran, and ``reason`` may then say why."""

    name: str
    exit_code: int | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class TaskState:
    """A task as ECS shows it now. ``status`` is ECS's own word; ``reason`` and ``containers`` tell of its end."""

    status: str
    reason: str = ""
    containers: Sequence[ContainerEnd] = field(default=())


class Tasks(Protocol):
    """What is asked of ECS and its logs; :class:`ops.grant.aws_tasks.AwsTasks` answers it, with a Failure where AWS
    refuses."""

    def service(self, *, cluster: str, name: str) -> RunningService | None: ...
    def start(self, *, cluster: str, beside: RunningService, container: str, command: Sequence[str]) -> str: ...
    def state(self, *, cluster: str, task: str) -> TaskState | None: ...
    def stop(self, *, cluster: str, task: str, reason: str) -> None: ...
    def log(self, *, task_definition: str, container: str, task: str) -> Sequence[str]: ...


class OneOffTask:
    """Runs commands beside the service of one stage's API."""

    def __init__(
        self,
        *,
        stage: str,
        cluster: str,
        tasks: Tasks,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._stage = stage
        self._cluster = cluster
        self._tasks = tasks
        self._say = say
        self._clock = clock
        self._sleep = sleep

    def __call__(self, command: Sequence[str]) -> TaskEnd:
        """Run ``command`` to its end; five minutes at the most, then it is stopped.

        Refusal where no service runs whose network and image it could have. Failure where it could not start, or did
        not end in time.
        """
        beside = self._tasks.service(cluster=self._cluster, name=f"{self._cluster}-api")
        if beside is None:
            raise Refusal(
                f"No API runs in {self._stage} (cluster {self._cluster}), so there is nothing to run this beside: "
                f"run make up STAGE={self._stage}"
            )
        # What runs, not what the stack names last: a deploy that failed was rolled back by ECS alone.
        task = self._tasks.start(cluster=self._cluster, beside=beside, container=CONTAINER, command=command)
        number = task.rpartition("/")[2]
        self._say(f"Task {number} of {self._cluster} is starting (about a minute; {_LONGEST_SECONDS:g} s at the most)")
        try:
            ended = self._wait(task)
        except KeyboardInterrupt:
            self._tasks.stop(cluster=self._cluster, task=task, reason="interrupted by the operator")
            self._say(f"Task {number} is being stopped. What it had done by then stays; running it again is safe")
            raise
        if ended is None:
            self._tasks.stop(cluster=self._cluster, task=task, reason="did not end in time")
            raise Failure(
                f"Task {number} had not ended after {_LONGEST_SECONDS:g} s and is being stopped. Whether it did its "
                "work is not known; running this again is safe"
            )
        return self._end(beside, task, ended)

    def _wait(self, task: str) -> TaskState | None:
        end = self._clock() + _LONGEST_SECONDS
        told = ""
        while self._clock() < end:
            state = self._tasks.state(cluster=self._cluster, task=task)
            # None: ECS may need a moment to know what it has just started.
            if state is not None and state.status != told:
                told = state.status
                self._say(f"  {told.lower()}")
            if state is not None and state.status == "STOPPED":
                return state
            self._sleep(_PAUSE_SECONDS)
        return None

    def _end(self, beside: RunningService, task: str, ended: TaskState) -> TaskEnd:
        own = next((found for found in ended.containers if found.name == CONTAINER), None)
        if own is not None and own.exit_code is not None:
            return TaskEnd(exit_code=own.exit_code, lines=self._lines(beside, CONTAINER, task))
        others = [found for found in ended.containers if found.name != CONTAINER and found.exit_code not in (None, 0)]
        for other in others:
            for line in self._lines(beside, other.name, task):
                self._say(f"  {other.name}: {line}")
        reasons = [
            ended.reason,
            *(f"{found.name} ended with exit code {found.exit_code}" for found in others),
            *(f"{found.name}: {found.reason}" for found in ended.containers if found.reason),
        ]
        why = "; ".join(reason for reason in reasons if reason) or "ECS gives no reason"
        raise Failure(f"The task could not start, so nothing was changed in {self._stage}: {why}")

    def _lines(self, beside: RunningService, container: str, task: str) -> Sequence[str]:
        """What the container wrote. Nothing is not an error: the exit code has told what happened already."""
        end = self._clock() + _LOG_SECONDS
        while True:
            try:
                lines = self._tasks.log(task_definition=beside.task_definition, container=container, task=task)
            except Failure as failure:
                return [f"({failure})"]
            if lines or self._clock() >= end:
                return lines or [f"(no line of {container} in its log yet)"]
            self._sleep(_PAUSE_SECONDS)
