"""The network: a VPC over two zones, with public and private subnets. Nothing in it costs money while idle."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

VPC_CIDR = "10.0.0.0/16"

# Load balancer, database subnet group and cache subnet group each want two.
ZONES = 2


class NetworkError(pulumi.RunError):
    """The region has too few zones."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """The VPC and its subnets, one of each kind a zone; ``private_route_tables`` belong to ``private`` in order."""

    vpc: aws.ec2.Vpc
    public: list[aws.ec2.Subnet]
    private: list[aws.ec2.Subnet]
    private_route_tables: list[aws.ec2.RouteTable]


def create_network(name: str, *, region: str) -> Network:
    """The VPC ``10.0.0.0/16``: public subnets reach the internet, private ones only S3 and DynamoDB (free endpoints).

    Raises NetworkError if the region offers fewer than two zones.
    """
    vpc = aws.ec2.Vpc(
        "main",
        cidr_block=VPC_CIDR,
        enable_dns_hostnames=True,
        enable_dns_support=True,
        tags={"Name": name},
    )
    # Every VPC has a default group that lets its members talk to each other: without rules it lets nothing through.
    aws.ec2.DefaultSecurityGroup("default", vpc_id=vpc.id, tags={"Name": f"{name}-closed"})
    gateway = aws.ec2.InternetGateway("main", vpc_id=vpc.id, tags={"Name": name})
    public_table = aws.ec2.RouteTable("public", vpc_id=vpc.id, tags={"Name": f"{name}-public"})
    aws.ec2.Route("public", route_table_id=public_table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id)
    public: list[aws.ec2.Subnet] = []
    private: list[aws.ec2.Subnet] = []
    private_tables: list[aws.ec2.RouteTable] = []
    for index, zone in enumerate(_zones(region)):
        public.append(
            _create_subnet(name, vpc=vpc, thing=f"public-{index}", zone=zone, cidr_block=f"10.0.{index}.0/24")
        )
        private.append(
            _create_subnet(name, vpc=vpc, thing=f"private-{index}", zone=zone, cidr_block=f"10.0.{index + 10}.0/24")
        )
        # One a zone, so that each can have the NAT gateway of its own zone.
        private_tables.append(
            aws.ec2.RouteTable(f"private-{index}", vpc_id=vpc.id, tags={"Name": f"{name}-private-{index}"})
        )
        aws.ec2.RouteTableAssociation(f"public-{index}", subnet_id=public[index].id, route_table_id=public_table.id)
        aws.ec2.RouteTableAssociation(
            f"private-{index}", subnet_id=private[index].id, route_table_id=private_tables[index].id
        )
    for service in ("s3", "dynamodb"):
        aws.ec2.VpcEndpoint(
            service,
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{region}.{service}",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in (public_table, *private_tables)],
            tags={"Name": f"{name}-{service}"},
        )
    return Network(vpc=vpc, public=public, private=private, private_route_tables=private_tables)


def _zones(region: str) -> list[str]:
    """The first two zones by name. Local and wavelength zones, which must be opted in to, take no load balancer."""
    found = aws.get_availability_zones(
        state="available", filters=[{"name": "opt-in-status", "values": ["opt-in-not-required"]}]
    ).names
    if len(found) < ZONES:
        raise NetworkError(
            f"{region} offers {len(found)} zone(s) to this account; {ZONES} are needed: set another aws:region"
        )
    return sorted(found)[:ZONES]


def _create_subnet(name: str, *, vpc: aws.ec2.Vpc, thing: str, zone: str, cidr_block: str) -> aws.ec2.Subnet:
    return aws.ec2.Subnet(
        thing,
        vpc_id=vpc.id,
        availability_zone=zone,
        cidr_block=cidr_block,
        map_public_ip_on_launch=False,
        tags={"Name": f"{name}-{thing}"},
        # AWS may list other zones tomorrow, and a subnet whose zone changes is replaced, with all that lives in it.
        opts=pulumi.ResourceOptions(ignore_changes=["availabilityZone"]),
    )
