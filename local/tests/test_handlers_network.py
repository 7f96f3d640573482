"""The network is in the control plane as the program writes it, with AWS's ids and AWS's refusals."""

import json
import secrets
from typing import Any

import pytest

from local.handlers.handler import HandlerError, InvokeError
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

VPC, SUBNET, GROUP = "ec2/vpc:Vpc", "ec2/subnet:Subnet", "ec2/securityGroup:SecurityGroup"
RULE, TABLE = "ec2/securityGroupRule:SecurityGroupRule", "ec2/routeTable:RouteTable"


@pytest.fixture
def vpc(stage: HandledStage) -> dict[str, Any]:
    return stage.create(VPC, "main", cidrBlock="10.0.0.0/16", enableDnsHostnames=True, tags={"Name": "main"})


def _permissions(stage: HandledStage, group: str, key: str = "IpPermissions") -> list[dict[str, Any]]:
    (live,) = stage.aws("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    return list(live[key])


def test_the_network_of_the_program_is_there_and_goes_again(stage: HandledStage, vpc: dict[str, Any]) -> None:
    gateway = stage.create("ec2/internetGateway:InternetGateway", "main", vpcId=vpc["id"])
    table = stage.create(TABLE, "public", vpcId=vpc["id"])
    stage.create(
        "ec2/route:Route",
        "public",
        routeTableId=table["id"],
        destinationCidrBlock="0.0.0.0/0",
        gatewayId=gateway["id"],
    )
    subnet = stage.create(SUBNET, "public", vpcId=vpc["id"], cidrBlock="10.0.0.0/24", availabilityZone="us-east-1a")
    stage.create(
        "ec2/routeTableAssociation:RouteTableAssociation",
        "public",
        routeTableId=table["id"],
        subnetId=subnet["id"],
    )
    endpoint = stage.create(
        "ec2/vpcEndpoint:VpcEndpoint",
        "s3",
        vpcId=vpc["id"],
        serviceName="com.amazonaws.us-east-1.s3",
        routeTableIds=[table["id"]],
    )
    address = stage.create("ec2/eip:Eip", "nat", domain="vpc")
    nat = stage.create("ec2/natGateway:NatGateway", "nat", subnetId=subnet["id"], allocationId=address["allocationId"])

    ec2 = stage.aws("ec2")
    (live,) = ec2.describe_route_tables(RouteTableIds=[table["id"]])["RouteTables"]
    assert {"0.0.0.0/0"} <= {route["DestinationCidrBlock"] for route in live["Routes"]}
    assert [entry["SubnetId"] for entry in live["Associations"]] == [subnet["id"]]
    assert endpoint["id"].startswith("vpce-")
    assert nat["id"].startswith("nat-")
    assert vpc["id"].startswith("vpc-")
    assert ec2.describe_vpc_attribute(VpcId=vpc["id"], Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]

    stage.delete_all()
    remaining = [entry["VpcId"] for entry in ec2.describe_vpcs()["Vpcs"]]
    assert vpc["id"] not in remaining


def test_a_vpc_with_something_in_it_refuses_to_go(stage: HandledStage, vpc: dict[str, Any]) -> None:
    stage.create(SUBNET, "s", vpcId=vpc["id"], cidrBlock="10.0.0.0/24", availabilityZone="us-east-1a")

    with pytest.raises(HandlerError, match="DependencyViolation"):
        stage.delete(VPC, "main")


def test_a_subnet_on_the_addresses_of_another_is_refused(stage: HandledStage, vpc: dict[str, Any]) -> None:
    inputs = {"vpcId": vpc["id"], "cidrBlock": "10.0.0.0/24"}
    stage.create(SUBNET, "a", **inputs, availabilityZone="us-east-1a")

    with pytest.raises(HandlerError, match=r"InvalidSubnet\.Conflict"):
        stage.create(SUBNET, "b", **inputs, availabilityZone="us-east-1b")


def test_the_default_network_acl_becomes_exactly_what_the_program_says(
    stage: HandledStage, vpc: dict[str, Any]
) -> None:
    kind = "ec2/defaultNetworkAcl:DefaultNetworkAcl"
    inside = {"ruleNo": 100.0, "action": "allow", "protocol": "-1", "cidrBlock": "10.0.0.0/16"}
    web = {"ruleNo": 200.0, "action": "allow", "protocol": "tcp", "cidrBlock": "0.0.0.0/0", "fromPort": 80.0}
    inputs = {"defaultNetworkAclId": vpc["defaultNetworkAclId"], "ingress": [inside, {**web, "toPort": 80.0}]}

    acl = stage.create(kind, "default", **inputs, egress=[{**inside, "cidrBlock": "0.0.0.0/0"}])
    assert acl["id"] == vpc["defaultNetworkAclId"]
    assert _acl_rules(stage, acl["id"]) == {
        (False, 100, "allow", "-1", "10.0.0.0/16"),
        (False, 200, "allow", "6", "0.0.0.0/0"),
        (False, 32_767, "deny", "-1", "0.0.0.0/0"),
        (True, 100, "allow", "-1", "0.0.0.0/0"),
        (True, 32_767, "deny", "-1", "0.0.0.0/0"),
    }

    stage.update(kind, "default", **{**inputs, "ingress": [inside]})
    assert [rule for rule in _acl_rules(stage, acl["id"]) if rule[2] == "allow"] == [
        (False, 100, "allow", "-1", "10.0.0.0/16")
    ]


def _acl_rules(stage: HandledStage, acl: str) -> set[tuple[bool, int, str, str, str]]:
    (listed,) = stage.aws("ec2").describe_network_acls(NetworkAclIds=[acl])["NetworkAcls"]
    return {
        (entry["Egress"], entry["RuleNumber"], entry["RuleAction"], entry["Protocol"], entry["CidrBlock"])
        for entry in listed["Entries"]
    }


def test_a_security_group_lets_in_and_out_only_what_its_rules_say(stage: HandledStage, vpc: dict[str, Any]) -> None:
    api = stage.create(GROUP, "api", vpcId=vpc["id"], description="api")
    data = stage.create(GROUP, "data", vpcId=vpc["id"], description="data")
    stage.create(
        RULE,
        "api-to-postgres",
        type="ingress",
        securityGroupId=data["id"],
        protocol="tcp",
        fromPort=5432.0,
        toPort=5432.0,
        sourceSecurityGroupId=api["id"],
    )

    (permission,) = _permissions(stage, data["id"])
    assert (permission["FromPort"], permission["ToPort"]) == (5432, 5432)
    assert [pair["GroupId"] for pair in permission["UserIdGroupPairs"]] == [api["id"]]
    assert permission["IpRanges"] == []
    assert _permissions(stage, data["id"], "IpPermissionsEgress") == []

    stage.delete(RULE, "api-to-postgres")
    assert _permissions(stage, data["id"]) == []


def test_rules_written_inside_a_group_change_in_place(stage: HandledStage, vpc: dict[str, Any]) -> None:
    def web(port: float) -> dict[str, Any]:
        return {"protocol": "tcp", "fromPort": port, "toPort": port, "cidrBlocks": ["0.0.0.0/0"]}

    group = stage.create(GROUP, "alb", vpcId=vpc["id"], description="d", ingress=[web(80.0)], egress=[web(443.0)])
    stage.update(GROUP, "alb", vpcId=vpc["id"], description="d", ingress=[web(8080.0)])

    assert [permission["FromPort"] for permission in _permissions(stage, group["id"])] == [8080]
    assert _permissions(stage, group["id"], "IpPermissionsEgress") == []


def test_a_rule_of_the_newer_shape_keeps_its_id_when_it_changes(stage: HandledStage, vpc: dict[str, Any]) -> None:
    kind = "vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    group = stage.create(GROUP, "alb", vpcId=vpc["id"], description="d")
    inputs = {"securityGroupId": group["id"], "ipProtocol": "tcp", "cidrIpv4": "0.0.0.0/0"}
    stage.create(kind, "web", **inputs, fromPort=80.0, toPort=80.0)

    stage.update(kind, "web", **inputs, fromPort=443.0, toPort=443.0)

    assert [permission["FromPort"] for permission in _permissions(stage, group["id"])] == [443]
    assert stage.read(kind, "web") is not None


def test_the_default_group_is_closed_when_the_program_takes_it(stage: HandledStage, vpc: dict[str, Any]) -> None:
    taken = stage.create("ec2/defaultSecurityGroup:DefaultSecurityGroup", "default", vpcId=vpc["id"])

    assert taken["id"] == vpc["defaultSecurityGroupId"]
    assert _permissions(stage, taken["id"]) == []
    assert _permissions(stage, taken["id"], "IpPermissionsEgress") == []


def test_a_database_subnet_group_in_one_zone_is_refused(stage: HandledStage, vpc: dict[str, Any]) -> None:
    subnets = [
        stage.create(SUBNET, f"s{octet}", vpcId=vpc["id"], cidrBlock=f"10.0.{octet}.0/24", availabilityZone=zone)["id"]
        for octet, zone in ((0, "us-east-1a"), (1, "us-east-1a"), (2, "us-east-1b"))
    ]
    name = f"t-{secrets.token_hex(4)}"

    with pytest.raises(HandlerError, match="DBSubnetGroupDoesNotCoverEnoughAZs"):
        stage.create("rds/subnetGroup:SubnetGroup", "db", name=name, subnetIds=subnets[:2])
    group = stage.create("rds/subnetGroup:SubnetGroup", "db", name=name, subnetIds=subnets[1:])
    assert group["name"] == name


def test_an_image_repository_keeps_its_settings_and_its_clean_up(stage: HandledStage) -> None:
    name = f"t-{secrets.token_hex(4)}"
    rules = {"rules": [{"rulePriority": 1, "selection": {"tagStatus": "any", "countType": "imageCountMoreThan"}}]}
    repository = stage.create(
        "ecr/repository:Repository",
        "api",
        name=name,
        imageTagMutability="IMMUTABLE",
        imageScanningConfiguration={"scanOnPush": True},
    )
    stage.create("ecr/lifecyclePolicy:LifecyclePolicy", "api", repository=name, policy=json.dumps(rules))

    ecr = stage.aws("ecr")
    (live,) = ecr.describe_repositories(repositoryNames=[name])["repositories"]
    assert live["imageTagMutability"] == "IMMUTABLE"
    assert repository["repositoryUrl"].endswith(f"/{name}")
    assert json.loads(ecr.get_lifecycle_policy(repositoryName=name)["lifecyclePolicyText"]) == rules
    with pytest.raises(HandlerError, match="RepositoryAlreadyExists"):
        stage.create("ecr/repository:Repository", "again", name=name)


def test_a_type_without_a_handler_is_an_error_that_names_it(stage: HandledStage) -> None:
    with pytest.raises(HandlerError, match=r"aws:sfn/stateMachine:StateMachine \(flow\)"):
        stage.create("sfn/stateMachine:StateMachine", "flow")


def test_look_ups_answer_who_and_where_the_program_is(stage: HandledStage) -> None:
    look = stage.provider.invoke

    assert look("aws:index/getCallerIdentity:getCallerIdentity", {})["accountId"] == "000000000000"
    assert look("aws:index/getRegion:getRegion", {})["region"] == "us-east-1"
    zones = look(
        "aws:index/getAvailabilityZones:getAvailabilityZones",
        {"state": "available", "filters": [{"name": "opt-in-status", "values": ["opt-in-not-required"]}]},
    )
    assert zones["names"][:2] == ["us-east-1a", "us-east-1b"]
    password = look(
        "aws:secretsmanager/getRandomPassword:getRandomPassword", {"passwordLength": 64.0, "excludePunctuation": True}
    )["randomPassword"]
    assert len(password) == 64
    assert password.isalnum()


def test_a_look_up_by_path_finds_nothing_without_an_error(stage: HandledStage) -> None:
    name = f"t-{secrets.token_hex(4)}"
    token = "aws:ssm/getParametersByPath:getParametersByPath"

    assert stage.provider.invoke(token, {"path": f"/{name}"})["names"] == []
    stage.create("ssm/parameter:Parameter", "p", name=f"/{name}/database-life", type="String", insecureValue="{}")
    found = stage.provider.invoke(token, {"path": f"/{name}"})
    assert dict(zip(found["names"], found["values"], strict=True)) == {f"/{name}/database-life": "{}"}


def test_a_look_up_for_a_snapshot_that_is_not_there_fails_in_the_providers_words(stage: HandledStage) -> None:
    with pytest.raises(InvokeError, match="Your query returned no results"):
        stage.provider.invoke("aws:rds/getSnapshot:getSnapshot", {"dbSnapshotIdentifier": "no-such"})


def test_an_unknown_look_up_is_an_error_that_names_it(stage: HandledStage) -> None:
    with pytest.raises(InvokeError, match="aws:kms/getKey:getKey"):
        stage.provider.invoke("aws:kms/getKey:getKey", {})
