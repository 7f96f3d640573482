"""ECS tasks as processes of this machine: what a container is given, and how it is started, asked and ended."""

import http.client
import json
import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from local.handlers.handler import HandlerError, Outputs, PlatformServices
from local.handlers.permissions import missing_actions, require_trust
from local.handlers.refusals import code_of
from local.processes import Child, wait_until

_SERVICE = "ecs-tasks.amazonaws.com"
_PULL = ("ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage")
_DEFAULT_STOP_SECONDS = 30  # ECS's own default
_DEPENDENCY_SECONDS = 120.0
_PROBE_SECONDS = 2.0

# The wheels' servers have no TLS, so exactly these settings of a task are replaced, and it is said.
_WITHOUT_TLS = {"DB_SSLMODE": "disable", "REDIS_TLS": "false"}


@dataclass(frozen=True, kw_only=True)
class TaskDefinition:
    """What the program registered: containers as ECS writes them, and the two roles."""

    arn: str
    family: str
    task_role_arn: str
    execution_role_arn: str
    containers: tuple[dict[str, Any], ...]

    @classmethod
    def from_outputs(cls, outputs: Outputs) -> "TaskDefinition":
        """From the outputs of ``aws.ecs.TaskDefinition``."""
        return cls(
            arn=outputs["arn"],
            family=outputs["family"],
            task_role_arn=outputs["taskRoleArn"],
            execution_role_arn=outputs["executionRoleArn"],
            containers=tuple(json.loads(outputs["containerDefinitions"])),
        )

    @classmethod
    def find(cls, platform: PlatformServices, arn: str) -> "TaskDefinition":
        """The registered one; HandlerError if there is none or it was deregistered."""
        try:
            found = platform.aws("ecs").describe_task_definition(taskDefinition=arn)["taskDefinition"]
        except ClientError as error:
            raise HandlerError(f"ClientException: {arn}: {error.response['Error']['Message']}") from error
        if found.get("status") == "INACTIVE":
            raise HandlerError(f"ClientException: TaskDefinition is inactive ({arn})")
        return cls(
            arn=found["taskDefinitionArn"],
            family=found["family"],
            task_role_arn=found["taskRoleArn"],
            execution_role_arn=found["executionRoleArn"],
            containers=tuple(found["containerDefinitions"]),
        )

    def container(self, name: str) -> dict[str, Any]:
        """The container of that name; HandlerError names those that there are."""
        for container in self.containers:
            if container["name"] == name:
                return container
        names = ", ".join(container["name"] for container in self.containers)
        raise HandlerError(f"ClientException: task definition {self.arn} has no container {name}; it has {names}")


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """How a one-off task ended, and all it wrote (standard output and error together)."""

    exit_code: int
    output: str


def require_execution_permissions(platform: PlatformServices, definition: TaskDefinition) -> None:
    """HandlerError unless ECS could pull the image, write the log and read the secrets in the execution role's name.

    The emulator starts no container, so it asks none of this.
    """
    refusal = "ClientException: ECS was unable to assume the role"
    for role in (definition.task_role_arn, definition.execution_role_arn):
        require_trust(platform, role, _SERVICE, refusal)
    role = definition.execution_role_arn
    missing = missing_actions(platform, role, ["ecr:GetAuthorizationToken"], "*")
    repositories = _repositories(platform, definition)
    refused = [missing_actions(platform, role, _PULL, arn) for arn in repositories]
    if refused and all(refused):
        missing += refused[0]
    for container in definition.containers:
        options = (container.get("logConfiguration") or {}).get("options") or {}
        if group := options.get("awslogs-group"):
            stream = f"arn:aws:logs:{platform.region}:{platform.account}:log-group:{group}:log-stream:x"
            missing += missing_actions(platform, role, ["logs:CreateLogStream", "logs:PutLogEvents"], stream)
        for secret in container.get("secrets") or []:
            arn, _ = _split_reference(secret["valueFrom"])
            missing += [
                f"{action} on {arn}"
                for action in missing_actions(platform, role, ["secretsmanager:GetSecretValue"], arn)
            ]
    if missing:
        raise HandlerError(
            "ResourceInitializationError: unable to pull secrets or registry auth: AccessDeniedException: "
            f"{role} is not authorized to perform {', '.join(missing)}"
        )


