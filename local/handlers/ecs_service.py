"""ECS services: tasks as processes of this machine, healthy, behind their load balancer, replaced when they die."""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from local.handlers.ecs import ecs_tags, outputs_of, retag
from local.handlers.elbv2 import load_balancers_of, set_targets
from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs, PlatformServices
from local.handlers.refusals import found, gone, refusals
from local.handlers.shapes import chosen, physical_name, plain
from local.handlers.tasks import (
    TaskDefinition,
    argv,
    container_environment,
    must_finish_first,
    require_execution_permissions,
    started_in_order,
    stop_seconds,
    wait_for_end,
    wait_until_healthy,
)
from local.processes import Child

_HEALTHY_SECONDS = 60.0
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 30.0


@dataclass
class _Task:
    """One running copy of a task definition: its processes by container, in the order they started."""

    definition: TaskDefinition
    port: int
    processes: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    stopping: bool = False
    ended: tuple[str, int] | None = None  # the process that ended, and its exit code, before the task was in service


class Service(Handler):
    """A service: keeps its tasks running, healthy, and behind its load balancer.

    A deployment starts the new tasks, waits for their health check, switches the targets, then ends the old ones; one
    that fails leaves the old ones serving. An essential container that dies is replaced, with a growing pause.
    """

    resource_type = "aws:ecs/service:Service"
    replaced_by = frozenset({"cluster", "iamRole", "launchType", "name", "schedulingStrategy"})

    def __init__(self, platform: PlatformServices) -> None:
        super().__init__(platform)
        self._tasks: dict[str, list[_Task]] = {}
        self._count = 0
        self._lock = threading.RLock()

    def create(self, name: str, inputs: Inputs) -> Made:
        title = physical_name(inputs, name)
        if self._live(inputs.get("cluster", "default"), title):
            raise HandlerError("InvalidParameterException: Creation of service was not idempotent.")
        definition = TaskDefinition.find(self.platform, inputs["taskDefinition"])
        require_execution_permissions(self.platform, definition)
        self._require_listener(inputs)
        request = chosen(
            inputs,
            {
                "launchType": "launchType", "platformVersion": "platformVersion", "propagateTags": "propagateTags",
                "healthCheckGracePeriodSeconds": "healthCheckGracePeriodSeconds",
                "enableEcsManagedTags": "enableECSManagedTags", "enableExecuteCommand": "enableExecuteCommand",
                "schedulingStrategy": "schedulingStrategy",
            },
        )  # fmt: skip
        arn: str = self.platform.aws("ecs").create_service(
            cluster=inputs.get("cluster", "default"),
            serviceName=title,
            taskDefinition=definition.arn,
            loadBalancers=plain(list(inputs.get("loadBalancers") or [])),
            tags=ecs_tags(inputs),
            **request,
            **_deployment(inputs),
        )["service"]["serviceArn"]
        outputs = outputs_of(arn, inputs, name=title)
        try:
            self._deploy(arn, outputs, definition)
        except BaseException:
            self.delete(arn, outputs)
            raise
        return Made(arn, outputs)

    def read(self, id: str, inputs: Inputs) -> Made | None:
        title = id.rsplit("/", 1)[-1] or inputs.get("name")
        live = self._live(inputs.get("cluster", "default"), title) if title else None
        if live is None:
            return None
        arn = live["serviceArn"]
        outputs = outputs_of(arn, inputs, name=title)
        if not id and arn not in self._tasks:
            self.resume(arn, outputs)
        return Made(arn, outputs)

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        definition = TaskDefinition.find(self.platform, new["taskDefinition"])
        require_execution_permissions(self.platform, definition)
        outputs = outputs_of(id, new, name=old["name"])
        deploys = any(
            old.get(key) != new.get(key) for key in ("taskDefinition", "desiredCount", "loadBalancers")
        ) or bool(new.get("forceNewDeployment"))
        if deploys:
            self._deploy(id, outputs, definition, before=old)
        self.platform.aws("ecs").update_service(
            cluster=new.get("cluster", "default"),
            service=old["name"],
            taskDefinition=definition.arn,
            loadBalancers=plain(list(new.get("loadBalancers") or [])),
            **_deployment(new),
        )
        retag(self.platform, id, old, new)
        return outputs

    def delete(self, id: str, outputs: Outputs) -> None:
        for group in _target_groups(outputs):
            set_targets(self.platform, group, [])
        with self._lock:
            tasks = self._tasks.pop(id, [])
        for task in tasks:
            self._stop(task)
        ecs = self.platform.aws("ecs")
        gone(lambda: ecs.delete_service(cluster=outputs.get("cluster", "default"), service=outputs["name"], force=True))

    def resume(self, id: str, outputs: Outputs) -> None:
        self._deploy(id, outputs, TaskDefinition.find(self.platform, outputs["taskDefinition"]))

    def _live(self, cluster: str, title: str) -> dict[str, Any] | None:
        answer = found(lambda: self.platform.aws("ecs").describe_services(cluster=cluster, services=[title]))
        active = [entry for entry in (answer or {}).get("services", []) if entry["status"] == "ACTIVE"]
        return active[0] if active else None

    def _require_listener(self, inputs: Inputs) -> None:
        for arn in _target_groups(inputs):
            if not load_balancers_of(self.platform, arn):
                raise HandlerError(
                    f"InvalidParameterException: The target group with targetGroupArn {arn} does not have an "
                    "associated load balancer. Let the service depend on its listener"
                )

    def _deploy(
        self, service: str, outputs: Outputs, definition: TaskDefinition, *, before: Outputs | None = None
    ) -> None:
        started: list[_Task] = []
        try:
            for _ in range(plain(outputs.get("desiredCount", 1))):
                started.append(self._start(service, outputs, definition))  # noqa: PERF401 - each counts once it runs
        except BaseException:
            for task in started:
                self._stop(task)
            raise
        with self._lock:
            old, self._tasks[service] = self._tasks.get(service, []), started
            ended = [(task, *task.ended) for task in started if task.ended]
        wanted = _target_groups(outputs)
        for group in wanted:
            set_targets(self.platform, group, [task.port for task in started])
        for group in _target_groups(before or {}):
            if group not in wanted:
                set_targets(self.platform, group, [])
        for task in old:
            self._stop(task)
        for task, name, code in ended:
            threading.Thread(target=self._replace, args=(service, outputs, task, name, code), daemon=True).start()

    def _start(self, service: str, outputs: Outputs, definition: TaskDefinition) -> _Task:
        task = _Task(definition=definition, port=self.platform.free_port())
        entries = outputs.get("loadBalancers") or []
        title = outputs["name"]
        try:
            for container in started_in_order(definition):
                began = time.monotonic()
                serving = next((entry for entry in entries if entry.get("containerName") == container["name"]), None)
                child = self._start_container(service, outputs, task, container, serving)
                state = "runs"
                if must_finish_first(definition, container["name"]):
                    wait_for_end(child, container)
                    state = "has done its work"
                elif serving is not None:
                    self._wait_until_healthy(child, task.port, serving["targetGroupArn"])
                    state = "answers"
                self.platform.say(f"{title}: {container['name']} {state} after {time.monotonic() - began:.1f} s")
        except BaseException:
            self._stop(task)
            raise
        return task

    def _start_container(
        self, service: str, outputs: Outputs, task: _Task, container: dict[str, Any], serving: Inputs | None
    ) -> Child:
        with self._lock:
            self._count += 1
            name = f"{outputs['name']}.{container['name']}.{self._count}"
        folder = self.platform.state / "ecs" / outputs["name"]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        environment = container_environment(self.platform, task.definition, container, home=str(folder))
        if serving is not None:
            declared = str(plain(serving.get("containerPort")))
            if environment.get("PORT") == declared:
                environment["PORT"] = str(task.port)
                self.platform.say(
                    f"replaced: PORT={task.port} in {container['name']}: tasks share this machine's ports"
                )
            else:
                raise HandlerError(
                    f"container {container['name']} must take its port from PORT={declared} in its environment: tasks "
                    "share the ports of this machine"
                )
        waited_for = must_finish_first(task.definition, container["name"])
        essential = container.get("essential", True) and not waited_for
        child = self.platform.start_process(
            name,
            argv(container),
            env=environment,
            cwd=folder,
            on_exit=(lambda code: self._replace(service, outputs, task, name, code)) if essential else None,
        )
        task.processes.append((container, name))
        return child

    def _wait_until_healthy(self, child: Child, port: int, target_group: str) -> None:
        group = self.platform.aws("elbv2").describe_target_groups(TargetGroupArns=[target_group])["TargetGroups"][0]
        wait_until_healthy(
            child,
            port=port,
            path=group.get("HealthCheckPath") or "/",
            codes=(group.get("Matcher") or {}).get("HttpCode") or "200",
            seconds=_HEALTHY_SECONDS,
        )

    def _stop(self, task: _Task) -> None:
        task.stopping = True
        for container, name in reversed(task.processes):
            self.platform.stop_process(name, seconds=stop_seconds(container))

    def _replace(self, service: str, outputs: Outputs, task: _Task, name: str, code: int) -> None:
        """An essential container ended by itself: its task is over, and another takes its place."""
        with self._lock:
            if task.stopping:
                return
            if task not in self._tasks.get(service, []):
                task.ended = name, code  # not in service yet: whoever deploys it sees this
                return
            task.stopping = True
        pause = _FIRST_BACKOFF_SECONDS
        self.platform.say(f"{name} ended with exit code {code}; starting another")
        self._stop(task)
        while True:
            with self._lock:
                if task not in self._tasks.get(service, []):
                    return  # deleted or deployed anew meanwhile
            try:
                with refusals():  # the emulator may be away for a moment
                    successor = self._start(service, outputs, task.definition)
            except HandlerError as error:
                self.platform.say(f"{outputs['name']}: {error}; next attempt in {pause:g} s")
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_BACKOFF_SECONDS)
                continue
            break
        with self._lock:
            tasks = self._tasks.get(service, [])
            abandoned = task not in tasks
            if not abandoned:
                tasks[tasks.index(task)] = successor
            ended = successor.ended
        if abandoned:
            self._stop(successor)
            return
        self._name_targets(service, outputs)
        if ended is not None:
            self._replace(service, outputs, successor, *ended)  # it died between its health check and its service

    def _name_targets(self, service: str, outputs: Outputs) -> None:
        """Make the running tasks the targets, and do not give up: a task that has none is of no use to anybody."""
        pause = _FIRST_BACKOFF_SECONDS
        while True:
            try:
                # Under the lock: of two that are replaced at once, the one that comes last must name both.
                with self._lock, refusals():
                    if service not in self._tasks:
                        return  # deleted meanwhile
                    for group in _target_groups(outputs):
                        set_targets(self.platform, group, [entry.port for entry in self._tasks[service]])
            except HandlerError as error:
                self.platform.say(f"{outputs['name']}: its targets: {error}; next attempt in {pause:g} s")
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_BACKOFF_SECONDS)
            else:
                return


def _deployment(inputs: Inputs) -> dict[str, Any]:
    """What a create and an update both say about how tasks are run."""
    configuration: dict[str, Any] = chosen(
        inputs,
        {
            "deploymentMaximumPercent": "maximumPercent",
            "deploymentMinimumHealthyPercent": "minimumHealthyPercent",
            "deploymentCircuitBreaker": "deploymentCircuitBreaker",
        },
    )
    request: dict[str, Any] = {"desiredCount": plain(inputs.get("desiredCount", 1))}
    if configuration:
        request["deploymentConfiguration"] = configuration
    if network := inputs.get("networkConfiguration"):
        request["networkConfiguration"] = {
            "awsvpcConfiguration": {
                "subnets": list(network.get("subnets") or []),
                "securityGroups": list(network.get("securityGroups") or []),
                "assignPublicIp": "ENABLED" if network.get("assignPublicIp") else "DISABLED",
            }
        }
    return request


def _target_groups(outputs: Inputs) -> list[str]:
    return [entry["targetGroupArn"] for entry in outputs.get("loadBalancers") or [] if entry.get("targetGroupArn")]
