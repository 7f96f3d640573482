"""Policy as tests: what a standard demands of a resource, asked of every resource of every stage and switch.

A rule's name is a sentence, and it says where the demand comes from: a control of AWS Foundational Security Best
Practices (FSBP), a chapter of OWASP ASVS 5, or a decision of this project. Where a stage may choose less, the rule
names the setting by which it does, and docs/security.md the reason.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recorded, Recording

pytestmark = pytest.mark.infra

ROOT = Path(__file__).resolve().parents[2]
Inputs = Mapping[str, Any]

ANY = "*"
ALARM = "aws:cloudwatch/metricAlarm:MetricAlarm"
BACKUP_PLAN = "aws:backup/plan:Plan"
BACKUP_SELECTION = "aws:backup/selection:Selection"
BALANCER = "aws:lb/loadBalancer:LoadBalancer"
BUCKET_CLOSED = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
BUCKET_OWNER = "aws:s3/bucketOwnershipControls:BucketOwnershipControls"
BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
CACHE = "aws:elasticache/replicationGroup:ReplicationGroup"
DATABASE = "aws:rds/instance:Instance"
DEFAULT_ACL = "aws:ec2/defaultNetworkAcl:DefaultNetworkAcl"
DEFAULT_GROUP = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
FUNCTION = "aws:lambda/function:Function"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
GROUP_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
KEY = "aws:kms/key:Key"
LISTENER = "aws:lb/listener:Listener"
LOGS = "aws:cloudwatch/logGroup:LogGroup"
PARAMETERS = "aws:rds/parameterGroup:ParameterGroup"
SCHEDULE = "aws:scheduler/schedule:Schedule"
QUEUE = "aws:sqs/queue:Queue"
QUEUE_POLICY = "aws:sqs/queuePolicy:QueuePolicy"
REPOSITORY = "aws:ecr/repository:Repository"
ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
SECRET = "aws:secretsmanager/secret:Secret"
SERVICE = "aws:ecs/service:Service"
SUBNET = "aws:ec2/subnet:Subnet"
TABLE = "aws:dynamodb/table:Table"
TARGET_GROUP = "aws:lb/targetGroup:TargetGroup"
TASK = "aws:ecs/taskDefinition:TaskDefinition"
TOPIC = "aws:sns/topic:Topic"
TOPIC_POLICY = "aws:sns/topicPolicy:TopicPolicy"

PROJECT_TAGS = {"Project", "Stage", "ManagedBy"}
SECRET_INPUTS = {"password", "authToken", "secretString", "secretBinary", "masterPassword"}
SECRET_WORDS = ("PASSWORD", "TOKEN", "PRIVATE", "CREDENTIAL")
SSH = 22
WORLD = {"0.0.0.0/0", "::/0"}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A demand on every resource of type ``on``.

    ``broken`` are inputs that break it, to prove that it bites. A stage whose setting has the value in ``chosen`` has
    asked for less. ``exempt`` names resources that are let off, each with its reason in docs/security.md.
    """

    sentence: str
    standard: str
    on: str
    holds: Callable[["Recorded"], bool]
    broken: Inputs
    chosen: tuple[str, Callable[[Any], bool]] | None = None
    exempt: frozenset[str] = frozenset()


def _is(name: str, value: Any) -> Callable[["Recorded"], bool]:
    return lambda resource: bool(resource.inputs.get(name) == value)


def _statements(resource: "Recorded", name: str = "policy") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(resource.inputs[name])["Statement"]
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _policy(**statement: Any) -> str:
    return json.dumps({"Statement": [{"Effect": "Allow", "Sid": "Broken", "Action": "sqs:SendMessage", **statement}]})


def _lets_only_our_services_in(resource: "Recorded") -> bool:
    for statement in _statements(resource):
        if statement["Effect"] != "Allow":
            continue
        conditions = {key for asked in statement.get("Condition", {}).values() for key in asked}
        if set(statement["Principal"]) != {"Service"} or not conditions >= {"aws:SourceArn", "aws:SourceAccount"}:
            return False
    return True


def _is_used_for_our_alarms_only(resource: "Recorded") -> bool:
    account = {"AWS": "arn:aws:iam::123456789012:root"}  # which delegates to its own administrators, and may not miss
    by_service = [statement for statement in _statements(resource) if statement["Principal"] != account]
    return _lets_only_our_services_in(
        dataclasses.replace(resource, inputs={"policy": json.dumps({"Statement": by_service})})
    )


