"""The VPC's default network ACL, which every subnet has: a second, coarse fence outside the security groups."""

import pulumi
import pulumi_aws as aws

from src.network.vpc import VPC_CIDR
from src.ports import HTTP_PORT, HTTPS_PORT

_ANYWHERE = "0.0.0.0/0"
_EVERY_PROTOCOL = "-1"

# An ACL remembers no connection, so replies to what a task or a NAT gateway asked must be let in by their ports. AWS's
# load balancers and NAT gateways ask from 1024 to 65535.
_REPLY_PORTS = (1024, 65_535)

# Destination unreachable, fragmentation needed: without it a sender never learns that its packets are too large for a
# link, and its answers hang.
_PACKET_TOO_LARGE = (3, 4)


def narrow_default_network_acl(name: str, *, vpc: aws.ec2.Vpc) -> None:
    """Let in from outside the VPC only HTTP, HTTPS and replies, instead of everything, which is AWS's default.

    Which of them reaches what is decided by the security groups; within the VPC, and on the way out, by them alone.
    """
    aws.ec2.DefaultNetworkAcl(
        "default",
        default_network_acl_id=vpc.default_network_acl_id,
        ingress=[
            _allow(100, protocol=_EVERY_PROTOCOL, cidr_block=VPC_CIDR),
            _allow(200, protocol="tcp", ports=(HTTP_PORT, HTTP_PORT)),
            _allow(210, protocol="tcp", ports=(HTTPS_PORT, HTTPS_PORT)),
            _allow(300, protocol="tcp", ports=_REPLY_PORTS),
            _allow(400, protocol="icmp", icmp=_PACKET_TOO_LARGE),
        ],
        egress=[_allow(100, protocol=_EVERY_PROTOCOL)],
        tags={"Name": f"{name}-default"},
        # AWS puts each subnet here by itself, and the provider would show that as a change in every preview.
        opts=pulumi.ResourceOptions(ignore_changes=["subnetIds"]),
    )


def _allow(
    number: int,
    *,
    protocol: str,
    cidr_block: str = _ANYWHERE,
    ports: tuple[int, int] = (0, 0),
    icmp: tuple[int, int] | None = None,
) -> aws.ec2.DefaultNetworkAclIngressArgsDict:
    """Rule ``number`` (the lowest that matches decides); ``icmp`` is (type, code)."""
    rule: aws.ec2.DefaultNetworkAclIngressArgsDict = {
        "rule_no": number,
        "action": "allow",
        "protocol": protocol,
        "cidr_block": cidr_block,
        "from_port": ports[0],
        "to_port": ports[1],
    }
    if icmp is not None:
        rule |= {"icmp_type": icmp[0], "icmp_code": icmp[1]}
    return rule
