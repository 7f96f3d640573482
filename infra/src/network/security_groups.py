"""Who may talk to whom: the world → load balancer → API → data, and nothing wider.

A security group without an egress rule lets nothing out (the provider removes the rule that AWS adds).
"""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.ports import API_PORT, HTTP_PORT, HTTPS_PORT, POSTGRES_PORT, REDIS_PORT
from src.settings import SiteSettings

# A group holds no rule twice: a successor that shares a network or a peer with the rule before it would be refused.
# Connections that are open stay open in between.
_GOES_FIRST = pulumi.ResourceOptions(delete_before_replace=True)


@dataclass(frozen=True, kw_only=True)
class SecurityGroups:
    """One group a tier."""

    load_balancer: aws.ec2.SecurityGroup
    api: aws.ec2.SecurityGroup
    data: aws.ec2.SecurityGroup


def create_security_groups(name: str, *, vpc_id: pulumi.Input[str], site: SiteSettings) -> SecurityGroups:
    """The three groups with their rules.

    ``site.allowed_cidrs`` may reach the load balancer: on 443, and on 80 for the redirect; without a certificate on 80
    only. An empty list means nobody.
    """
    groups = SecurityGroups(
        load_balancer=_create_group(name, thing="load-balancer", description="Load balancer", vpc_id=vpc_id),
        api=_create_group(name, thing="api", description="API tasks", vpc_id=vpc_id),
        data=_create_group(name, thing="data", description="PostgreSQL and Valkey", vpc_id=vpc_id),
    )
    doors = {"http": HTTP_PORT, "https": HTTPS_PORT} if site.certificate_arn else {"http": HTTP_PORT}
    if site.allowed_cidrs:
        for scheme, port in doors.items():
            aws.ec2.SecurityGroupRule(
                f"world-to-load-balancer-{scheme}",
                type="ingress",
                security_group_id=groups.load_balancer.id,
                protocol="tcp",
                from_port=port,
                to_port=port,
                cidr_blocks=list(site.allowed_cidrs),
                description=f"{scheme} from those whom the stage allows",
                opts=_GOES_FIRST,
            )
    _connect("load-balancer-to-api", source=groups.load_balancer, target=groups.api, port=API_PORT)
    _connect("api-to-postgres", source=groups.api, target=groups.data, port=POSTGRES_PORT)
    _connect("api-to-redis", source=groups.api, target=groups.data, port=REDIS_PORT)
    aws.ec2.SecurityGroupRule(
        "api-to-aws",
        type="egress",
        security_group_id=groups.api.id,
        protocol="tcp",
        from_port=HTTPS_PORT,
        to_port=HTTPS_PORT,
        cidr_blocks=["0.0.0.0/0"],
        description="AWS services answer on public addresses",
        opts=_GOES_FIRST,
    )
    return groups


def _create_group(name: str, *, thing: str, description: str, vpc_id: pulumi.Input[str]) -> aws.ec2.SecurityGroup:
    return aws.ec2.SecurityGroup(thing, description=description, vpc_id=vpc_id, tags={"Name": f"{name}-{thing}"})


def _connect(thing: str, *, source: aws.ec2.SecurityGroup, target: aws.ec2.SecurityGroup, port: int) -> None:
    """Open one TCP port from one group to another: out of the first and into the second."""
    aws.ec2.SecurityGroupRule(
        f"{thing}-out",
        type="egress",
        security_group_id=source.id,
        source_security_group_id=target.id,
        protocol="tcp",
        from_port=port,
        to_port=port,
        opts=_GOES_FIRST,
    )
    aws.ec2.SecurityGroupRule(
        f"{thing}-in",
        type="ingress",
        security_group_id=target.id,
        source_security_group_id=source.id,
        protocol="tcp",
        from_port=port,
        to_port=port,
        opts=_GOES_FIRST,
    )
