"""Roles and functions: what the emulator does not ask is asked here, and refused in AWS's words."""

import io
import json
import secrets
import zipfile
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.handlers.handler import HandlerError
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

ROLE, ROLE_POLICY = "iam/role:Role", "iam/rolePolicy:RolePolicy"
FUNCTION, MAPPING = "lambda/function:Function", "lambda/eventSourceMapping:EventSourceMapping"
POLLING = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
LOGGING = ["logs:CreateLogStream", "logs:PutLogEvents"]


@pytest.fixture
def name() -> str:
    return f"t-{secrets.token_hex(4)}"


def _trust(service: str) -> str:
    statement = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": service},
        "Condition": {"StringEquals": {"aws:SourceAccount": "000000000000"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _policy(*statements: tuple[list[str], str]) -> str:
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Action": actions, "Resource": resource} for actions, resource in statements
            ],
        }
    )


def _zip(folder: Path, source: str) -> dict[str, str]:
    archive = folder / f"{secrets.token_hex(4)}.zip"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("app.py", source)
    archive.write_bytes(content.getvalue())
    return {"path": str(archive)}


def _environment_of(folder: Path) -> dict[str, str]:
    return _zip(folder, "import os\ndef handler(event, context):\n    return dict(os.environ)\n")


class Worker:
    """A function with its role, as the program writes one."""

    def __init__(self, stage: HandledStage, name: str, *statements: tuple[list[str], str]) -> None:
        self.stage = stage
        self.role = stage.create(ROLE, name, name=name, assumeRolePolicy=_trust("lambda.amazonaws.com"))
        self.queue = stage.create("sqs/queue:Queue", name, name=name, visibilityTimeoutSeconds=60.0)
        own_log = f"arn:aws:logs:us-east-1:000000000000:log-group:/aws/lambda/{name}:*"
        self.policy = stage.create(
            ROLE_POLICY, name, name="own", role=name, policy=_policy((LOGGING, own_log), *statements)
        )
        self.inputs: dict[str, Any] = {
            "name": name,
            "role": self.role["arn"],
            "runtime": "python3.13",
            "handler": "app.handler",
            "timeout": 10.0,
            "memorySize": 256.0,
            "architectures": ["arm64"],
            "environment": {"variables": {"STAGE": "dev"}},
        }

    def mapping(self, **more: Any) -> dict[str, Any]:
        return {
            "eventSourceArn": self.queue["arn"],
            "functionName": self.inputs["name"],
            "batchSize": 10.0,
            "functionResponseTypes": ["ReportBatchItemFailures"],
            "scalingConfig": {"maximumConcurrency": 5.0},
            **more,
        }


