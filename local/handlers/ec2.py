"""EC2: the network, in the emulator's control plane. No packet of this machine passes through it."""

from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs, PlatformServices
from local.handlers.refusals import found, gone
from local.handlers.shapes import tag_list, tags_gone, tags_of


def tag_specification(kind: str, inputs: Inputs) -> list[dict[str, Any]]:
    """The tags of a new thing, as EC2's create calls take them."""
    tags = tag_list(inputs)
    return [{"ResourceType": kind, "Tags": tags}] if tags else []


def retag(platform: PlatformServices, id: str, old: Inputs, new: Inputs) -> None:
    """Make the tags of a thing those of ``new``."""
    ec2 = platform.aws("ec2")
    if removed := tags_gone(old, new):
        ec2.delete_tags(Resources=[id], Tags=[{"Key": key} for key in removed])
    if tags := tag_list(new):
        ec2.create_tags(Resources=[id], Tags=tags)


class NetworkHandler(Handler):
    """What EC2 gives an id of its own. There is no name to adopt such a thing by: only its id finds it."""

    kind: str  # EC2's resource type, such as "vpc"

    def arn(self, id: str) -> str:
        """Its ARN."""
        return f"arn:aws:ec2:{self.platform.region}:{self.platform.account}:{self.kind}/{id}"

    def outputs(self, id: str, inputs: Inputs, **more: Any) -> Outputs:
        """Its outputs: the inputs, and what AWS adds."""
        owner = {"ownerId": self.platform.account, "tagsAll": tags_of(inputs)}
        return {**inputs, "id": id, "arn": self.arn(id), **owner, **more}


