"""EC2: route tables, routes, and which subnet uses which table."""

import functools
from typing import Any

from local.handlers.ec2 import NetworkHandler, retag, tag_specification
from local.handlers.handler import Handler, Inputs, Made, Outputs
from local.handlers.refusals import found, gone

_TARGETS = {
    "gatewayId": "GatewayId",
    "natGatewayId": "NatGatewayId",
    "vpcEndpointId": "VpcEndpointId",
    "transitGatewayId": "TransitGatewayId",
    "egressOnlyGatewayId": "EgressOnlyInternetGatewayId",
}


class RouteTable(NetworkHandler):
    resource_type = "aws:ec2/routeTable:RouteTable"
    replaced_by = frozenset({"vpcId"})
    kind = "route-table"

    def create(self, name: str, inputs: Inputs) -> Made:
        ec2 = self.platform.aws("ec2")
        table: str = ec2.create_route_table(
            VpcId=inputs["vpcId"], TagSpecifications=tag_specification(self.kind, inputs)
        )["RouteTable"]["RouteTableId"]
        for route in inputs.get("routes") or []:
            ec2.create_route(RouteTableId=table, **_destination(route, "cidrBlock"), **_target(route))
        return Made(table, self.outputs(table, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        ec2 = self.platform.aws("ec2")
        listed = found(lambda: ec2.describe_route_tables(RouteTableIds=[id])["RouteTables"]) if id else None
        return Made(id, self.outputs(id, inputs)) if listed else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        ec2 = self.platform.aws("ec2")
        wanted = new.get("routes") or []
        for route in old.get("routes") or []:
            if route not in wanted:
                gone(functools.partial(ec2.delete_route, RouteTableId=id, **_destination(route, "cidrBlock")))
        for route in wanted:
            if route not in (old.get("routes") or []):
                ec2.create_route(RouteTableId=id, **_destination(route, "cidrBlock"), **_target(route))
        retag(self.platform, id, old, new)
        return self.outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ec2").delete_route_table(RouteTableId=id))


class Route(Handler):
    """One route of a table."""

    resource_type = "aws:ec2/route:Route"
    replaced_by = frozenset(
        {"destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId", "routeTableId"}
    )

    def create(self, name: str, inputs: Inputs) -> Made:
        self.platform.aws("ec2").create_route(
            RouteTableId=inputs["routeTableId"], **_destination(inputs, "destinationCidrBlock"), **_target(inputs)
        )
        return Made(self._id(inputs), {**inputs, "state": "active", "origin": "CreateRoute"})

    def read(self, id: str, inputs: Inputs) -> Made | None:
        ec2 = self.platform.aws("ec2")
        tables = found(lambda: ec2.describe_route_tables(RouteTableIds=[inputs["routeTableId"]])["RouteTables"])
        wanted = inputs.get("destinationCidrBlock")
        if not any(route.get("DestinationCidrBlock") == wanted for table in tables or [] for route in table["Routes"]):
            return None
        return Made(self._id(inputs), {**inputs, "state": "active", "origin": "CreateRoute"})

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self.platform.aws("ec2").replace_route(
            RouteTableId=new["routeTableId"], **_destination(new, "destinationCidrBlock"), **_target(new)
        )
        return {**new, "state": "active", "origin": "CreateRoute"}

    def delete(self, id: str, outputs: Outputs) -> None:
        ec2 = self.platform.aws("ec2")
        destination = _destination(outputs, "destinationCidrBlock")
        gone(lambda: ec2.delete_route(RouteTableId=outputs["routeTableId"], **destination))

    def _id(self, inputs: Inputs) -> str:
        return f"r-{inputs['routeTableId']}{inputs.get('destinationCidrBlock', '')}"


class RouteTableAssociation(Handler):
    """Which table a subnet uses."""

    resource_type = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    replaced_by = frozenset({"gatewayId", "subnetId"})

    def create(self, name: str, inputs: Inputs) -> Made:
        association: str = self.platform.aws("ec2").associate_route_table(
            RouteTableId=inputs["routeTableId"], SubnetId=inputs["subnetId"]
        )["AssociationId"]
        return Made(association, dict(inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        ec2 = self.platform.aws("ec2")
        tables = found(lambda: ec2.describe_route_tables(RouteTableIds=[inputs["routeTableId"]])["RouteTables"])
        for table in tables or []:
            for entry in table.get("Associations", []):
                if entry.get("SubnetId") == inputs["subnetId"] and id in ("", entry["RouteTableAssociationId"]):
                    return Made(entry["RouteTableAssociationId"], dict(inputs))
        return None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self.platform.aws("ec2").replace_route_table_association(AssociationId=id, RouteTableId=new["routeTableId"])
        return dict(new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ec2").disassociate_route_table(AssociationId=id))


def _destination(route: Inputs, key: str) -> dict[str, Any]:
    return {"DestinationCidrBlock": route[key]}


def _target(route: Inputs) -> dict[str, Any]:
    return {theirs: route[ours] for ours, theirs in _TARGETS.items() if route.get(ours)}