def _invoke(stage: HandledStage, name: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(stage.aws("lambda").invoke(FunctionName=name)["Payload"].read())
    return payload


def test_a_function_runs_with_the_programs_environment_and_the_recorders(
    stage: HandledStage, name: str, tmp_path: Path
) -> None:
    worker = Worker(stage, name)
    made = stage.create(FUNCTION, "worker", **worker.inputs, code=_environment_of(tmp_path))

    seen = _invoke(stage, name)

    assert seen["STAGE"] == "dev"
    assert seen["AWS_ENDPOINT_URL_SESV2"] == stage.platform.mail_endpoint
    assert seen["AWS_CSM_CLIENT_ID"] == name
    assert seen["AWS_CSM_PORT"] == str(stage.platform.calls_port)
    live = stage.aws("lambda").get_function_configuration(FunctionName=name)
    assert (live["Timeout"], live["MemorySize"], live["CodeSha256"]) == (10, 256, made["codeSha256"])


def test_new_code_and_a_new_environment_reach_the_function_in_place(
    stage: HandledStage, name: str, tmp_path: Path
) -> None:
    worker = Worker(stage, name)
    stage.create(FUNCTION, "worker", **worker.inputs, code=_environment_of(tmp_path))
    new_code = _zip(tmp_path, "import os\ndef handler(event, context):\n    return {'new': os.environ.get('STAGE')}\n")

    stage.update(FUNCTION, "worker", **worker.inputs | {"environment": {}, "timeout": 5.0}, code=new_code)

    assert _invoke(stage, name) == {"new": None}
    assert stage.aws("lambda").get_function_configuration(FunctionName=name)["Timeout"] == 5


def test_a_function_whose_role_may_not_write_its_log_is_refused(stage: HandledStage, name: str, tmp_path: Path) -> None:
    worker = Worker(stage, name)
    stage.update(ROLE_POLICY, name, name="own", role=name, policy=_policy((LOGGING[:1], "*")))

    with pytest.raises(HandlerError, match=r"not authorized to perform logs:PutLogEvents on /aws/lambda/"):
        stage.create(FUNCTION, "worker", **worker.inputs, code=_environment_of(tmp_path))


def test_a_function_whose_role_lambda_may_not_assume_is_refused(stage: HandledStage, name: str, tmp_path: Path) -> None:
    worker = Worker(stage, name)
    stage.update(ROLE, name, name=name, assumeRolePolicy=_trust("ecs-tasks.amazonaws.com"))

    with pytest.raises(HandlerError, match="cannot be assumed by Lambda"):
        stage.create(FUNCTION, "worker", **worker.inputs, code=_environment_of(tmp_path))


@pytest.mark.parametrize("missing", POLLING)
def test_a_mapping_is_refused_without_each_of_the_actions_of_its_polling(
    stage: HandledStage, name: str, tmp_path: Path, missing: str
) -> None:
    allowed = [action for action in POLLING if action != missing]
    worker = Worker(stage, name, (allowed, "*"))
    stage.create(FUNCTION, "worker", **worker.inputs, code=_environment_of(tmp_path))

    with pytest.raises(HandlerError, match=f"does not have permissions to call {missing.removeprefix('sqs:')} on SQS"):
        stage.create(MAPPING, "worker", **worker.mapping())


def test_a_mapping_has_its_settings_is_refused_twice_and_changes_in_place(
    stage: HandledStage, name: str, tmp_path: Path
) -> None:
    worker = Worker(stage, name, (POLLING, "*"))
    stage.create(FUNCTION, "worker", **worker.inputs, code=_environment_of(tmp_path))
    mapping = stage.create(MAPPING, "worker", **worker.mapping())

    with pytest.raises(HandlerError, match=f"already exists.*{mapping['uuid']}"):
        stage.create(MAPPING, "again", **worker.mapping())

    def live() -> dict[str, Any]:
        found: dict[str, Any] = stage.aws("lambda").get_event_source_mapping(UUID=mapping["uuid"])
        return found

    assert live()["ScalingConfig"] == {"MaximumConcurrency": 5}
    assert live()["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    changed = worker.mapping(batchSize=1.0)
    del changed["scalingConfig"]
    stage.update(MAPPING, "worker", **changed)
    assert (live()["BatchSize"], live().get("ScalingConfig", {})) == (1, {})


def test_a_queue_whose_messages_return_while_the_function_runs_is_refused(
    stage: HandledStage, name: str, tmp_path: Path
) -> None:
    worker = Worker(stage, name, (POLLING, "*"))
    stage.create(FUNCTION, "worker", **worker.inputs | {"timeout": 61.0}, code=_environment_of(tmp_path))

    with pytest.raises(HandlerError, match="Queue visibility timeout: 60 seconds is less than Function timeout: 61"):
        stage.create(MAPPING, "worker", **worker.mapping())


def test_a_restart_gives_a_function_the_ports_of_the_recorders_now(
    stage: HandledStage, name: str, tmp_path: Path
) -> None:
    worker = Worker(stage, name)
    stage.create(FUNCTION, "worker", **worker.inputs, code=_environment_of(tmp_path))
    stage.aws("lambda").update_function_configuration(FunctionName=name, Environment={"Variables": {"STAGE": "old"}})

    stage.restart()

    assert _invoke(stage, name)["AWS_CSM_PORT"] == str(stage.platform.calls_port)


def test_a_role_may_do_what_its_policy_says_and_nothing_once_that_is_gone(stage: HandledStage, name: str) -> None:
    role = stage.create(ROLE, "r", name=name, assumeRolePolicy=_trust("ecs-tasks.amazonaws.com"))
    topic = stage.create("sns/topic:Topic", "t", name=name)
    stage.create(ROLE_POLICY, "r", name="own", role=name, policy=_policy((["sns:Publish"], topic["arn"])))
    entries = [{"Id": "1", "Message": "m"}]

    sns = stage.platform.aws_as("sns", role["arn"])
    assert sns.publish_batch(TopicArn=topic["arn"], PublishBatchRequestEntries=entries)["Failed"] == []
    with pytest.raises(ClientError, match="not authorized"):
        sns.get_topic_attributes(TopicArn=topic["arn"])
    stage.delete(ROLE_POLICY, "r")
    with pytest.raises(ClientError, match="not authorized"):
        sns.publish(TopicArn=topic["arn"], Message="m")
    assert any(f"role {name}: batch calls beside single ones" in line for line in stage.said.lines)


def test_a_role_name_in_use_is_refused_and_one_with_policies_refuses_to_go(stage: HandledStage, name: str) -> None:
    trust = _trust("lambda.amazonaws.com")
    stage.create(ROLE, "r", name=name, assumeRolePolicy=trust, description="one")
    stage.create(ROLE_POLICY, "r", name="own", role=name, policy=_policy((["sns:Publish"], "*")))

    with pytest.raises(HandlerError, match="EntityAlreadyExists"):
        stage.create(ROLE, "again", name=name, assumeRolePolicy=trust)
    with pytest.raises(HandlerError, match="DeleteConflict"):
        stage.delete(ROLE, "r")


def test_missing_code_says_how_to_make_it(stage: HandledStage, name: str, tmp_path: Path) -> None:
    worker = Worker(stage, name)

    with pytest.raises(HandlerError, match=r"no-such\.zip: No such file or directory; `make build` makes it"):
        stage.create(FUNCTION, "worker", **worker.inputs, code={"path": str(tmp_path / "no-such.zip")})
