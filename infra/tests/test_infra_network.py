"""Who can reach whom."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
SUBNET = "aws:ec2/subnet:Subnet"
CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/one"


def _rules(recording: "Recording") -> set[tuple[str, str, str, int, int]]:
    """(group, direction, peer, from port, to port) of every rule; a group is named by its Pulumi name."""
    rules = set()
    for rule in recording.of(RULE).values():
        inputs = rule.inputs
        assert inputs["protocol"] == "tcp"
        peers = inputs.get("cidrBlocks") or [inputs["sourceSecurityGroupId"].removesuffix("-id")]
        for peer in peers:
            group = inputs["securityGroupId"].removesuffix("-id")
            rules.add((group, inputs["type"], peer, int(inputs["fromPort"]), int(inputs["toPort"])))
    return rules


CHAIN = {
    ("load-balancer", "egress", "api", 8000, 8000),
    ("api", "ingress", "load-balancer", 8000, 8000),
    ("api", "egress", "data", 5432, 5432),
    ("data", "ingress", "api", 5432, 5432),
    ("api", "egress", "data", 6379, 6379),
    ("data", "ingress", "api", 6379, 6379),
    ("api", "egress", "0.0.0.0/0", 443, 443),
}


def test_the_load_balancer_reaches_the_api_the_api_the_data_and_nothing_is_wider(both_on: "Recording") -> None:
    assert _rules(both_on) == CHAIN


def test_until_a_stage_names_a_network_nobody_reaches_the_load_balancer(both_on: "Recording") -> None:
    assert not any(group == "load-balancer" and way == "ingress" for group, way, *_ in _rules(both_on))


def test_named_networks_reach_the_load_balancer_over_http_without_a_certificate(record: "Record") -> None:
    recording = record({"allowedCidrs": '["203.0.113.0/24","198.51.100.7/32"]'})
    assert _rules(recording) - CHAIN == {
        ("load-balancer", "ingress", "203.0.113.0/24", 80, 80),
        ("load-balancer", "ingress", "198.51.100.7/32", 80, 80),
    }


def test_with_a_certificate_the_world_may_come_in_over_https_and_to_the_redirect(record: "Record") -> None:
    recording = record({"allowedCidrs": '["0.0.0.0/0"]', "certificateArn": CERTIFICATE})
    assert _rules(recording) - CHAIN == {
        ("load-balancer", "ingress", "0.0.0.0/0", 443, 443),
        ("load-balancer", "ingress", "0.0.0.0/0", 80, 80),
    }


def test_the_default_security_group_is_closed(both_on: "Recording") -> None:
    group = both_on.one("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", "default").inputs
    assert "ingress" not in group
    assert "egress" not in group


def test_from_outside_the_network_only_the_doors_and_replies_are_let_in(both_on: "Recording") -> None:
    """Replies need their ports, because an ACL remembers no connection; too large packets must be told of."""
    acl = both_on.one("aws:ec2/defaultNetworkAcl:DefaultNetworkAcl", "default")
    assert acl.inputs["defaultNetworkAclId"] == "main-default-acl"
    by_number = sorted(acl.inputs["ingress"], key=lambda rule: rule["ruleNo"])
    assert {rule["action"] for rule in by_number} == {"allow"}
    inside, *outside = by_number
    assert (inside["protocol"], inside["cidrBlock"]) == ("-1", "10.0.0.0/16")
    assert {rule["cidrBlock"] for rule in outside} == {"0.0.0.0/0"}
    let_in = [(rule["protocol"], int(rule["fromPort"]), int(rule["toPort"])) for rule in outside]
    assert let_in == [("tcp", 80, 80), ("tcp", 443, 443), ("tcp", 1024, 65_535), ("icmp", 0, 0)]
    assert (outside[-1]["icmpType"], outside[-1]["icmpCode"]) == (3, 4)
    (way_out,) = acl.inputs["egress"]
    assert (way_out["protocol"], way_out["cidrBlock"]) == ("-1", "0.0.0.0/0")


def test_subnets_that_aws_puts_behind_the_default_acl_are_no_change(both_on: "Recording") -> None:
    acl = both_on.one("aws:ec2/defaultNetworkAcl:DefaultNetworkAcl", "default")
    assert "subnetIds" not in acl.inputs
    assert acl.ignore_changes == ("subnetIds",)


def test_load_balancer_and_subnet_groups_span_two_zones(both_on: "Recording") -> None:
    zones = {name: subnet.inputs["availabilityZone"] for name, subnet in both_on.of(SUBNET).items()}
    assert zones == {
        "public-0": "us-east-1a",
        "public-1": "us-east-1b",
        "private-0": "us-east-1a",
        "private-1": "us-east-1b",
    }
    assert both_on.one("aws:lb/loadBalancer:LoadBalancer", "api").inputs["subnets"] == ["public-0-id", "public-1-id"]
    for kind in ("aws:rds/subnetGroup:SubnetGroup db", "aws:elasticache/subnetGroup:SubnetGroup redis"):
        assert both_on.resources[kind].inputs["subnetIds"] == ["private-0-id", "private-1-id"]


def test_local_zones_are_not_asked_for(both_on: "Recording") -> None:
    (question,) = [args for token, args in both_on.lookups if token.endswith(":getAvailabilityZones")]
    assert question["state"] == "available"
    assert question["filters"] == [{"name": "opt-in-status", "values": ["opt-in-not-required"]}]


def test_a_new_zone_in_the_region_replaces_no_subnet(both_on: "Recording") -> None:
    for subnet in both_on.of(SUBNET).values():
        assert subnet.ignore_changes == ("availabilityZone",)


def test_one_zone_is_too_few_and_said_so(record: "Record", program_failed: type[Any]) -> None:
    with pytest.raises(program_failed, match=r"us-east-1 offers 1 zone\(s\) to this account; 2 are needed"):
        record({}, zones=["us-east-1a"])


def test_private_subnets_reach_only_s3_and_dynamodb_without_nat(both_on: "Recording") -> None:
    assert both_on.of("aws:ec2/route:Route").keys() == {"public"}
    endpoints = both_on.of("aws:ec2/vpcEndpoint:VpcEndpoint")
    assert {endpoint.inputs["serviceName"] for endpoint in endpoints.values()} == {
        "com.amazonaws.us-east-1.s3",
        "com.amazonaws.us-east-1.dynamodb",
    }
    for endpoint in endpoints.values():
        assert endpoint.inputs["routeTableIds"] == ["public-id", "private-0-id", "private-1-id"]


@pytest.mark.parametrize(("count", "gateways"), [("1", ["nat-0-id", "nat-0-id"]), ("2", ["nat-0-id", "nat-1-id"])])
def test_private_subnets_share_a_nat_gateway_or_have_their_own(
    record: "Record", count: str, gateways: list[str]
) -> None:
    recording = record({"natGateways": count})
    routes = recording.of("aws:ec2/route:Route")
    assert [routes[f"private-{index}"].inputs["natGatewayId"] for index in (0, 1)] == gateways


def test_a_task_in_a_public_subnet_needs_a_public_address_to_pull_its_image(both_on: "Recording") -> None:
    where = both_on.one("aws:ecs/service:Service", "api").inputs["networkConfiguration"]
    assert where == {"subnets": ["public-0-id", "public-1-id"], "securityGroups": ["api-id"], "assignPublicIp": True}


def test_with_nat_gateways_tasks_live_in_private_subnets_and_wait_for_the_way_out(record: "Record") -> None:
    service = record({"natGateways": "1"}).one("aws:ecs/service:Service", "api")
    where = service.inputs["networkConfiguration"]
    assert where == {"subnets": ["private-0-id", "private-1-id"], "securityGroups": ["api-id"], "assignPublicIp": False}
    assert {"aws:ec2/route:Route private-0", "aws:ec2/route:Route private-1"} <= service.depends_on