class Vpc(NetworkHandler):
    resource_type = "aws:ec2/vpc:Vpc"
    replaced_by = frozenset({"cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"})
    kind = "vpc"

    def create(self, name: str, inputs: Inputs) -> Made:
        ec2 = self.platform.aws("ec2")
        vpc: str = ec2.create_vpc(CidrBlock=inputs["cidrBlock"], TagSpecifications=tag_specification("vpc", inputs))[
            "Vpc"
        ]["VpcId"]
        self._set_names(vpc, inputs)
        return Made(vpc, self._outputs(vpc, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        if not id or not found(lambda: self.platform.aws("ec2").describe_vpcs(VpcIds=[id])["Vpcs"]):
            return None
        return Made(id, self._outputs(id, inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._set_names(id, new)
        retag(self.platform, id, old, new)
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ec2").delete_vpc(VpcId=id))

    def _set_names(self, vpc: str, inputs: Inputs) -> None:
        ec2 = self.platform.aws("ec2")
        ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsSupport={"Value": bool(inputs.get("enableDnsSupport", True))})
        ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": bool(inputs.get("enableDnsHostnames"))})

    def _outputs(self, vpc: str, inputs: Inputs) -> Outputs:
        ec2 = self.platform.aws("ec2")
        in_vpc = {"Name": "vpc-id", "Values": [vpc]}
        groups = ec2.describe_security_groups(Filters=[in_vpc, {"Name": "group-name", "Values": ["default"]}])
        tables = ec2.describe_route_tables(Filters=[in_vpc, {"Name": "association.main", "Values": ["true"]}])
        acls = ec2.describe_network_acls(Filters=[in_vpc, {"Name": "default", "Values": ["true"]}])
        default_acl = next((acl["NetworkAclId"] for acl in acls["NetworkAcls"]), "")
        default_group = next((group["GroupId"] for group in groups["SecurityGroups"]), "")
        main_table = next((table["RouteTableId"] for table in tables["RouteTables"]), "")
        return self.outputs(
            vpc,
            inputs,
            defaultNetworkAclId=default_acl,
            defaultSecurityGroupId=default_group,
            defaultRouteTableId=main_table,
            mainRouteTableId=main_table,
        )


class InternetGateway(NetworkHandler):
    resource_type = "aws:ec2/internetGateway:InternetGateway"
    kind = "internet-gateway"

    def create(self, name: str, inputs: Inputs) -> Made:
        ec2 = self.platform.aws("ec2")
        specification = tag_specification(self.kind, inputs)
        gateway: str = ec2.create_internet_gateway(TagSpecifications=specification)["InternetGateway"][
            "InternetGatewayId"
        ]
        if inputs.get("vpcId"):
            ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=inputs["vpcId"])
        return Made(gateway, self.outputs(gateway, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        ec2 = self.platform.aws("ec2")
        if not id or not found(lambda: ec2.describe_internet_gateways(InternetGatewayIds=[id])["InternetGateways"]):
            return None
        return Made(id, self.outputs(id, inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        ec2 = self.platform.aws("ec2")
        if old.get("vpcId") != new.get("vpcId"):
            if old.get("vpcId"):
                ec2.detach_internet_gateway(InternetGatewayId=id, VpcId=old["vpcId"])
            if new.get("vpcId"):
                ec2.attach_internet_gateway(InternetGatewayId=id, VpcId=new["vpcId"])
        retag(self.platform, id, old, new)
        return self.outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        ec2 = self.platform.aws("ec2")
        if outputs.get("vpcId"):
            gone(lambda: ec2.detach_internet_gateway(InternetGatewayId=id, VpcId=outputs["vpcId"]))
        gone(lambda: ec2.delete_internet_gateway(InternetGatewayId=id))


class Subnet(NetworkHandler):
    """A subnet. EC2 refuses one that overlaps another of its VPC, which the emulator does not."""

    resource_type = "aws:ec2/subnet:Subnet"
    replaced_by = frozenset(
        {"availabilityZone", "availabilityZoneId", "cidrBlock", "ipv6Native", "outpostArn", "vpcId"}
    )
    kind = "subnet"

    def create(self, name: str, inputs: Inputs) -> Made:
        ec2 = self.platform.aws("ec2")
        in_vpc = [{"Name": "vpc-id", "Values": [inputs["vpcId"]]}]
        for other in ec2.describe_subnets(Filters=in_vpc)["Subnets"]:
            if other["CidrBlock"] == inputs["cidrBlock"]:
                raise HandlerError(
                    f"InvalidSubnet.Conflict: The CIDR '{inputs['cidrBlock']}' conflicts with another subnet "
                    f"({other['SubnetId']})"
                )
        request = {"AvailabilityZone": inputs["availabilityZone"]} if inputs.get("availabilityZone") else {}
        made = ec2.create_subnet(
            VpcId=inputs["vpcId"],
            CidrBlock=inputs["cidrBlock"],
            TagSpecifications=tag_specification("subnet", inputs),
            **request,
        )["Subnet"]
        subnet: str = made["SubnetId"]
        self._set_addresses(subnet, inputs)
        return Made(subnet, self.outputs(subnet, inputs, availabilityZone=made["AvailabilityZone"]))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        listed = found(lambda: self.platform.aws("ec2").describe_subnets(SubnetIds=[id])["Subnets"]) if id else None
        if not listed:
            return None
        return Made(id, self.outputs(id, inputs, availabilityZone=listed[0]["AvailabilityZone"]))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._set_addresses(id, new)
        retag(self.platform, id, old, new)
        return self.outputs(id, new, availabilityZone=old["availabilityZone"])

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ec2").delete_subnet(SubnetId=id))

    def _set_addresses(self, subnet: str, inputs: Inputs) -> None:
        public = bool(inputs.get("mapPublicIpOnLaunch"))
        self.platform.aws("ec2").modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": public})


class Eip(NetworkHandler):
    resource_type = "aws:ec2/eip:Eip"
    replaced_by = frozenset({"address", "domain", "networkBorderGroup", "publicIpv4Pool", "vpc"})
    kind = "elastic-ip"

    def create(self, name: str, inputs: Inputs) -> Made:
        made = self.platform.aws("ec2").allocate_address(
            Domain="vpc", TagSpecifications=tag_specification(self.kind, inputs)
        )
        allocation: str = made["AllocationId"]
        return Made(allocation, self._outputs(allocation, made["PublicIp"], inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        ec2 = self.platform.aws("ec2")
        listed = found(lambda: ec2.describe_addresses(AllocationIds=[id])["Addresses"]) if id else None
        return Made(id, self._outputs(id, listed[0]["PublicIp"], inputs)) if listed else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        retag(self.platform, id, old, new)
        return self._outputs(id, old["publicIp"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ec2").release_address(AllocationId=id))

    def _outputs(self, allocation: str, address: str, inputs: Inputs) -> Outputs:
        return self.outputs(allocation, inputs, allocationId=allocation, publicIp=address)


class NatGateway(NetworkHandler):
    resource_type = "aws:ec2/natGateway:NatGateway"
    replaced_by = frozenset({"allocationId", "connectivityType", "privateIp", "subnetId", "vpcId"})
    kind = "natgateway"

    def create(self, name: str, inputs: Inputs) -> Made:
        request = {"AllocationId": inputs["allocationId"]} if inputs.get("allocationId") else {}
        gateway: str = self.platform.aws("ec2").create_nat_gateway(
            SubnetId=inputs["subnetId"],
            ConnectivityType=inputs.get("connectivityType", "public"),
            TagSpecifications=tag_specification(self.kind, inputs),
            **request,
        )["NatGateway"]["NatGatewayId"]
        return Made(gateway, self.outputs(gateway, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        ec2 = self.platform.aws("ec2")
        listed = found(lambda: ec2.describe_nat_gateways(NatGatewayIds=[id])["NatGateways"]) if id else None
        live = [gateway for gateway in listed or [] if gateway["State"] != "deleted"]
        return Made(id, self.outputs(id, inputs)) if live else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        retag(self.platform, id, old, new)
        return self.outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ec2").delete_nat_gateway(NatGatewayId=id))


class VpcEndpoint(NetworkHandler):
    resource_type = "aws:ec2/vpcEndpoint:VpcEndpoint"
    replaced_by = frozenset({"serviceName", "vpcEndpointType", "vpcId"})
    kind = "vpc-endpoint"

    def create(self, name: str, inputs: Inputs) -> Made:
        request = {
            theirs: inputs[ours]
            for ours, theirs in (
                ("routeTableIds", "RouteTableIds"),
                ("subnetIds", "SubnetIds"),
                ("securityGroupIds", "SecurityGroupIds"),
                ("policy", "PolicyDocument"),
                ("privateDnsEnabled", "PrivateDnsEnabled"),
            )
            if inputs.get(ours)
        }
        endpoint: str = self.platform.aws("ec2").create_vpc_endpoint(
            VpcId=inputs["vpcId"],
            ServiceName=inputs["serviceName"],
            VpcEndpointType=inputs.get("vpcEndpointType", "Gateway"),
            TagSpecifications=tag_specification(self.kind, inputs),
            **request,
        )["VpcEndpoint"]["VpcEndpointId"]
        return Made(endpoint, self.outputs(endpoint, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        ec2 = self.platform.aws("ec2")
        listed = found(lambda: ec2.describe_vpc_endpoints(VpcEndpointIds=[id])["VpcEndpoints"]) if id else None
        return Made(id, self.outputs(id, inputs)) if listed else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        request: dict[str, Any] = {}
        for ours, theirs in (
            ("routeTableIds", "RouteTableIds"),
            ("subnetIds", "SubnetIds"),
            ("securityGroupIds", "SecurityGroupIds"),
        ):
            before, after = set(old.get(ours) or []), set(new.get(ours) or [])
            if after - before:
                request[f"Add{theirs}"] = sorted(after - before)
            if before - after:
                request[f"Remove{theirs}"] = sorted(before - after)
        if new.get("policy") != old.get("policy"):
            request |= {"PolicyDocument": new["policy"]} if new.get("policy") else {"ResetPolicy": True}
        if request:
            self.platform.aws("ec2").modify_vpc_endpoint(VpcEndpointId=id, **request)
        retag(self.platform, id, old, new)
        return self.outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ec2").delete_vpc_endpoints(VpcEndpointIds=[id]))
