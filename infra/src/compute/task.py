"""The API's task: its migrations once, then the API, both from one image."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from src.data.cache import Cache
from src.data.database import DATABASE_NAME, USERNAME, Database
from src.policies import compact_json
from src.ports import API_PORT
from src.roles import ServiceRole
from src.tickets.storage import TicketStorage

CONTAINER = "api"
USER = "10001"  # no account of the image's base has it, and it owns nothing
STOP_TIMEOUT_SECONDS = 30  # between SIGTERM and SIGKILL: requests are drained by then, the relay ends its batch

# Python, since the image has no curl. /healthz and not /readyz: a database that is away must not kill the tasks.
_HEALTH_CHECK = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{API_PORT}/healthz', timeout=3)"


def api_environment(
    *,
    stage: str,
    region: str,
    topic_arn: pulumi.Input[str],
    storage: TicketStorage,
    database: Database,
    cache: Cache,
    public_url: str | None,
    sessions_void_before: str | None,
) -> dict[str, pulumi.Input[str]]:
    """The API's environment but for its secrets, as docs/interfaces.md lists it."""
    environment: dict[str, pulumi.Input[str]] = {
        "STAGE": stage,
        "AWS_REGION": region,
        "PORT": str(API_PORT),
        "TOPIC_ARN": topic_arn,
        "TICKETS_TABLE": storage.table.name,
        "ASSETS_BUCKET": storage.bucket.bucket,
        "DB_HOST": database.instance.address,
        "DB_PORT": database.instance.port.apply(_digits),
        "DB_NAME": DATABASE_NAME,
        "DB_USER": USERNAME,
        "DB_SSLMODE": "verify-full",
        "REDIS_HOST": cache.group.primary_endpoint_address,
        "REDIS_PORT": cache.group.port.apply(_digits),
        "REDIS_TLS": "true",
    }
    if public_url:
        environment["PUBLIC_URL"] = public_url
    if sessions_void_before:
        environment["SESSIONS_VOID_BEFORE"] = sessions_void_before
    return environment


def create_task_definition(
    name: str,
    *,
    image: str,
    cpu: int,
    memory_mib: int,
    region: str,
    task_role: ServiceRole,
    execution_role: ServiceRole,
    logs: aws.cloudwatch.LogGroup,
    environment: Mapping[str, pulumi.Input[str]],
    database: Database,
    cache: Cache,
) -> aws.ecs.TaskDefinition:
    """The task ``…-api`` on Fargate and ARM64; ``cpu`` in units of 1/1024 of a core.

    Two containers: ``migrate`` runs to its end first (an advisory lock makes tasks that start together take turns),
    then ``api`` starts; a failed migration fails the deploy, and the circuit breaker rolls it back. Both run as a
    user who is not root, on a file system that they cannot write, without any Linux capability.
    """

    def container(container_name: str, *, command: list[str], **more: Any) -> dict[str, Any]:
        return {
            "name": container_name,
            "image": image,
            "command": command,
            "user": USER,
            "readonlyRootFilesystem": True,
            "linuxParameters": {"capabilities": {"drop": ["ALL"]}, "initProcessEnabled": True},
            # Sorted, so that two runs give the same text: another text would be another revision, and a deploy.
            "environment": [{"name": key, "value": environment[key]} for key in sorted(environment)],
            "secrets": [
                {"name": "DB_PASSWORD", "valueFrom": pulumi.Output.concat(database.password_secret_arn, ":password::")},
                {"name": "REDIS_AUTH_TOKEN", "valueFrom": cache.token.secret_arn},
            ],
            "logConfiguration": {
                "logDriver": "awslogs",
                "options": {
                    "awslogs-group": logs.name,
                    "awslogs-region": region,
                    "awslogs-stream-prefix": container_name,
                },
            },
            **more,
        }

    return aws.ecs.TaskDefinition(
        "api",
        family=f"{name}-api",
        requires_compatibilities=["FARGATE"],
        network_mode="awsvpc",
        runtime_platform={"cpu_architecture": "ARM64", "operating_system_family": "LINUX"},
        cpu=str(cpu),
        memory=str(memory_mib),
        execution_role_arn=execution_role.role.arn,
        task_role_arn=task_role.role.arn,
        container_definitions=compact_json(
            [
                container("migrate", command=["python", "-m", "minitickets_api.migrate"], essential=False),
                container(
                    CONTAINER,
                    command=["python", "-m", "minitickets_api"],
                    essential=True,
                    dependsOn=[{"containerName": "migrate", "condition": "SUCCESS"}],
                    portMappings=[{"containerPort": API_PORT, "hostPort": API_PORT, "protocol": "tcp"}],
                    healthCheck={
                        "command": ["CMD", "python", "-c", _HEALTH_CHECK],
                        "interval": 10,
                        "timeout": 5,
                        "retries": 3,
                        "startPeriod": 30,
                    },
                    stopTimeout=STOP_TIMEOUT_SECONDS,
                ),
            ]
        ),
    )


def _digits(port: float | None) -> str:
    """A port as text. The engine keeps every number as a float, and no client parses ``5432.0``."""
    if port is None:
        raise pulumi.RunError("a data store tells no port, so the API would not find it")
    return str(int(port))
