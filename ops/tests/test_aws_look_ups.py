"""What a killed run may have made is found by the inputs that it was sent with. tests/engine shows it of all the types
that stage dev has; here are the others, and what must not be found."""

from collections.abc import Callable
from typing import Any

import pytest

from local.emulator import Clients
from ops.aws_account import AwsAccount

pytestmark = pytest.mark.integration

REGION = "eu-west-3"  # nobody else's in the session's emulator
TAGS = {"Name": "minitickets-prod-nat-0", "Project": "minitickets", "Stage": "prod"}

Case = tuple[str, dict[str, Any], str]
Make = Callable[[Clients], Case]


@pytest.fixture
def region() -> str:
    return REGION


def _specified(kind: str, tags: dict[str, str]) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]


def _address(aws: Clients) -> Case:
    ec2 = aws("ec2")
    other = TAGS | {"Name": "minitickets-prod-nat-1"}
    ec2.allocate_address(Domain="vpc", TagSpecifications=_specified("elastic-ip", other))
    made = ec2.allocate_address(Domain="vpc", TagSpecifications=_specified("elastic-ip", TAGS))
    return "aws:ec2/eip:Eip", {"domain": "vpc", "tags": TAGS}, made["AllocationId"]


def _nat_gateway(aws: Clients) -> Case:
    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24")["Subnet"]["SubnetId"]
    old, new = (ec2.allocate_address(Domain="vpc")["AllocationId"] for _ in range(2))
    gone = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=old)["NatGateway"]["NatGatewayId"]
    ec2.delete_nat_gateway(NatGatewayId=gone)
    made = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=new)["NatGateway"]["NatGatewayId"]
    return "aws:ec2/natGateway:NatGateway", {"subnetId": subnet, "allocationId": new}, made


def _key(aws: Clients) -> Case:
    kms = aws("kms")
    tags = [{"TagKey": key, "TagValue": value} for key, value in TAGS.items()]
    kms.create_key(Description="Alarms of minitickets-prod")  # somebody's own
    gone = kms.create_key(Description="Alarms of minitickets-prod", Tags=tags)["KeyMetadata"]["KeyId"]
    kms.schedule_key_deletion(KeyId=gone)
    made = kms.create_key(Description="Alarms of minitickets-prod", Tags=tags)["KeyMetadata"]["KeyId"]
    return "aws:kms/key:Key", {"description": "Alarms of minitickets-prod", "tags": TAGS}, made


def _subscription(aws: Clients) -> Case:
    sns, queue = aws("sns"), f"arn:aws:sqs:{REGION}:000000000000:jobs"
    topic = sns.create_topic(Name="booking-events")["TopicArn"]
    made = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue, ReturnSubscriptionArn=True)["SubscriptionArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=f"{queue}-2", ReturnSubscriptionArn=True)
    inputs = {"topic": topic, "protocol": "sqs", "endpoint": queue}
    return "aws:sns/topicSubscription:TopicSubscription", inputs, made


def _task_definition(aws: Clients) -> Case:
    ecs = aws("ecs")

    def register(family: str) -> str:
        container = {"name": "api", "image": "x", "memory": 128}
        arn: str = ecs.register_task_definition(family=family, containerDefinitions=[container])["taskDefinition"][
            "taskDefinitionArn"
        ]
        return arn

    ecs.deregister_task_definition(taskDefinition=register("minitickets-prod-api"))
    register("minitickets-prod-api-of-somebody")  # the prefix is the same
    return "aws:ecs/taskDefinition:TaskDefinition", {"family": "minitickets-prod-api"}, register("minitickets-prod-api")


def _make_plan(aws: Clients, *, tags: dict[str, str]) -> str:
    plan = {"BackupPlanName": "minitickets-prod-db", "Rules": [{"RuleName": "daily", "TargetBackupVaultName": "db"}]}
    made: str = aws("backup").create_backup_plan(BackupPlan=plan, BackupPlanTags=tags)["BackupPlanId"]
    return made


def _backup_plan(aws: Clients) -> Case:
    _make_plan(aws, tags={})  # somebody's own: names need not be unique
    return "aws:backup/plan:Plan", {"name": "minitickets-prod-db", "tags": TAGS}, _make_plan(aws, tags=TAGS)


def _backup_selection(aws: Clients) -> Case:
    plan = _make_plan(aws, tags={"Stage": "another"})

    def select(name: str) -> str:
        selection = {"SelectionName": name, "IamRoleArn": "arn:aws:iam::000000000000:role/backup"}
        made: str = aws("backup").create_backup_selection(BackupPlanId=plan, BackupSelection=selection)["SelectionId"]
        return made

    select("somebodys")
    made = f"{plan}|{select('minitickets-prod-db')}"
    return "aws:backup/selection:Selection", {"planId": plan, "name": "minitickets-prod-db"}, made


@pytest.mark.parametrize(
    "make", [_address, _nat_gateway, _key, _subscription, _task_definition, _backup_plan, _backup_selection]
)
def test_the_one_that_was_being_made_is_found_and_none_that_is_like_it(
    account: AwsAccount, aws: Clients, make: Make
) -> None:
    kind, inputs, made = make(aws)
    assert account.candidates(kind, inputs) == [made]


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "tags": TAGS}),
        ("aws:secretsmanager/secret:Secret", {"name": "no-such-secret"}),
        ("aws:lb/loadBalancer:LoadBalancer", {"name": "api-0000000"}),
        ("aws:backup/plan:Plan", {"name": "no-such-plan", "tags": TAGS}),
        ("aws:backup/selection:Selection", {"planId": "gone", "name": "minitickets-prod-db"}),
        ("aws:lb/listener:Listener", {"loadBalancerArn": "arn:gone", "port": 80.0}),
    ],
)
def test_what_is_not_there_or_whose_parent_is_gone_is_no_failure(
    account: AwsAccount, kind: str, inputs: dict[str, Any]
) -> None:
    assert account.candidates(kind, inputs) == []


def test_without_tags_nothing_tells_a_stage_s_network_from_another_s(account: AwsAccount) -> None:
    with pytest.raises(KeyError, match="tags"):
        account.candidates("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "tags": {}})


def test_of_a_type_without_a_look_up_nothing_is_said(account: AwsAccount) -> None:
    assert account.candidates("aws:ec2/fleet:Fleet", {}) is None