def _has_no_star_action(resource: "Recorded") -> bool:
    return not any("*" in action for statement in _statements(resource) for action in _list(statement["Action"]))


def _has_no_star_resource(resource: "Recorded") -> bool:
    # AWS knows no resource for the one action of GetRegistryToken.
    return not any(
        "*" in _list(statement["Resource"])
        for statement in _statements(resource)
        if statement["Action"] != ["ecr:GetAuthorizationToken"]
    )


def _is_assumed_for_us_only(resource: "Recorded") -> bool:
    return all(
        set(statement["Principal"]) == {"Service"}
        and "aws:SourceAccount" in statement.get("Condition", {}).get("StringEquals", {})
        for statement in _statements(resource, "assumeRolePolicy")
    )


def _denies_plain_http(resource: "Recorded") -> bool:
    return any(
        statement["Effect"] == "Deny"
        and statement["Principal"] == "*"
        and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
        for statement in _statements(resource)
    )


def _each_container(demand: Callable[[dict[str, Any]], bool]) -> Callable[["Recorded"], bool]:
    return lambda resource: all(demand(container) for container in json.loads(resource.inputs["containerDefinitions"]))


def _container(**more: Any) -> Inputs:
    return {"containerDefinitions": json.dumps([{"name": "broken", "environment": [], **more}])}


def _has_no_secret_variable(environment: Sequence[Mapping[str, str]] | Mapping[str, str]) -> bool:
    names = environment if isinstance(environment, Mapping) else [entry["name"] for entry in environment]
    return not any(word in name.upper() for name in names for word in SECRET_WORDS)


def _reaches_the_world(resource: "Recorded") -> bool:
    return resource.inputs["type"] == "ingress" and bool(WORLD & set(resource.inputs.get("cidrBlocks", [])))


def _lets_in_neither_shells_nor_everything(resource: "Recorded") -> bool:
    # Port 3389 is among those of replies: nothing listens there, and the security groups let nobody ask.
    return not any(
        rule["cidrBlock"] in WORLD and (rule["protocol"] == "-1" or rule["fromPort"] <= SSH <= rule["toPort"])
        for rule in resource.inputs["ingress"]
    )


def _keeps_secrets_wrapped(resource: "Recorded") -> bool:
    return (SECRET_INPUTS & resource.inputs.keys()) <= resource.secrets


def _is_https_or_a_redirect(resource: "Recorded") -> bool:
    (action,) = resource.inputs["defaultActions"]
    redirects = action["type"] == "redirect" and action["redirect"]["protocol"] == "HTTPS"
    return bool(resource.inputs["protocol"] == "HTTPS" or redirects)


def _backs_up_each_day_for_a_week(resource: "Recorded") -> bool:
    return any(
        rule["schedule"].split(" ", 2)[2] == "* * ? *)" and rule["lifecycle"]["deleteAfter"] >= 7
        for rule in resource.inputs["rules"]
    )


def _days_between(resource: "Recorded") -> int:
    rate = re.fullmatch(r"rate\((\d+) days?\)", resource.inputs["scheduleExpression"])
    return int(rate[1]) if rate else 0


def _is_false(value: Any) -> bool:
    return value is False


def _below(least: int) -> Callable[[Any], bool]:
    return lambda value: bool(value < least)


