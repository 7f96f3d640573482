"""A service of real processes: its environment, its secrets, its targets, its deployments, its end."""

import json
import os
import secrets
import signal
import textwrap
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.emulator import Clients
from local.handlers import ecs_service
from local.handlers.ecs import run_task
from local.handlers.handler import HandlerError
from local.handlers.tasks import wait_until_healthy
from local.processes import Child, accepts_connections, free_port, wait_until
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

TASK, SERVICE = "ecs/taskDefinition:TaskDefinition", "ecs/service:Service"
ROLE, ROLE_POLICY = "iam/role:Role", "iam/rolePolicy:RolePolicy"

# Answers with its environment; unready while the file `unready` is beside it; ends when asked to crash.
SERVER = textwrap.dedent(
    """
    import http.server, json, os, sys

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/crash":
                os._exit(3)
            ready = self.path != "/readyz" or os.environ.get("READY") != "no"
            body = json.dumps({**os.environ, "pid": os.getpid()}).encode()
            self.send_response(200 if ready else 503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    print("serving", flush=True)
    http.server.ThreadingHTTPServer((os.environ["LISTEN_HOST"], int(os.environ["PORT"])), Answer).serve_forever()
    """
)


def _policy(*statements: tuple[list[str], str]) -> str:
    allow = [{"Effect": "Allow", "Action": actions, "Resource": resource} for actions, resource in statements]
    return json.dumps({"Version": "2012-10-17", "Statement": allow})


class Api:
    """Everything around a service, as the program writes it."""

    def __init__(self, stage: HandledStage) -> None:
        self.stage = stage
        self.name = f"t-{secrets.token_hex(4)}"
        self.password = secrets.token_hex(8)
        self.token = secrets.token_hex(8)
        name = self.name
        trust = json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": "sts:AssumeRole",
                        "Principal": {"Service": "ecs-tasks.amazonaws.com"},
                        "Condition": {"StringEquals": {"aws:SourceAccount": "000000000000"}},
                    }
                ],
            }
        )
        self.task_role = stage.create(ROLE, "task", name=f"{name}-task", assumeRolePolicy=trust)
        self.execution_role = stage.create(ROLE, "execution", name=f"{name}-execution", assumeRolePolicy=trust)
        self.repository = stage.create("ecr/repository:Repository", "api", name=name, forceDelete=True)
        self.logs = stage.create("cloudwatch/logGroup:LogGroup", "api", name=f"/minitickets/{name}")
        self.database_secret = self._secret("db", json.dumps({"username": "m", "password": self.password}))
        self.token_secret = self._secret("token", self.token)
        self.execution_statements: list[tuple[list[str], str]] = [
            (["ecr:GetAuthorizationToken"], "*"),
            (
                ["ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage"],
                self.repository["arn"],
            ),
            (["logs:CreateLogStream", "logs:PutLogEvents"], f"{self.logs['arn']}:*"),
            (["secretsmanager:GetSecretValue"], self.database_secret),
            (["secretsmanager:GetSecretValue"], self.token_secret),
        ]
        stage.create(
            ROLE_POLICY,
            "execution",
            name="own",
            role=self.execution_role["name"],
            policy=_policy(*self.execution_statements),
        )
        vpc = stage.create("ec2/vpc:Vpc", "main", cidrBlock="10.9.0.0/16")
        subnets = [
            stage.create(
                "ec2/subnet:Subnet",
                f"s{octet}",
                vpcId=vpc["id"],
                cidrBlock=f"10.9.{octet}.0/24",
                availabilityZone=zone,
            )["id"]
            for octet, zone in enumerate(("us-east-1a", "us-east-1b"))
        ]
        self.balancer = stage.create("lb/loadBalancer:LoadBalancer", "api", subnets=subnets, idleTimeout=60.0)
        self.targets = stage.create(
            "lb/targetGroup:TargetGroup",
            "api",
            vpcId=vpc["id"],
            port=8000.0,
            protocol="HTTP",
            targetType="ip",
            healthCheck={"path": "/readyz", "matcher": "200"},
        )
        self.url = f"http://{self.balancer['dnsName']}"
        self.cluster = stage.create("ecs/cluster:Cluster", "main", name=name)

    def listen(self) -> None:
        self.stage.create(
            "lb/listener:Listener",
            "http",
            loadBalancerArn=self.balancer["arn"],
            port=80.0,
            protocol="HTTP",
            defaultActions=[{"type": "forward", "targetGroupArn": self.targets["arn"]}],
        )

    def container(self, **more: Any) -> dict[str, Any]:
        environment = {"STAGE": "dev", "PORT": "8000", "DB_SSLMODE": "verify-full", "REDIS_TLS": "true"}
        environment |= more.pop("environment", {})
        return {
            "name": "api",
            "image": "local",
            "essential": True,
            "command": ["python", "-c", SERVER],
            "stopTimeout": 5,
            "portMappings": [{"containerPort": 8000}],
            "environment": [{"name": key, "value": value} for key, value in sorted(environment.items())],
            "secrets": [
                {"name": "DB_PASSWORD", "valueFrom": f"{self.database_secret}:password::"},
                {"name": "REDIS_AUTH_TOKEN", "valueFrom": self.token_secret},
            ],
            "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": self.logs["name"]}},
            **more,
        }

    def task(self, *containers: dict[str, Any]) -> dict[str, Any]:
        return {
            "family": self.name,
            "requiresCompatibilities": ["FARGATE"],
            "networkMode": "awsvpc",
            "cpu": "256",
            "memory": "512",
            "taskRoleArn": self.task_role["arn"],
            "executionRoleArn": self.execution_role["arn"],
            "containerDefinitions": json.dumps(list(containers)),
        }

    def define(self, *containers: dict[str, Any], resource: str = "api") -> dict[str, Any]:
        return self.stage.create(TASK, resource, **self.task(*containers))

    def service(self, task: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "name": self.name,
            "cluster": self.cluster["arn"],
            "taskDefinition": task["arn"],
            "desiredCount": 1.0,
            "launchType": "FARGATE",
            "loadBalancers": [{"targetGroupArn": self.targets["arn"], "containerName": "api", "containerPort": 8000.0}],
            **more,
        }

    def get(self, path: str = "/") -> dict[str, Any]:
        answer: dict[str, Any] = httpx.get(f"{self.url}{path}", timeout=10).raise_for_status().json()
        return answer

    def _secret(self, resource: str, value: str) -> str:
        secret = self.stage.create(
            "secretsmanager/secret:Secret", resource, name=f"{self.name}-{resource}", recoveryWindowInDays=0.0
        )
        self.stage.create(
            "secretsmanager/secretVersion:SecretVersion", resource, secretId=secret["arn"], secretString=value
        )
        return str(secret["arn"])