def _repositories(platform: PlatformServices, definition: TaskDefinition) -> list[str]:
    """ARNs that an image may be pulled from; all of the account's where the image names no registry (``local``)."""
    names = {
        container["image"].split("/", 1)[1].split("@")[0].split(":")[0]
        for container in definition.containers
        if ".dkr.ecr." in container["image"]
    }
    known = platform.aws("ecr").describe_repositories()["repositories"]
    return [entry["repositoryArn"] for entry in known if not names or entry["repositoryName"] in names]


def container_environment(
    platform: PlatformServices, definition: TaskDefinition, container: Mapping[str, Any], *, home: str
) -> dict[str, str]:
    """All that the container's process is given: the definition's values and secrets, and what the platform adds."""
    values = {entry["name"]: str(entry["value"]) for entry in container.get("environment") or []}
    values |= _secrets(platform, definition, container)
    for name, replacement in _WITHOUT_TLS.items():
        if name in values and values[name] != replacement:
            values[name] = replacement
            platform.say(
                f"replaced: {name}={replacement} in {container['name']}: the servers of this machine have no TLS"
            )
    # With a real stage's origin, the pages would refuse every form that is sent from this machine.
    if origin := values.pop("PUBLIC_URL", None):
        platform.say(f"replaced: no PUBLIC_URL={origin} in {container['name']}: it answers at 127.0.0.1")
    return {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": home,
        **values,
        "LISTEN_HOST": "127.0.0.1",  # a container's own network ends at its border; this machine's does not
        "LOCAL_MAILBOX_URL": platform.mailbox_url,  # the pages say that this is no real stage, and where its mails are
        "AWS_DEFAULT_REGION": platform.region,
        "AWS_ENDPOINT_URL": platform.endpoint,
        "AWS_CSM_ENABLED": "true",
        "AWS_CSM_PORT": str(platform.calls_port),
        "AWS_CSM_CLIENT_ID": definition.task_role_arn.rsplit("/", 1)[-1],
        **platform.lend_credentials(definition.task_role_arn),
    }


def _secrets(platform: PlatformServices, definition: TaskDefinition, container: Mapping[str, Any]) -> dict[str, str]:
    references = {entry["name"]: entry["valueFrom"] for entry in container.get("secrets") or []}
    if not references:
        return {}
    client = platform.aws_as("secretsmanager", definition.execution_role_arn)
    values: dict[str, str] = {}
    for name, reference in references.items():
        arn, key = _split_reference(reference)
        try:
            text = client.get_secret_value(SecretId=arn)["SecretString"]
        except ClientError as error:
            raise HandlerError(
                f"ResourceInitializationError: unable to pull secrets: {name} from {arn}: {code_of(error)}"
            ) from error
        except KeyError:
            raise HandlerError(f"ResourceInitializationError: {name}: the secret {arn} has no value yet") from None
        values[name] = _json_key(text, key, name=name, arn=arn) if key else text
    return values


def _split_reference(reference: str) -> tuple[str, str]:
    """``arn:…:secret:name:key:stage:version`` → the secret's ARN and the JSON key ("" for the whole value)."""
    parts = reference.split(":")
    return ":".join(parts[:7]), parts[7] if len(parts) > 7 else ""


def _json_key(text: str, key: str, *, name: str, arn: str) -> str:
    try:
        return str(json.loads(text)[key])
    except (ValueError, KeyError, TypeError):
        raise HandlerError(
            f"ResourceInitializationError: {name}: retrieved secret from Secrets Manager did not contain json key "
            f"{key} ({arn})"
        ) from None


def argv(container: Mapping[str, Any]) -> list[str]:
    """The container's command, run by this project's interpreter."""
    command = [*(container.get("entryPoint") or []), *(container.get("command") or [])]
    if not command:
        raise HandlerError(
            f"container {container['name']} names no command; the local platform runs its process, not its image, so "
            "write the command into the container definition"
        )
    if command[0] in ("python", "python3") or command[0].endswith(("/python", "/python3")):
        return [sys.executable, *command[1:]]
    return [str(part) for part in command]