RULES = (
    # Any resource
    Rule(
        sentence="No input holds a secret that is not marked as one",
        standard="OWASP ASVS 5 V13.3",
        on=ANY,
        holds=_keeps_secrets_wrapped,
        broken={"password": "plain"},
    ),
    Rule(
        sentence="No resource overrides the tags by which a stage is found and paid",
        standard="FSBP tagging controls (such as EC2.38, DynamoDB.5)",
        on=ANY,
        holds=lambda resource: not PROJECT_TAGS & (resource.inputs.get("tags") or {}).keys(),
        broken={"tags": {"Stage": "other"}},
    ),
    # Identity
    Rule(
        sentence="No role may do everything of a service",
        standard="FSBP IAM.1, IAM.21",
        on=ROLE_POLICY,
        holds=_has_no_star_action,
        broken={"policy": _policy(Action=["sqs:*"], Resource=["arn:x"])},
    ),
    Rule(
        sentence="No role may act on every resource where AWS knows a name",
        standard="FSBP IAM.1",
        on=ROLE_POLICY,
        holds=_has_no_star_resource,
        broken={"policy": _policy(Resource=["*"])},
    ),
    Rule(
        sentence="A role is assumed by one AWS service, for our account only",
        standard="AWS IAM: the confused deputy problem",
        on=ROLE,
        holds=_is_assumed_for_us_only,
        broken={"assumeRolePolicy": _policy(Principal={"AWS": "*"})},
    ),
    # Network
    Rule(
        sentence="The default security group lets nothing through",
        standard="FSBP EC2.2",
        on=DEFAULT_GROUP,
        holds=lambda resource: not {"ingress", "egress"} & resource.inputs.keys(),
        broken={"ingress": [{}]},
    ),
    Rule(
        sentence="The default network ACL lets in neither remote shells nor everything from everywhere",
        standard="FSBP EC2.21",
        on=DEFAULT_ACL,
        holds=_lets_in_neither_shells_nor_everything,
        broken={
            "ingress": [{"protocol": "-1", "cidrBlock": "0.0.0.0/0", "action": "allow", "fromPort": 0, "toPort": 0}]
        },
    ),
    Rule(
        sentence="A subnet gives out no public addresses by itself",
        standard="FSBP EC2.15",
        on=SUBNET,
        holds=_is("mapPublicIpOnLaunch", False),
        broken={"mapPublicIpOnLaunch": True},
    ),
    Rule(
        sentence="The world reaches ports 80 and 443 only",
        standard="FSBP EC2.18, EC2.19",
        on=GROUP_RULE,
        holds=lambda resource: (
            not _reaches_the_world(resource)
            or (resource.inputs["fromPort"] == resource.inputs["toPort"] and resource.inputs["toPort"] in (80, 443))
        ),
        broken={"type": "ingress", "cidrBlocks": ["0.0.0.0/0"], "fromPort": 22, "toPort": 22},
    ),
    Rule(
        sentence="Only the load balancer is reached from networks, all else from security groups",
        standard="DESIGN 3: load balancer → API → data, nothing wider",
        on=GROUP_RULE,
        holds=lambda resource: (
            resource.inputs["type"] != "ingress"
            or "cidrBlocks" not in resource.inputs
            or resource.inputs["securityGroupId"] == "load-balancer-id"
        ),
        broken={"type": "ingress", "cidrBlocks": ["10.0.0.0/16"], "securityGroupId": "data-id"},
    ),
    Rule(
        sentence="A VPC endpoint costs nothing while idle",
        standard="DESIGN 4: what is always on has no idle fee",
        on=ENDPOINT,
        holds=_is("vpcEndpointType", "Gateway"),
        broken={"vpcEndpointType": "Interface"},
    ),
    # Load balancer
    Rule(
        sentence="A listener speaks TLS or redirects to it",
        standard="FSBP ELB.1; OWASP ASVS 5 V12.2",
        on=LISTENER,
        holds=_is_https_or_a_redirect,
        broken={"protocol": "HTTP", "defaultActions": [{"type": "forward"}]},
        chosen=("certificateArn", lambda value: not value),
    ),
    Rule(
        sentence="A TLS listener takes TLS 1.3 and nothing below 1.2",
        standard="FSBP ELB.17; OWASP ASVS 5 V12.1",
        on=LISTENER,
        holds=lambda resource: (
            resource.inputs["protocol"] != "HTTPS"
            or resource.inputs["sslPolicy"] == "ELBSecurityPolicy-TLS13-1-2-2021-06"
        ),
        broken={"protocol": "HTTPS", "sslPolicy": "ELBSecurityPolicy-2016-08"},
    ),
    Rule(
        sentence="The load balancer drops headers that servers read differently",
        standard="FSBP ELB.4",
        on=BALANCER,
        holds=_is("dropInvalidHeaderFields", True),
        broken={"dropInvalidHeaderFields": False},
    ),
    Rule(
        sentence="The load balancer refuses requests that could be read as two",
        standard="FSBP ELB.12",
        on=BALANCER,
        holds=lambda resource: resource.inputs.get("desyncMitigationMode") in ("defensive", "strictest"),
        broken={"desyncMitigationMode": "monitor"},
    ),
    Rule(
        sentence="The load balancer stands in two zones",
        standard="FSBP ELB.13",
        on=BALANCER,
        holds=lambda resource: len(resource.inputs["subnets"]) >= 2,
        broken={"subnets": ["one"]},
    ),
    Rule(
        sentence="What is replaced before it is deleted has no fixed name",
        standard="ADR 0002: re-enabling never collides with what a flip left behind",
        on=BALANCER,
        holds=lambda resource: "name" not in resource.inputs,
        broken={"name": "fixed"},
    ),
    Rule(
        sentence="A target group that is in use can be replaced",
        standard="ADR 0002: re-enabling never collides with what a flip left behind",
        on=TARGET_GROUP,
        holds=lambda resource: "name" not in resource.inputs,
        broken={"name": "fixed"},
    ),
    Rule(
        sentence="A security group that is in use can be replaced",
        standard="ADR 0002: re-enabling never collides with what a flip left behind",
        on=GROUP,
        holds=lambda resource: "name" not in resource.inputs,
        broken={"name": "fixed"},
    ),
    # Containers
    Rule(
        sentence="A task has no public address",
        standard="FSBP ECS.2",
        on=SERVICE,
        holds=lambda resource: resource.inputs["networkConfiguration"]["assignPublicIp"] is False,
        broken={"networkConfiguration": {"assignPublicIp": True}},
        chosen=("natGateways", _below(1)),
    ),
    Rule(
        sentence="A task runs on the newest platform",
        standard="FSBP ECS.10",
        on=SERVICE,
        holds=lambda resource: resource.inputs.get("platformVersion", "LATEST") == "LATEST",
        broken={"platformVersion": "1.3.0"},
    ),
    Rule(
        sentence="A container writes no disk",
        standard="FSBP ECS.5",
        on=TASK,
        holds=_each_container(lambda container: container.get("readonlyRootFilesystem") is True),
        broken=_container(readonlyRootFilesystem=False),
    ),
    Rule(
        sentence="A container is not root",
        standard="FSBP ECS.20",
        on=TASK,
        holds=_each_container(lambda container: container.get("user") not in (None, "", "0", "root")),
        broken=_container(user="root"),
    ),
    Rule(
        sentence="A container has no privileges and no capabilities",
        standard="FSBP ECS.4; OWASP Docker security cheat sheet, rule 3",
        on=TASK,
        holds=_each_container(
            lambda container: (
                not container.get("privileged")
                and container.get("linuxParameters", {}).get("capabilities") == {"drop": ["ALL"]}
            )
        ),
        broken=_container(privileged=True),
    ),
    Rule(
        sentence="A container is given secrets by reference",
        standard="FSBP ECS.8",
        on=TASK,
        holds=_each_container(lambda container: _has_no_secret_variable(container["environment"])),
        broken=_container(environment=[{"name": "DB_PASSWORD", "value": "plain"}]),
    ),
    Rule(
        sentence="A container logs",
        standard="FSBP ECS.9",
        on=TASK,
        holds=_each_container(lambda container: container.get("logConfiguration", {}).get("logDriver") == "awslogs"),
        broken=_container(),
    ),
    Rule(
        sentence="A task does not share the network of its host",
        standard="FSBP ECS.17",
        on=TASK,
        holds=_is("networkMode", "awsvpc"),
        broken={"networkMode": "host"},
    ),
    Rule(
        sentence="An image's tag never moves",
        standard="FSBP ECR.2",
        on=REPOSITORY,
        holds=_is("imageTagMutability", "IMMUTABLE"),
        broken={"imageTagMutability": "MUTABLE"},
    ),
    Rule(
        sentence="An image is scanned when it is pushed",
        standard="FSBP ECR.1",
        on=REPOSITORY,
        holds=_is("imageScanningConfiguration", {"scanOnPush": True}),
        broken={"imageScanningConfiguration": {"scanOnPush": False}},
    ),
    # Functions
    Rule(
        sentence="A function's runtime is one that AWS keeps up to date",
        standard="FSBP Lambda.2",
        on=FUNCTION,
        holds=lambda resource: resource.inputs["runtime"] in ("python3.12", "python3.13", "python3.14"),
        broken={"runtime": "python3.8"},
    ),
    Rule(
        sentence="A function is given no secret in its environment",
        standard="OWASP ASVS 5 V13.3",
        on=FUNCTION,
        holds=lambda resource: _has_no_secret_variable(resource.inputs["environment"]["variables"]),
        broken={"environment": {"variables": {"API_TOKEN": "plain"}}},
    ),
    # Messages
    Rule(
        sentence="A queue is encrypted",
        standard="FSBP SQS.1",
        on=QUEUE,
        holds=_is("sqsManagedSseEnabled", True),
        broken={"sqsManagedSseEnabled": False},
    ),
    Rule(
        sentence="A queue lets in one service, for one source of our account",
        standard="FSBP SQS.3; AWS IAM: the confused deputy problem",
        on=QUEUE_POLICY,
        holds=_lets_only_our_services_in,
        broken={"policy": _policy(Principal="*")},
    ),
    Rule(
        sentence="The topic of bookings is encrypted",
        standard="FSBP SNS.1",
        on=TOPIC,
        holds=lambda resource: bool(resource.inputs.get("kmsMasterKeyId")),
        broken={"kmsMasterKeyId": None},
        exempt=frozenset({"alarms"}),
    ),
    Rule(
        sentence="The topic of alarms is encrypted, with a key that CloudWatch may use",
        standard="FSBP SNS.1",
        on=TOPIC,
        holds=lambda resource: resource.inputs.get("kmsMasterKeyId") not in (None, "", "alias/aws/sns"),
        broken={"kmsMasterKeyId": "alias/aws/sns"},
        chosen=("alarmKey", _is_false),
        exempt=frozenset({"booking-events"}),
    ),
    Rule(
        sentence="A key rotates each year",
        standard="FSBP KMS.4",
        on=KEY,
        holds=_is("enableKeyRotation", True),
        broken={"enableKeyRotation": False},
    ),
    Rule(
        sentence="A key is used by one service, for one source of our account",
        standard="FSBP KMS.5",
        on=KEY,
        holds=_is_used_for_our_alarms_only,
        broken={"policy": _policy(Principal="*")},
    ),
    Rule(
        sentence="A topic lets in one service, for one source of our account",
        standard="FSBP SNS.4",
        on=TOPIC_POLICY,
        holds=_lets_only_our_services_in,
        broken={"policy": _policy(Principal={"Service": "cloudwatch.amazonaws.com"})},
    ),
    Rule(
        sentence="Somebody is reminded each quarter of the keys that nothing rotates",
        standard="FSBP SecretsManager.4",
        on=SCHEDULE,
        holds=lambda resource: (
            1 <= _days_between(resource) <= 90
            and resource.inputs.get("state", "ENABLED") == "ENABLED"
            and resource.inputs["target"]["arn"].endswith("-alarms")
        ),
        broken={"scheduleExpression": "rate(365 days)"},
    ),
    Rule(
        sentence="An alarm tells somebody",
        standard="FSBP CloudWatch.15, CloudWatch.17",
        on=ALARM,
        holds=lambda resource: (
            bool(resource.inputs.get("alarmActions")) and resource.inputs.get("actionsEnabled", True) is True
        ),
        broken={"alarmActions": []},
    ),
    Rule(
        sentence="A log has an end",
        standard="DESIGN 4: what is always on has no idle fee",
        on=LOGS,
        holds=lambda resource: resource.inputs.get("retentionInDays", 0) > 0,
        broken={"retentionInDays": 0},
    ),
    Rule(
        sentence="A log is kept for a year",
        standard="FSBP CloudWatch.16",
        on=LOGS,
        holds=lambda resource: resource.inputs.get("retentionInDays", 0) >= 365,
        broken={"retentionInDays": 30},
        chosen=("logRetentionDays", _below(365)),
    ),
    # Objects, items, secrets
    Rule(
        sentence="A bucket is closed to the public",
        standard="FSBP S3.1, S3.2, S3.3, S3.8",
        on=BUCKET_CLOSED,
        holds=lambda resource: all(
            resource.inputs.get(door) is True
            for door in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
        ),
        broken={"blockPublicPolicy": False},
    ),
    Rule(
        sentence="A bucket has no access lists",
        standard="FSBP S3.12",
        on=BUCKET_OWNER,
        holds=_is("rule", {"objectOwnership": "BucketOwnerEnforced"}),
        broken={"rule": {"objectOwnership": "ObjectWriter"}},
    ),
    Rule(
        sentence="A bucket refuses plain HTTP",
        standard="FSBP S3.5",
        on=BUCKET_POLICY,
        holds=_denies_plain_http,
        broken={"policy": _policy(Principal="*")},
    ),
    Rule(
        sentence="A table is encrypted under a key that shows in the account",
        standard="DESIGN 3: encrypted",
        on=TABLE,
        holds=_is("serverSideEncryption", {"enabled": True}),
        broken={"serverSideEncryption": {"enabled": False}},
    ),
    Rule(
        sentence="A table grows with its load",
        standard="FSBP DynamoDB.1",
        on=TABLE,
        holds=_is("billingMode", "PAY_PER_REQUEST"),
        broken={"billingMode": "PROVISIONED"},
    ),
    Rule(
        sentence="A table can be put back to a moment",
        standard="FSBP DynamoDB.2",
        on=TABLE,
        holds=_is("pointInTimeRecovery", {"enabled": True}),
        broken={"pointInTimeRecovery": {"enabled": False}},
        chosen=("pointInTimeRecovery", _is_false),
    ),
    Rule(
        sentence="A table refuses to be deleted",
        standard="FSBP DynamoDB.6",
        on=TABLE,
        holds=_is("deletionProtectionEnabled", True),
        broken={"deletionProtectionEnabled": False},
        chosen=("deletionProtection", _is_false),
    ),
    Rule(
        sentence="A secret that was deleted by mistake can be brought back",
        standard="OWASP ASVS 5 V13.3",
        on=SECRET,
        holds=lambda resource: resource.inputs["recoveryWindowInDays"] >= 7,
        broken={"recoveryWindowInDays": 0},
        chosen=("secretRecoveryDays", _below(7)),
        exempt=frozenset({"redis-token"}),
    ),
    # Database
    Rule(
        sentence="A database has no public address",
        standard="FSBP RDS.2",
        on=DATABASE,
        holds=_is("publiclyAccessible", False),
        broken={"publiclyAccessible": True},
    ),
    Rule(
        sentence="A database is encrypted",
        standard="FSBP RDS.3",
        on=DATABASE,
        holds=_is("storageEncrypted", True),
        broken={"storageEncrypted": False},
    ),
    Rule(
        sentence="A database speaks TLS only",
        standard="FSBP RDS.38; OWASP ASVS 5 V12.3",
        on=PARAMETERS,
        holds=lambda resource: {"name": "rds.force_ssl", "value": "1"} in resource.inputs["parameters"],
        broken={"parameters": []},
    ),
    Rule(
        sentence="A database exports its logs",
        standard="FSBP RDS.9, RDS.36",
        on=DATABASE,
        holds=lambda resource: "postgresql" in resource.inputs.get("enabledCloudwatchLogsExports", []),
        broken={"enabledCloudwatchLogsExports": []},
    ),
    Rule(
        sentence="A database takes minor upgrades by itself",
        standard="FSBP RDS.13",
        on=DATABASE,
        holds=_is("autoMinorVersionUpgrade", True),
        broken={"autoMinorVersionUpgrade": False},
    ),
    Rule(
        sentence="The tags of a database go with its snapshots",
        standard="FSBP RDS.17",
        on=DATABASE,
        holds=_is("copyTagsToSnapshot", True),
        broken={"copyTagsToSnapshot": False},
    ),
    Rule(
        sentence="A database's administrator has a name of its own",
        standard="FSBP RDS.25",
        on=DATABASE,
        holds=lambda resource: resource.inputs["username"] not in ("postgres", "admin"),
        broken={"username": "postgres"},
    ),
    Rule(
        sentence="A database's password is made and rotated by RDS",
        standard="FSBP SecretsManager.1; OWASP ASVS 5 V13.3",
        on=DATABASE,
        holds=lambda resource: resource.inputs.get("manageMasterUserPassword") is True,
        broken={"manageMasterUserPassword": False},
    ),
    Rule(
        sentence="A database that goes leaves a snapshot",
        standard="ADR 0002: a flip loses nothing",
        on=DATABASE,
        holds=_is("skipFinalSnapshot", False),
        broken={"skipFinalSnapshot": True},
    ),
    Rule(
        sentence="A database keeps backups for a week",
        standard="FSBP RDS.11",
        on=DATABASE,
        holds=lambda resource: resource.inputs["backupRetentionPeriod"] >= 7,
        broken={"backupRetentionPeriod": 1},
        chosen=("databaseBackupDays", _below(7)),
    ),
    Rule(
        sentence="A database stands in two zones",
        standard="FSBP RDS.5",
        on=DATABASE,
        holds=_is("multiAz", True),
        broken={"multiAz": False},
        chosen=("databaseMultiAz", _is_false),
    ),
    Rule(
        sentence="A database refuses to be deleted",
        standard="FSBP RDS.8",
        on=DATABASE,
        holds=_is("deletionProtection", True),
        broken={"deletionProtection": False},
        chosen=("deletionProtection", _is_false),
    ),
    Rule(
        sentence="A database is in a backup plan, by its own name",
        standard="FSBP RDS.26",
        on=BACKUP_SELECTION,
        holds=lambda resource: any(
            arn.endswith(":minitickets-prod-db") and ":rds:" in arn for arn in resource.inputs["resources"]
        ),
        broken={"resources": ["arn:aws:dynamodb:us-east-1:123456789012:table/minitickets-prod-tickets"]},
    ),
    Rule(
        sentence="A backup plan takes a backup each day and keeps it for a week",
        standard="FSBP RDS.26; AWS Config BACKUP_PLAN_MIN_FREQUENCY_AND_MIN_RETENTION_CHECK",
        on=BACKUP_PLAN,
        holds=_backs_up_each_day_for_a_week,
        broken={"rules": [{"schedule": "cron(0 8 ? * SUN *)", "lifecycle": {"deleteAfter": 35}}]},
    ),
    # Cache
    Rule(
        sentence="A cache is encrypted",
        standard="FSBP ElastiCache.4",
        on=CACHE,
        holds=_is("atRestEncryptionEnabled", True),
        broken={"atRestEncryptionEnabled": False},
    ),
    Rule(
        sentence="A cache speaks TLS only",
        standard="FSBP ElastiCache.5; OWASP ASVS 5 V12.3",
        on=CACHE,
        holds=_is("transitEncryptionEnabled", True),
        broken={"transitEncryptionEnabled": False},
    ),
    Rule(
        sentence="A cache asks for a token",
        standard="FSBP ElastiCache.6",
        on=CACHE,
        holds=lambda resource: bool(resource.inputs.get("authToken")),
        broken={"authToken": None},
    ),
    Rule(
        sentence="A cache is backed up",
        standard="FSBP ElastiCache.1",
        on=CACHE,
        holds=lambda resource: resource.inputs.get("snapshotRetentionLimit", 0) >= 1,
        broken={"snapshotRetentionLimit": 0},
    ),
    Rule(
        sentence="A cache takes minor upgrades by itself",
        standard="FSBP ElastiCache.2",
        on=CACHE,
        holds=_is("autoMinorVersionUpgrade", True),
        broken={"autoMinorVersionUpgrade": False},
    ),
    Rule(
        sentence="A cache is in subnets of its own choosing",
        standard="FSBP ElastiCache.7",
        on=CACHE,
        holds=lambda resource: resource.inputs.get("subnetGroupName") not in (None, "default"),
        broken={"subnetGroupName": "default"},
    ),
    Rule(
        sentence="A cache fails over to a replica",
        standard="FSBP ElastiCache.3",
        on=CACHE,
        holds=_is("automaticFailoverEnabled", True),
        broken={"automaticFailoverEnabled": False},
        chosen=("cacheReplicas", _below(1)),
    ),
)