@pytest.fixture
def api(stage: HandledStage) -> Api:
    api = Api(stage)
    api.listen()
    return api


def test_a_task_gets_the_programs_environment_its_secrets_and_what_the_platform_adds(
    stage: HandledStage, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THIS_SHELL", "leaked")
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))

    seen = api.get()

    assert (seen["STAGE"], seen["DB_PASSWORD"], seen["REDIS_AUTH_TOKEN"]) == ("dev", api.password, api.token)
    assert (seen["DB_SSLMODE"], seen["REDIS_TLS"]) == ("disable", "false")
    assert seen["AWS_ENDPOINT_URL"] == stage.emulator.endpoint
    assert seen["AWS_CSM_CLIENT_ID"] == api.task_role["name"]
    assert seen["LISTEN_HOST"] == "127.0.0.1"
    assert seen["LOCAL_MAILBOX_URL"] == stage.platform.mailbox_url
    assert seen["PORT"] != "8000"
    assert "SECRET_OF_THIS_SHELL" not in seen
    assert "AWS_ACCESS_KEY_ID" not in seen
    credentials = httpx.get(
        seen["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
        headers={"Authorization": seen["AWS_CONTAINER_AUTHORIZATION_TOKEN"]},
    ).json()
    assert credentials["AccessKeyId"].startswith("ASIA")
    assert any("replaced: DB_SSLMODE=disable" in line for line in stage.said.lines)


def test_a_task_takes_forms_from_this_machine_whatever_origin_its_stage_has(stage: HandledStage, api: Api) -> None:
    there = api.container(environment={"PUBLIC_URL": "https://tickets.example.org"})
    stage.create(SERVICE, "api", **api.service(api.define(there)))
    assert "PUBLIC_URL" not in api.get()
    assert any("replaced: no PUBLIC_URL=https://tickets.example.org" in line for line in stage.said.lines)


def test_the_control_plane_shows_the_service_and_its_healthy_target(stage: HandledStage, api: Api) -> None:
    task = api.define(api.container())
    stage.create(SERVICE, "api", **api.service(task))

    (live,) = stage.aws("ecs").describe_services(cluster=api.cluster["arn"], services=[api.name])["services"]
    assert (live["desiredCount"], live["taskDefinition"]) == (1, task["arn"])
    (target,) = stage.aws("elbv2").describe_target_health(TargetGroupArn=api.targets["arn"])["TargetHealthDescriptions"]
    assert str(target["Target"]["Port"]) == api.get()["PORT"]


def test_a_new_revision_takes_over_without_a_failed_request_and_the_old_one_ends(stage: HandledStage, api: Api) -> None:
    first = api.define(api.container())
    stage.create(SERVICE, "api", **api.service(first))
    old = api.get()
    second = api.define(api.container(environment={"STAGE": "second"}), resource="next")

    stage.update(SERVICE, "api", **api.service(second))

    assert (first["revision"] + 1, second["arn"]) == (second["revision"], f"{first['arnWithoutRevision']}:2")
    assert api.get()["STAGE"] == "second"
    assert not accepts_connections(int(old["PORT"]))
    assert not Path(f"/proc/{old['pid']}").exists()


def test_a_deployment_that_fails_says_why_and_leaves_the_old_task_serving(stage: HandledStage, api: Api) -> None:
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))
    before = api.get()["pid"]
    broken = api.define(api.container(command=["python", "-c", "raise SystemExit('no such table')"]), resource="next")

    with pytest.raises(HandlerError, match="no such table"):
        stage.update(SERVICE, "api", **api.service(broken))

    assert api.get()["pid"] == before
    assert len([name for name in stage.children.names() if name.startswith(api.name)]) == 1


