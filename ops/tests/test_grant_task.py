"""Granting a role by a one-off task: the command, what each end of the task means, and that every wait has an end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ops.grant.one_off_task import ContainerEnd, OneOffTask, RunningService, TaskState
from ops.grant.role_grant import RoleGrant, TaskEnd
from ops.refusal import Failure, Refusal

pytestmark = pytest.mark.unit

CLUSTER = "minitickets-dev"
DEFINITION = "arn:aws:ecs:eu-west-1:123456789012:task-definition/minitickets-dev-api:7"
TASK = f"arn:aws:ecs:eu-west-1:123456789012:task/{CLUSTER}/0a1b2c"
NETWORK = {"awsvpcConfiguration": {"subnets": ["subnet-1"], "securityGroups": ["sg-1"], "assignPublicIp": "ENABLED"}}
SERVICE = RunningService(task_definition=DEFINITION, network=NETWORK)
GRANT = ["python", "-m", "minitickets_api.grant", "--", "ada@example.org", "organiser"]


def stopped(*containers: ContainerEnd, reason: str = "Essential container in task exited") -> TaskState:
    return TaskState(status="STOPPED", reason=reason, containers=containers)


def ended(exit_code: int | None, *, name: str = "api", reason: str = "") -> ContainerEnd:
    return ContainerEnd(name=name, exit_code=exit_code, reason=reason)


WELL = stopped(ended(0, name="migrate"), ended(0))


@dataclass
class FakeTasks:
    """ECS: a task goes through ``states``, the last for ever; its log has a look's worth of lines at each look."""

    beside: RunningService | None = SERVICE
    states: Sequence[TaskState | BaseException | None] = (WELL,)
    logs: dict[str, list[Sequence[str]]] = field(default_factory=lambda: {"api": [["grant: done"]]})
    calls: list[tuple[str, Any]] = field(default_factory=list)

    def service(self, *, cluster: str, name: str) -> RunningService | None:
        self.calls.append(("service", (cluster, name)))
        return self.beside

    def start(self, *, cluster: str, beside: RunningService, container: str, command: Sequence[str]) -> str:
        self.calls.append(("start", (cluster, beside, container, list(command))))
        return TASK

    def state(self, *, cluster: str, task: str) -> TaskState | None:
        assert (cluster, task) == (CLUSTER, TASK)
        looks = sum(name == "state" for name, _ in self.calls)
        self.calls.append(("state", task))
        now = self.states[min(looks, len(self.states) - 1)]
        if isinstance(now, BaseException):
            raise now
        return now

    def stop(self, *, cluster: str, task: str, reason: str) -> None:
        self.calls.append(("stop", reason))

    def log(self, *, task_definition: str, container: str, task: str) -> Sequence[str]:
        assert (task_definition, task) == (DEFINITION, TASK)
        looks = self.logs.get(container, [[]])
        return looks.pop(0) if len(looks) > 1 else looks[0]

    def called(self, name: str) -> list[Any]:
        return [arguments for called, arguments in self.calls if called == name]


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Run:
    """A one-off task on ``tasks``; what it said stands in ``said``."""

    tasks: FakeTasks
    said: list[str] = field(default_factory=list)
    time: Time = field(default_factory=Time)

    def __call__(self, command: Sequence[str] = GRANT) -> TaskEnd:
        task = OneOffTask(
            stage="dev",
            cluster=CLUSTER,
            tasks=self.tasks,
            say=self.said.append,
            clock=lambda: self.time.now,
            sleep=self.time.sleep,
        )
        return task(command)


def grant(*, email: str = "ada@example.org", role: str = "organiser", revoke: bool = False) -> RoleGrant:
    return RoleGrant(stage="dev", email=email, role=role, revoke=revoke)


def test_the_address_goes_as_an_argument_of_its_own_that_is_never_an_option() -> None:
    assert grant().command == GRANT
    assert grant(email="-x@example.org").command[3:] == ["--", "-x@example.org", "organiser"]
    assert grant(revoke=True).command[3:] == ["--revoke", "--", "ada@example.org", "organiser"]


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"email": ""}, "Set EMAIL= to the address"),
        ({"email": "ada"}, "EMAIL='ada' is no mail address"),
        ({"email": "ada@example.org eve@example.org"}, "is no mail address"),
        ({"role": "admin"}, "ROLE='admin' is not known: it must be organiser"),
    ],
    ids=["none", "no address", "two", "role"],
)
def test_what_cannot_be_meant_is_refused_before_a_task_is_paid_for(wrong: dict[str, Any], match: str) -> None:
    with pytest.raises(Refusal, match=match):
        grant(**wrong)