# What each resource of a type must have beside it: type, type of its companion, the standard.
COMPANIONS = (
    ("aws:s3/bucket:Bucket", BUCKET_CLOSED, "FSBP S3.8"),
    ("aws:s3/bucket:Bucket", BUCKET_OWNER, "FSBP S3.12"),
    ("aws:s3/bucket:Bucket", BUCKET_POLICY, "FSBP S3.5"),
    ("aws:s3/bucket:Bucket", "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration", "FSBP S3.13"),
    (REPOSITORY, "aws:ecr/lifecyclePolicy:LifecyclePolicy", "FSBP ECR.3"),
    (ROLE, ROLE_POLICY, "DESIGN 3: every statement; nothing else"),
)

SWITCHES = (("true", "true"), ("false", "true"), ("false", "false"))
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/one"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A stage under one position of its switches, and what it chose."""

    recording: "Recording"
    values: Mapping[str, Any]


def _stage_values(stage: str) -> dict[str, Any]:
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    chosen = yaml.safe_load((ROOT / f"Pulumi.{stage}.yaml").read_text())["config"]
    ours = {key.removeprefix("minitickets:"): value for key, value in chosen.items() if key.startswith("minitickets:")}
    return {key: entry.get("default") for key, entry in declared.items()} | ours


@pytest.fixture(scope="module")
def runs(record: "Record") -> list[Run]:
    """Both stages of the project, in every position of the switches that is allowed."""
    found = []
    for stage in ("dev", "prod"):
        values = _stage_values(stage) | {"image": "local"}
        del values["artifactsDir"]
        if values["certificateArn"]:
            values["certificateArn"] = CERTIFICATE  # of the account that the recording plays
        else:
            values["allowedCidrs"] = ["203.0.113.0/24"]
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
        for compute, data in SWITCHES:
            recording = record({**texts, "computeEnabled": compute, "dataEnabled": data}, stage=stage)
            found.append(Run(recording=recording, values=values))
    return found