def test_a_container_that_others_wait_for_runs_to_its_end_first(stage: HandledStage, api: Api, tmp_path: Path) -> None:
    proof = tmp_path / "migrated"
    migrate = api.container(name="migrate", essential=False, command=["python", "-c", f"open({str(proof)!r}, 'w')"])
    waits = api.container(dependsOn=[{"containerName": "migrate", "condition": "SUCCESS"}])

    stage.create(SERVICE, "api", **api.service(api.define(waits, migrate)))

    assert proof.exists()
    assert api.get()["STAGE"] == "dev"


def test_a_failed_migration_fails_the_service_and_leaves_nothing_behind(stage: HandledStage, api: Api) -> None:
    command = ["python", "-c", "print('cannot migrate'); raise SystemExit(4)"]
    migrate = api.container(name="migrate", essential=False, command=command)
    waits = api.container(dependsOn=[{"containerName": "migrate", "condition": "SUCCESS"}])

    with pytest.raises(HandlerError, match=r"container migrate ended with exit code 4\n.*cannot migrate"):
        stage.create(SERVICE, "api", **api.service(api.define(waits, migrate)))

    assert [name for name in stage.children.names() if name.startswith(api.name)] == []
    services = stage.aws("ecs").describe_services(cluster=api.cluster["arn"], services=[api.name])["services"]
    assert [entry for entry in services if entry["status"] == "ACTIVE"] == []


def test_a_task_that_dies_is_replaced(stage: HandledStage, api: Api) -> None:
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))
    before = api.get()

    os.kill(before["pid"], signal.SIGKILL)

    wait_until("another task answers", lambda: _answers_anew(api, before["pid"]), seconds=20)
    assert any("ended with exit code -9; starting another" in line for line in stage.said.lines)


def test_a_task_that_dies_while_the_emulator_is_away_is_replaced_once_it_is_back(
    stage: HandledStage, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))
    before = api.get()

    with monkeypatch.context() as away:
        away.setattr(stage.platform, "_clients", Clients(f"http://127.0.0.1:{free_port()}"))
        os.kill(before["pid"], signal.SIGKILL)
        wait_until("it is said", lambda: any("next attempt in" in line for line in stage.said.lines), seconds=20)

    wait_until("another task answers", lambda: _answers_anew(api, before["pid"]), seconds=20)


def test_a_task_that_starts_just_before_the_emulator_is_away_is_a_target_once_it_is_back(
    stage: HandledStage, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))
    before = api.get()

    with monkeypatch.context() as away:

        def goes_away(child: Child, **more: Any) -> None:
            wait_until_healthy(child, **more)
            away.setattr(stage.platform, "_clients", Clients(f"http://127.0.0.1:{free_port()}"))

        away.setattr(ecs_service, "wait_until_healthy", goes_away)
        os.kill(before["pid"], signal.SIGKILL)
        wait_until("it is said", lambda: any("its targets: " in line for line in stage.said.lines), seconds=20)

    wait_until("another task answers", lambda: _answers_anew(api, before["pid"]), seconds=20)