def _end(exit_code: int) -> Callable[[Sequence[str]], TaskEnd]:
    return lambda _: TaskEnd(exit_code=exit_code, lines=["its own words"])


@pytest.mark.parametrize(("revoke", "words"), [(False, "is an organiser"), (True, "is not an organiser")])
def test_a_grant_that_is_done_says_who_is_what_and_where(revoke: bool, words: str) -> None:
    said: list[str] = []
    grant(revoke=revoke).carry_out(_end(0), say=said.append)
    assert said == ["  its own words", f"ada@example.org {words} in dev, from their next request on"]


@pytest.mark.parametrize(
    ("exit_code", "kind", "match"),
    [
        (3, Refusal, "Nobody has registered as ada@example.org in dev, so nothing was changed: have them register"),
        (2, Refusal, "The API refused EMAIL='ada@example.org'"),
        (1, Failure, "exit code 1; its own words are above"),
        (137, Failure, "exit code 137"),
    ],
)
def test_each_exit_code_of_the_task_has_its_meaning(exit_code: int, kind: type[Exception], match: str) -> None:
    said: list[str] = []
    with pytest.raises(kind, match=match):
        grant().carry_out(_end(exit_code), say=said.append)
    assert said == ["  its own words"]


def test_a_task_runs_beside_the_service_with_its_image_and_its_network() -> None:
    run = Run(FakeTasks())
    assert run() == TaskEnd(exit_code=0, lines=["grant: done"])
    assert run.tasks.called("service") == [(CLUSTER, "minitickets-dev-api")]
    assert run.tasks.called("start") == [(CLUSTER, SERVICE, "api", GRANT)]
    assert run.tasks.called("stop") == []


def test_each_step_of_the_task_is_told_once() -> None:
    steps: list[TaskState | None] = [None, *(TaskState(status=word) for word in ("PENDING", "PENDING", "RUNNING"))]
    run = Run(FakeTasks(states=[*steps, WELL]))
    run()
    assert run.said[1:] == ["  pending", "  running", "  stopped"]


def test_an_exit_code_comes_back_as_it_is() -> None:
    assert Run(FakeTasks(states=[stopped(ended(0, name="migrate"), ended(3))]))().exit_code == 3


def test_a_log_line_is_waited_for_but_not_for_ever() -> None:
    late = Run(FakeTasks(logs={"api": [[], [], ["late"]]}))
    assert late().lines == ["late"]
    never = Run(FakeTasks(logs={"api": [[]]}))
    assert never().lines == ["(no line of api in its log yet)"]
    assert never.time.now < 60


def test_without_a_running_service_nothing_is_started() -> None:
    run = Run(FakeTasks(beside=None))
    with pytest.raises(Refusal, match=r"No API runs in dev .*: run make up STAGE=dev"):
        run()
    assert run.tasks.called("start") == []


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (
            stopped(ended(None, reason="CannotPullContainerError: not found"), reason="Task failed to start"),
            "not found",
        ),
        (stopped(ended(None), reason="ResourceInitializationError: unable to pull secrets"), "unable to pull secrets"),
        (stopped(ended(1, name="migrate"), ended(None), reason=""), "migrate ended with exit code 1"),
        (stopped(reason=""), "ECS gives no reason"),
    ],
    ids=["image", "secrets", "migrations", "no reason"],
)
def test_a_task_that_could_not_start_says_why(state: TaskState, told: str) -> None:
    run = Run(FakeTasks(states=[state], logs={"migrate": [["migrate: the database refuses"]]}))
    with pytest.raises(Failure, match="could not start, so nothing was changed in dev") as failure:
        run()
    assert told in str(failure.value)
    assert ("  migrate: migrate: the database refuses" in run.said) == ("migrate" in told)


def test_a_task_that_does_not_end_is_stopped_and_said() -> None:
    run = Run(FakeTasks(states=[TaskState(status="RUNNING")]))
    with pytest.raises(Failure, match="had not ended after 300 s and is being stopped"):
        run()
    assert run.tasks.called("stop") == ["did not end in time"]
    assert 300 <= run.time.now < 310


def test_ctrl_c_stops_the_task_too() -> None:
    run = Run(FakeTasks(states=[KeyboardInterrupt()]))
    with pytest.raises(KeyboardInterrupt):
        run()
    assert run.tasks.called("stop") == ["interrupted by the operator"]


def test_a_log_that_may_not_be_read_does_not_hide_how_the_task_ended() -> None:
    class Unreadable(FakeTasks):
        def log(self, *, task_definition: str, container: str, task: str) -> Sequence[str]:
            raise Failure("AWS did not let us read the log")

    assert Run(Unreadable())() == TaskEnd(exit_code=0, lines=["(AWS did not let us read the log)"])
