"""The API's task, its service and the door to it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

ACCOUNT = "123456789012"
TASK = "aws:ecs/taskDefinition:TaskDefinition"
SERVICE = "aws:ecs/service:Service"
LISTENER = "aws:lb/listener:Listener"
RULE = "aws:lb/listenerRule:ListenerRule"
TARGET = "aws:appautoscaling/target:Target"
POLICY = "aws:appautoscaling/policy:Policy"
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/one"


def _containers(recording: "Recording") -> dict[str, dict[str, Any]]:
    containers = json.loads(recording.one(TASK, "api").inputs["containerDefinitions"])
    return {container["name"]: container for container in containers}


def _environment(container: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container["environment"]}


ENVIRONMENT = {
    "STAGE": "dev",
    "AWS_REGION": "us-east-1",
    "PORT": "8000",
    "TOPIC_ARN": f"arn:aws:sns:us-east-1:{ACCOUNT}:minitickets-dev-booking-events",
    "TICKETS_TABLE": "minitickets-dev-tickets",
    "ASSETS_BUCKET": f"minitickets-dev-assets-{ACCOUNT}",
    "DB_HOST": "db.example.internal",
    "DB_PORT": "5432",
    "DB_NAME": "minitickets",
    "DB_USER": "minitickets",
    "DB_SSLMODE": "verify-full",
    "REDIS_HOST": "redis.example.internal",
    "REDIS_PORT": "6379",
    "REDIS_TLS": "true",
}


@pytest.mark.parametrize("name", ["migrate", "api"])
def test_a_container_is_given_the_documented_environment_sorted(both_on: "Recording", name: str) -> None:
    container = _containers(both_on)[name]
    assert _environment(container) == ENVIRONMENT
    names = [entry["name"] for entry in container["environment"]]
    assert names == sorted(names)


@pytest.mark.parametrize("name", ["migrate", "api"])
def test_secrets_are_injected_by_reference(both_on: "Recording", name: str) -> None:
    secrets = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret"
    assert _containers(both_on)[name]["secrets"] == [
        {"name": "DB_PASSWORD", "valueFrom": f"{secrets}:rds!db-1-AbCdEf:password::"},
        {"name": "REDIS_AUTH_TOKEN", "valueFrom": f"{secrets}:minitickets-dev-redis-token-AbCdEf"},
    ]


@pytest.mark.parametrize("name", ["migrate", "api"])
def test_a_container_is_not_root_writes_no_disk_and_has_no_capability(both_on: "Recording", name: str) -> None:
    container = _containers(both_on)[name]
    assert container["user"] == "10001"
    assert container["readonlyRootFilesystem"] is True
    assert container["linuxParameters"]["capabilities"] == {"drop": ["ALL"]}
    assert container.get("privileged", False) is False


def test_migrations_run_to_their_end_before_the_api_starts(both_on: "Recording") -> None:
    containers = _containers(both_on)
    assert containers["migrate"]["essential"] is False
    assert containers["migrate"]["command"] == ["python", "-m", "minitickets_api.migrate"]
    assert containers["api"]["essential"] is True
    assert containers["api"]["command"] == ["python", "-m", "minitickets_api"]
    assert containers["api"]["dependsOn"] == [{"containerName": "migrate", "condition": "SUCCESS"}]


def test_a_container_is_healthy_while_it_lives_even_when_the_database_is_away(both_on: "Recording") -> None:
    check = _containers(both_on)["api"]["healthCheck"]
    assert "/healthz" in check["command"][-1]
    compile(check["command"][-1], "health check", "exec")


def test_the_api_logs_into_its_own_group(both_on: "Recording") -> None:
    group = both_on.one("aws:cloudwatch/logGroup:LogGroup", "api-logs").inputs
    assert group == {"name": "/ecs/minitickets-dev-api", "retentionInDays": 30}
    for container in _containers(both_on).values():
        assert container["logConfiguration"]["options"]["awslogs-group"] == group["name"]


def test_a_task_runs_on_fargate_and_arm64_under_two_roles(both_on: "Recording") -> None:
    task = both_on.one(TASK, "api").inputs
    assert (task["requiresCompatibilities"], task["networkMode"]) == (["FARGATE"], "awsvpc")
    assert task["runtimePlatform"] == {"cpuArchitecture": "ARM64", "operatingSystemFamily": "LINUX"}
    assert (task["cpu"], task["memory"]) == ("256", "512")
    assert task["taskRoleArn"].endswith(":minitickets-dev-api")
    assert task["executionRoleArn"].endswith(":minitickets-dev-api-execution")


def test_the_public_url_and_a_rewind_reach_the_api(record: "Record") -> None:
    life = '{"bornFrom":"old","final":"minitickets-dev-db-final-x","rewoundAt":"2026-11-29T15:00:00Z"}'
    recording = record(
        {"publicUrl": "https://tickets.example.org"},
        instances=["minitickets-dev-db"],
        parameters={"/minitickets-dev/database-life": life},
    )
    assert _environment(_containers(recording)["api"]) == ENVIRONMENT | {
        "PUBLIC_URL": "https://tickets.example.org",
        "SESSIONS_VOID_BEFORE": "2026-11-29T15:00:00Z",
    }


def test_a_failed_deploy_is_rolled_back_and_an_up_waits_for_the_end_of_a_good_one(both_on: "Recording") -> None:
    service = both_on.one(SERVICE, "api").inputs
    assert service["deploymentCircuitBreaker"] == {"enable": True, "rollback": True}
    assert (service["deploymentMinimumHealthyPercent"], service["deploymentMaximumPercent"]) == (100, 200)
    assert service["healthCheckGracePeriodSeconds"] >= 120
    assert service["waitForSteadyState"] is True
    assert service["desiredCount"] == 1


def test_a_target_group_that_no_listener_uses_is_refused_so_the_service_waits_for_the_listener(
    both_on: "Recording",
) -> None:
    assert both_on.one(SERVICE, "api").depends_on >= {f"{LISTENER} http", f"{RULE} procedures"}


def test_the_service_waits_for_its_permissions_and_for_the_consumers_of_its_events(both_on: "Recording") -> None:
    assert both_on.one(SERVICE, "api").depends_on >= {
        "aws:iam/rolePolicy:RolePolicy api-task",
        "aws:iam/rolePolicy:RolePolicy api-execution",
        "aws:lambda/eventSourceMapping:EventSourceMapping worker",
        "aws:lambda/eventSourceMapping:EventSourceMapping tickets",
    }


def test_names_of_load_balancers_have_32_characters_and_target_groups_cannot_wait_so_both_are_auto_named(
    both_on: "Recording",
) -> None:
    assert "name" not in both_on.one("aws:lb/loadBalancer:LoadBalancer", "api").inputs
    assert "name" not in both_on.one("aws:lb/targetGroup:TargetGroup", "api").inputs


def test_a_task_that_leaves_finishes_its_requests_first(both_on: "Recording") -> None:
    group = both_on.one("aws:lb/targetGroup:TargetGroup", "api").inputs
    assert group["deregistrationDelay"] <= _containers(both_on)["api"]["stopTimeout"]
    assert group["healthCheck"]["path"] == "/readyz"
    assert (group["targetType"], group["port"]) == ("ip", 8000)


def test_the_load_balancer_drops_what_servers_read_differently(both_on: "Recording") -> None:
    balancer = both_on.one("aws:lb/loadBalancer:LoadBalancer", "api").inputs
    assert balancer["dropInvalidHeaderFields"] is True
    assert balancer["idleTimeout"] == 60
    assert balancer["securityGroups"] == ["load-balancer-id"]


def test_without_a_certificate_the_api_answers_over_http(both_on: "Recording") -> None:
    (listener,) = both_on.of(LISTENER).values()
    assert (listener.inputs["port"], listener.inputs["protocol"]) == (80, "HTTP")
    assert listener.inputs["defaultActions"][0]["type"] == "forward"
    assert both_on.outputs["apiUrl"].startswith("http://")


def test_with_a_certificate_http_only_redirects_and_tls_is_1_3(record: "Record") -> None:
    recording = record({"certificateArn": CERTIFICATE})
    assert recording.of(LISTENER).keys() == {"https", "http"}
    https, redirect = recording.one(LISTENER, "https").inputs, recording.one(LISTENER, "http").inputs
    assert (https["port"], https["protocol"], https["certificateArn"]) == (443, "HTTPS", CERTIFICATE)
    assert "TLS13" in https["sslPolicy"]
    assert redirect["port"] == 80
    assert redirect["defaultActions"] == [
        {"type": "redirect", "redirect": {"protocol": "HTTPS", "port": "443", "statusCode": "HTTP_301"}}
    ]
    assert recording.outputs["apiUrl"].startswith("https://")
    assert f"{LISTENER} https" in recording.one(SERVICE, "api").depends_on


def test_procedures_have_a_rule_of_their_own_and_pages_take_the_default_way(both_on: "Recording") -> None:
    rule, listener = both_on.one(RULE, "procedures").inputs, both_on.one(LISTENER, "http").inputs
    assert rule["conditions"] == [{"pathPattern": {"values": ["/trpc/*"]}}]
    assert rule["actions"] == listener["defaultActions"]


def test_nobody_gets_a_shell_beside_the_password_of_the_database(both_on: "Recording") -> None:
    assert both_on.one(SERVICE, "api").inputs["enableExecuteCommand"] is False


def test_a_fixed_number_of_tasks_needs_no_scaling(both_on: "Recording") -> None:
    assert not both_on.of(TARGET)
    assert not both_on.of(POLICY)
    assert both_on.one(SERVICE, "api").ignore_changes == ()


def test_a_range_of_tasks_follows_cpu_and_requests(record: "Record") -> None:
    recording = record({"apiMinTasks": "2", "apiMaxTasks": "6"})
    target = recording.one(TARGET, "api")
    assert target.inputs["resourceId"] == "service/minitickets-dev/minitickets-dev-api"
    assert (target.inputs["minCapacity"], target.inputs["maxCapacity"]) == (2, 6)
    assert f"{SERVICE} api" in target.depends_on
    followed = {}
    for policy in recording.of(POLICY).values():
        assert policy.inputs["policyType"] == "TargetTrackingScaling"
        assert policy.inputs["resourceId"] == target.inputs["resourceId"]
        tracking = policy.inputs["targetTrackingScalingPolicyConfiguration"]
        assert tracking["scaleInCooldown"] > tracking["scaleOutCooldown"]
        metric = tracking["predefinedMetricSpecification"]
        followed[metric["predefinedMetricType"]] = metric.get("resourceLabel")
    assert followed == {
        "ECSServiceAverageCPUUtilization": None,
        "ALBRequestCountPerTarget": "app/api-1234567/1/targetgroup/api-1234567/1",
    }


def test_a_deploy_in_the_middle_of_a_sale_takes_no_task_back(record: "Record") -> None:
    service = record({"apiMinTasks": "2", "apiMaxTasks": "6"}).one(SERVICE, "api")
    assert service.inputs["desiredCount"] == 2
    assert service.ignore_changes == ("desiredCount",)


@pytest.mark.parametrize(
    ("arn", "told"),
    [
        ("arn:aws:acm:us-east-1:000000000000:certificate/one", "of account 000000000000 in us-east-1"),
        ("arn:aws:acm:eu-central-1:123456789012:certificate/one", "of account 123456789012 in eu-central-1"),
    ],
)
def test_a_certificate_of_another_account_or_region_is_refused_before_anything_is_made(
    record: "Record", program_failed: type[Any], arn: str, told: str
) -> None:
    with pytest.raises(program_failed, match=f"minitickets:certificateArn is {arn}: it is {told}") as failure:
        record({"certificateArn": arn})
    assert failure.value.resources == {}


def test_a_running_service_is_not_removed_because_its_image_is_unknown(
    record: "Record", program_failed: type[Any]
) -> None:
    with pytest.raises(program_failed, match="image is not set, and service minitickets-dev-api runs") as failure:
        record({"image": ""}, services={"minitickets-dev/minitickets-dev-api": "ACTIVE"})
    assert failure.value.resources == {}


@pytest.mark.parametrize(
    "services",
    [
        {},
        {"minitickets-dev/another": "ACTIVE"},
        {"minitickets-prod/minitickets-prod-api": "ACTIVE"},
        {"minitickets-dev/minitickets-dev-api": "INACTIVE"},
    ],
    ids=["no cluster", "no such service", "another stage's", "deleted"],
)
def test_a_service_that_never_was_or_is_gone_is_left_out_until_there_is_an_image(
    record: "Record", services: dict[str, str]
) -> None:
    recording = record({"image": ""}, services=services)
    assert not recording.of(SERVICE)
    assert not recording.of(TASK)
    assert recording.of("aws:lb/loadBalancer:LoadBalancer")


@pytest.mark.parametrize("look_up", ["aws:ecs/getClusters:getClusters", "aws:ecs/getService:getService"])
def test_not_being_allowed_to_look_for_the_service_is_not_the_same_as_no_service(
    record: "Record", program_failed: type[Any], look_up: str
) -> None:
    with pytest.raises(program_failed, match="AccessDenied"):
        record({"image": ""}, services={"minitickets-dev/minitickets-dev-api": "ACTIVE"}, refused={look_up})


def test_with_an_image_or_without_compute_nobody_looks_for_the_service(record: "Record") -> None:
    for config in ({"image": "local"}, {"image": "", "computeEnabled": "false"}):
        assert not [token for token, _ in record(config).lookups if token.startswith("aws:ecs/")]


def test_the_public_name_follows_the_load_balancer_and_takes_over_no_record_of_somebody_else(
    record: "Record", both_on: "Recording"
) -> None:
    recording = record({"publicUrl": "https://tickets.example.org", "hostedZoneId": "Z01234"})
    alias = recording.one("aws:route53/record:Record", "api").inputs
    assert (alias["zoneId"], alias["name"], alias["type"]) == ("Z01234", "tickets.example.org", "A")
    (target,) = alias["aliases"]
    assert target["name"] == "api-1234567.elb.example.internal"
    assert alias["allowOverwrite"] is False
    assert not both_on.of("aws:route53/record:Record")


# What must fit one another lives in different processes, which never import each other.


def test_the_server_keeps_connections_longer_than_the_load_balancer_does(both_on: "Recording") -> None:
    from minitickets_api.server import KEEP_ALIVE_SECONDS

    assert both_on.one("aws:lb/loadBalancer:LoadBalancer", "api").inputs["idleTimeout"] < KEEP_ALIVE_SECONDS


def test_a_task_that_is_told_to_stop_is_done_before_it_is_killed(both_on: "Recording") -> None:
    from minitickets_api.app import STOP_SECONDS
    from minitickets_api.server import DRAIN_SECONDS, FAREWELL_SECONDS

    assert _containers(both_on)["api"]["stopTimeout"] > FAREWELL_SECONDS + DRAIN_SECONDS + STOP_SECONDS


def test_a_task_is_given_time_for_its_migrations_before_its_health_counts(both_on: "Recording") -> None:
    from minitickets_api.migrate import WAIT_SECONDS

    service = both_on.one(SERVICE, "api").inputs
    assert service["healthCheckGracePeriodSeconds"] > 2 * WAIT_SECONDS  # for the database, and for another's lock


def test_a_lease_lies_between_the_run_of_a_function_and_the_return_of_its_message(both_on: "Recording") -> None:
    from minitickets_worker.processed_jobs import LEASE_SECONDS

    timeout = both_on.one("aws:lambda/function:Function", "worker").inputs["timeout"]
    visibility = both_on.one("aws:sqs/queue:Queue", "jobs").inputs["visibilityTimeoutSeconds"]
    assert timeout < LEASE_SECONDS < visibility - timeout


def test_the_functions_find_their_handlers() -> None:
    from importlib.util import find_spec

    for handler in ("minitickets_worker.batch.lambda_handler", "minitickets_tickets.handler.lambda_handler"):
        module, _, function = handler.rpartition(".")
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        assert f"def {function}(" in Path(spec.origin).read_text()


def test_a_certificate_that_comes_later_meets_no_other_listener_on_its_port(
    record: "Record", both_on: "Recording"
) -> None:
    with_tls = record({"certificateArn": CERTIFICATE})
    for recording in (both_on, with_tls):
        ports = {listener.inputs["port"]: name for name, listener in recording.of(LISTENER).items()}
        assert ports[80] == "http"
    assert f"{LISTENER} https" in with_tls.one(RULE, "procedures").depends_on
