"""NAT gateways: the way out of the private subnets. They cost money by the hour, and only API tasks need them."""

import pulumi
import pulumi_aws as aws

from src.network.vpc import Network


def create_nat_gateways(name: str, *, network: Network, count: int) -> list[aws.ec2.Route]:
    """``count`` gateways (at most one a zone), and a route through one of them from each private subnet.

    With fewer gateways than zones the subnets share them, and share their outages. Returns the routes, which a task
    needs before it can pull its image; none for a count of 0.
    """
    if count == 0:
        return []
    gateways: list[aws.ec2.NatGateway] = []
    for index in range(count):
        address = aws.ec2.Eip(f"nat-{index}", domain="vpc", tags={"Name": f"{name}-nat-{index}"})
        gateways.append(
            aws.ec2.NatGateway(
                f"nat-{index}",
                allocation_id=address.id,
                subnet_id=network.public[index].id,
                tags={"Name": f"{name}-{index}"},
            )
        )
    return [
        aws.ec2.Route(
            f"private-{index}",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            nat_gateway_id=gateways[index % count].id,
            opts=pulumi.ResourceOptions(delete_before_replace=True),  # a table holds one route to a destination
        )
        for index, table in enumerate(network.private_route_tables)
    ]