def stop_seconds(container: Mapping[str, Any]) -> float:
    """Time between SIGTERM and SIGKILL."""
    return float(container.get("stopTimeout") or _DEFAULT_STOP_SECONDS)


def started_in_order(definition: TaskDefinition) -> list[dict[str, Any]]:
    """The containers, each after those it depends on; HandlerError for a circle."""
    ordered: list[dict[str, Any]] = []
    waiting = list(definition.containers)
    while waiting:
        done = {container["name"] for container in ordered}
        ready = [
            container
            for container in waiting
            if all(entry["containerName"] in done for entry in container.get("dependsOn") or [])
        ]
        if not ready:
            names = ", ".join(container["name"] for container in waiting)
            raise HandlerError(f"ClientException: the containers {names} depend on each other or on none that there is")
        ordered += ready
        waiting = [container for container in waiting if container not in ready]
    return ordered


def must_finish_first(definition: TaskDefinition, name: str) -> bool:
    """Whether another container starts only once ``name`` has ended (SUCCESS or COMPLETE)."""
    return any(
        entry["containerName"] == name and entry["condition"] in ("SUCCESS", "COMPLETE")
        for container in definition.containers
        for entry in container.get("dependsOn") or []
    )


def wait_for_end(child: Child, container: Mapping[str, Any]) -> None:
    """Wait for a container that others wait for; HandlerError with its log's end unless it exits with 0 in time."""
    seconds = float(container.get("startTimeout") or _DEPENDENCY_SECONDS)
    try:
        code = child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.stop()
        raise HandlerError(
            f"container {container['name']} has not ended after {seconds:g} s\n{child.log_tail()}"
        ) from None
    if code != 0:
        raise HandlerError(f"container {container['name']} ended with exit code {code}\n{child.log_tail()}")


def wait_until_healthy(child: Child, *, port: int, path: str, codes: str, seconds: float) -> None:
    """Wait until the health check passes; ProcessError with the log's end if the process ends or time is up."""
    wait_until(
        f"{child.name} answers its health check {path}",
        lambda: _answers(port, path, codes),
        seconds=seconds,
        alive=child,
    )


def _answers(port: int, path: str, codes: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", path)
        return _matches(connection.getresponse().status, codes)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _matches(status: int, codes: str) -> bool:
    """Whether ``status`` is in a matcher such as ``200``, ``200,202`` or ``200-299``."""
    for part in codes.split(","):
        low, _, high = part.strip().partition("-")
        if int(low) <= status <= int(high or low):
            return True
    return False


def run_task(
    platform: PlatformServices,
    task_definition_outputs: Outputs,
    *,
    command: list[str],
    environment: Mapping[str, str],
    seconds: float,
    container: str = "api",
) -> TaskResult:
    """Run ``command`` once with a container's environment, secrets and roles, as ECS's RunTask with overrides does.

    HandlerError if it has not ended after ``seconds``; a non-zero exit code is the caller's to judge.
    """
    definition = TaskDefinition.from_outputs(task_definition_outputs)
    require_execution_permissions(platform, definition)
    template = {**definition.container(container), "entryPoint": [], "command": command}
    folder = platform.state / "ecs" / "one-off"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    values = container_environment(platform, definition, template, home=str(folder))
    # As one of the platform's children: it ends with the platform, however that ends.
    title = f"task-{secrets.token_hex(4)}"
    child = platform.start_process(title, argv(template), env={**values, **environment}, cwd=folder)
    try:
        exit_code = child.wait(seconds)
    except subprocess.TimeoutExpired:
        platform.stop_process(title, seconds=1)
        tail = child.log_tail(40)
        raise HandlerError(f"the task {' '.join(command)} has not ended after {seconds:g} s\n{tail}") from None
    output = child.log.read_text(errors="replace") if child.log is not None else ""
    return TaskResult(exit_code=exit_code, output=output)