def test_a_task_that_dies_just_after_its_health_check_is_replaced_too(
    stage: HandledStage, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))
    before = api.get()
    healthy: list[int] = []

    def die_once_healthy(child: Child, **more: Any) -> None:
        wait_until_healthy(child, **more)
        healthy.append(child.pid)
        if len(healthy) == 1:
            child.end_group()
            wait_until("its end is known", lambda: stage.children.get(child.name) is None, seconds=10)

    monkeypatch.setattr(ecs_service, "wait_until_healthy", die_once_healthy)
    os.kill(before["pid"], signal.SIGKILL)

    wait_until("a third task is healthy", lambda: len(healthy) == 2, seconds=20)
    wait_until("it answers", lambda: _answers_as(api, healthy[1]), seconds=10)


def _answers_anew(api: "Api", pid: int) -> bool:
    """Whether another process than ``pid`` does."""
    try:
        return bool(api.get()["pid"] != pid)
    except httpx.HTTPError:
        return False


def _answers_as(api: "Api", pid: int) -> bool:
    try:
        return bool(api.get()["pid"] == pid)
    except httpx.HTTPError:
        return False


def test_a_restart_brings_the_service_back_at_the_same_address(stage: HandledStage, api: Api) -> None:
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))

    stage.restart()

    assert api.get()["STAGE"] == "dev"


def test_a_deleted_service_ends_its_tasks_and_the_load_balancer_says_503(stage: HandledStage, api: Api) -> None:
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))
    pid = api.get()["pid"]

    stage.delete(SERVICE, "api")

    assert not Path(f"/proc/{pid}").exists()
    assert httpx.get(api.url).status_code == 503


@pytest.mark.parametrize("left_out", range(5))
def test_a_service_is_refused_without_each_permission_of_its_execution_role(
    stage: HandledStage, api: Api, left_out: int
) -> None:
    kept = [entry for index, entry in enumerate(api.execution_statements) if index != left_out]
    stage.update(ROLE_POLICY, "execution", name="own", role=api.execution_role["name"], policy=_policy(*kept))
    task = api.define(api.container())

    with pytest.raises(HandlerError, match=f"not authorized to perform {api.execution_statements[left_out][0][0]}"):
        stage.create(SERVICE, "api", **api.service(task))


def test_a_target_group_without_a_listener_is_refused(stage: HandledStage) -> None:
    api = Api(stage)

    with pytest.raises(HandlerError, match="does not have an associated load balancer"):
        stage.create(SERVICE, "api", **api.service(api.define(api.container())))


def test_a_target_group_in_use_and_a_cluster_with_services_refuse_to_go(stage: HandledStage, api: Api) -> None:
    stage.create(SERVICE, "api", **api.service(api.define(api.container())))

    with pytest.raises(HandlerError, match="currently in use by a listener"):
        stage.delete("lb/targetGroup:TargetGroup", "api")
    with pytest.raises(HandlerError, match="cannot be deleted while Services are active"):
        stage.delete("ecs/cluster:Cluster", "main")


def test_a_secret_without_the_key_that_is_asked_for_names_the_variable_and_no_value(
    stage: HandledStage, api: Api
) -> None:
    reference = {"name": "DB_PASSWORD", "valueFrom": f"{api.database_secret}:passphrase::"}
    task = api.define(api.container(secrets=[reference]))

    with pytest.raises(HandlerError, match=r"DB_PASSWORD.*did not contain json key passphrase") as refused:
        stage.create(SERVICE, "api", **api.service(task))
    assert api.password not in str(refused.value)


def test_a_one_off_task_has_the_containers_environment_and_tells_its_end(stage: HandledStage, api: Api) -> None:
    task = api.define(api.container())
    program = "import os, sys; print(os.environ['DB_PASSWORD'], os.environ['SEED']); sys.exit(7)"

    done = run_task(stage.platform, task, command=["python", "-c", program], environment={"SEED": "events"}, seconds=20)

    assert (done.exit_code, done.output.strip()) == (7, f"{api.password} events")


def test_a_one_off_task_that_never_ends_is_ended_and_said_so(stage: HandledStage, api: Api) -> None:
    task = api.define(api.container())
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"

    with pytest.raises(HandlerError, match="has not ended after 1 s") as refused:
        run_task(stage.platform, task, command=["python", "-c", program], environment={}, seconds=1)

    pid = str(refused.value).splitlines()[-1].strip()
    assert not pid.isdigit() or not Path(f"/proc/{pid}").exists()