def _subject_to(rule: Rule, recording: "Recording") -> list["Recorded"]:
    resources = recording.resources.values() if rule.on == ANY else recording.of(rule.on).values()
    return [resource for resource in resources if resource.name not in rule.exempt]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.sentence)
def test_rule(rule: Rule, runs: list[Run]) -> None:
    seen = 0
    for run in runs:
        if rule.chosen is not None:
            setting, is_less = rule.chosen
            if is_less(run.values[setting]):
                continue
        for resource in _subject_to(rule, run.recording):
            seen += 1
            assert rule.holds(resource), f"{resource.key}: {rule.sentence} ({rule.standard})"
    assert seen, "no stage has anything that this rule is about"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.sentence)
def test_rule_bites(rule: Rule, runs: list[Run]) -> None:
    resource = next(resource for run in runs for resource in _subject_to(rule, run.recording))
    broken = {key: value for key, value in {**resource.inputs, **rule.broken}.items() if value is not None}
    assert not rule.holds(dataclasses.replace(resource, inputs=broken))


@pytest.mark.parametrize(("type_", "companion", "standard"), COMPANIONS)
def test_nothing_stands_without_what_guards_it(runs: list[Run], type_: str, companion: str, standard: str) -> None:
    for run in runs:
        assert run.recording.of(type_)
        assert run.recording.of(type_).keys() <= run.recording.of(companion).keys(), standard


def test_every_database_is_in_a_backup_plan_but_of_a_stage_that_chooses_none(runs: list[Run]) -> None:
    planned = set()
    for run in runs:
        selected = {arn for found in run.recording.of(BACKUP_SELECTION).values() for arn in found.inputs["resources"]}
        stage = "prod" if run.values["production"] else "dev"
        wanted = run.recording.of(DATABASE) and run.values["backupPlanDays"] > 0
        assert selected == ({f"arn:aws:rds:us-east-1:123456789012:minitickets-{stage}-db"} if wanted else set())
        planned.add((stage, bool(wanted)))
    assert planned == {("dev", False), ("prod", True), ("prod", False)}, "FSBP RDS.26, and what a flip takes away"


def test_the_production_stage_chooses_less_of_nothing(runs: list[Run]) -> None:
    values = next(run.values for run in runs if run.values["production"])
    assert values["backupPlanDays"] > 0
    less = [rule.sentence for rule in RULES if rule.chosen and rule.chosen[1](values[rule.chosen[0]])]
    assert less == []


def test_what_a_stage_chooses_less_of_and_what_is_exempt_has_its_reason_in_the_docs() -> None:
    text = (ROOT / "docs/security.md").read_text()
    for rule in RULES:
        if rule.chosen:
            assert f"`{rule.chosen[0]}`" in text, rule.sentence
        for name in rule.exempt:
            assert f"`{name}`" in text, rule.sentence
