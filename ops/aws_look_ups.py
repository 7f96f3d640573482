"""Resources whose ids AWS makes up, found by the inputs that a create of theirs was sent with.

Each look-up gives the ids that the provider imports by. Where AWS allows one such resource only (a subnet's network, a
listener's port), that is what is asked for; elsewhere all tags that the program and the stage file put on it, which
name the stage. More than one answer is left to the caller, who then adopts none.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Inputs = Mapping[str, Any]
Client = Callable[[str], Any]

# A NAT gateway or an endpoint that was deleted is still shown for an hour.
_LIVING = ("pending", "available", "pendingAcceptance")


def _vpcs(aws: Client, own: Inputs) -> Iterator[str]:
    for found in aws("ec2").describe_vpcs(Filters=[_where("cidr", own["cidrBlock"]), *_tagged(own)])["Vpcs"]:
        yield found["VpcId"]


def _subnets(aws: Client, own: Inputs) -> Iterator[str]:
    filters = [_where("vpc-id", own["vpcId"]), _where("cidr-block", own["cidrBlock"])]
    for found in aws("ec2").describe_subnets(Filters=filters)["Subnets"]:
        yield found["SubnetId"]


def _internet_gateways(aws: Client, own: Inputs) -> Iterator[str]:
    # By its tags alone: a create that was cut off may not have attached it yet.
    for found in aws("ec2").describe_internet_gateways(Filters=_tagged(own))["InternetGateways"]:
        yield found["InternetGatewayId"]


def _route_tables(aws: Client, own: Inputs) -> Iterator[str]:
    filters = [_where("vpc-id", own["vpcId"]), *_tagged(own)]
    for found in aws("ec2").describe_route_tables(Filters=filters)["RouteTables"]:
        yield found["RouteTableId"]


def _endpoints(aws: Client, own: Inputs) -> Iterator[str]:
    filters = [_where("vpc-id", own["vpcId"]), _where("service-name", own["serviceName"])]
    for found in aws("ec2").describe_vpc_endpoints(Filters=filters)["VpcEndpoints"]:
        same = (found["VpcId"], found["ServiceName"]) == (own["vpcId"], own["serviceName"])
        if same and found["State"] in _LIVING:
            yield found["VpcEndpointId"]


def _nat_gateways(aws: Client, own: Inputs) -> Iterator[str]:
    filters = [_where("subnet-id", own["subnetId"]), _where("state", *_LIVING[:2])]
    for found in aws("ec2").describe_nat_gateways(Filters=filters)["NatGateways"]:
        addresses = [address.get("AllocationId") for address in found.get("NatGatewayAddresses") or []]
        if not addresses or own["allocationId"] in addresses:
            yield found["NatGatewayId"]


def _addresses(aws: Client, own: Inputs) -> Iterator[str]:
    for found in aws("ec2").describe_addresses(Filters=_tagged(own))["Addresses"]:
        if _wanted_tags(own).items() <= {tag["Key"]: tag["Value"] for tag in found.get("Tags") or []}.items():
            yield found["AllocationId"]


def _security_groups(aws: Client, own: Inputs) -> Iterator[str]:
    filters = [_where("group-name", own["name"]), _where("vpc-id", own["vpcId"])]
    for found in aws("ec2").describe_security_groups(Filters=filters)["SecurityGroups"]:
        yield found["GroupId"]


def _load_balancers(aws: Client, own: Inputs) -> Iterator[str]:
    for found in aws("elbv2").describe_load_balancers(Names=[own["name"]])["LoadBalancers"]:
        yield found["LoadBalancerArn"]


def _target_groups(aws: Client, own: Inputs) -> Iterator[str]:
    for found in aws("elbv2").describe_target_groups(Names=[own["name"]])["TargetGroups"]:
        yield found["TargetGroupArn"]


def _listeners(aws: Client, own: Inputs) -> Iterator[str]:
    for found in aws("elbv2").describe_listeners(LoadBalancerArn=own["loadBalancerArn"])["Listeners"]:
        if found["Port"] == int(own["port"]):
            yield found["ListenerArn"]


def _listener_rules(aws: Client, own: Inputs) -> Iterator[str]:
    for found in aws("elbv2").describe_rules(ListenerArn=own["listenerArn"])["Rules"]:
        if found["Priority"] == str(int(own["priority"])):
            yield found["RuleArn"]


def _task_definitions(aws: Client, own: Inputs) -> Iterator[str]:
    pages = aws("ecs").get_paginator("list_task_definitions").paginate(familyPrefix=own["family"], status="ACTIVE")
    for arn in (arn for page in pages for arn in page["taskDefinitionArns"]):
        if arn.rpartition("/")[2].partition(":")[0] == own["family"]:
            yield arn


def _queue_mappings(aws: Client, own: Inputs) -> Iterator[str]:
    asked = {"EventSourceArn": own["eventSourceArn"], "FunctionName": own["functionName"]}
    for found in aws("lambda").list_event_source_mappings(**asked)["EventSourceMappings"]:
        yield found["UUID"]


def _secrets(aws: Client, own: Inputs) -> Iterator[str]:
    found = aws("secretsmanager").describe_secret(SecretId=own["name"])
    # One that waits for its deletion is not what a create has made.
    if "DeletedDate" not in found:
        yield found["ARN"]


def _secret_versions(aws: Client, own: Inputs) -> Iterator[str]:
    stages = aws("secretsmanager").describe_secret(SecretId=own["secretId"]).get("VersionIdsToStages") or {}
    for version, labels in stages.items():
        if "AWSCURRENT" in labels:
            yield f"{own['secretId']}|{version}"


def _subscriptions(aws: Client, own: Inputs) -> Iterator[str]:
    pages = aws("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=own["topic"])
    for found in (found for page in pages for found in page["Subscriptions"]):
        same = (found["Protocol"], found["Endpoint"]) == (own["protocol"], own["endpoint"])
        # One that its owner has not confirmed has no ARN yet; subscribed again, it stays one.
        if same and found["SubscriptionArn"].startswith("arn:"):
            yield found["SubscriptionArn"]


def _backup_plans(aws: Client, own: Inputs) -> Iterator[str]:
    pages = aws("backup").get_paginator("list_backup_plans").paginate()
    for found in (found for page in pages for found in page["BackupPlansList"]):
        # Names need not be unique, so a plan of another stage or person may have it as well.
        if found["BackupPlanName"] != own["name"]:
            continue
        tags = aws("backup").list_tags(ResourceArn=found["BackupPlanArn"])["Tags"]
        if _wanted_tags(own).items() <= tags.items():
            yield found["BackupPlanId"]


def _backup_selections(aws: Client, own: Inputs) -> Iterator[str]:
    pages = aws("backup").get_paginator("list_backup_selections").paginate(BackupPlanId=own["planId"])
    for found in (found for page in pages for found in page["BackupSelectionsList"]):
        if found["SelectionName"] == own["name"]:
            yield f"{own['planId']}|{found['SelectionId']}"


def _keys(aws: Client, own: Inputs) -> Iterator[str]:
    kms = aws("kms")
    for key in (key["KeyId"] for page in kms.get_paginator("list_keys").paginate() for key in page["Keys"]):
        about = kms.describe_key(KeyId=key)["KeyMetadata"]
        if about.get("KeyState") != "Enabled" or about.get("Description") != own["description"]:
            continue
        tags = {tag["TagKey"]: tag["TagValue"] for tag in kms.list_resource_tags(KeyId=key)["Tags"]}
        if _wanted_tags(own).items() <= tags.items():
            yield key


LOOK_UPS: Mapping[str, Callable[[Client, Inputs], Iterator[str]]] = {
    "aws:backup/plan:Plan": _backup_plans,
    "aws:backup/selection:Selection": _backup_selections,
    "aws:ec2/eip:Eip": _addresses,
    "aws:ec2/internetGateway:InternetGateway": _internet_gateways,
    "aws:ec2/natGateway:NatGateway": _nat_gateways,
    "aws:ec2/routeTable:RouteTable": _route_tables,
    "aws:ec2/securityGroup:SecurityGroup": _security_groups,
    "aws:ec2/subnet:Subnet": _subnets,
    "aws:ec2/vpc:Vpc": _vpcs,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _endpoints,
    "aws:ecs/taskDefinition:TaskDefinition": _task_definitions,
    "aws:kms/key:Key": _keys,
    "aws:lambda/eventSourceMapping:EventSourceMapping": _queue_mappings,
    "aws:lb/listener:Listener": _listeners,
    "aws:lb/listenerRule:ListenerRule": _listener_rules,
    "aws:lb/loadBalancer:LoadBalancer": _load_balancers,
    "aws:lb/targetGroup:TargetGroup": _target_groups,
    "aws:secretsmanager/secret:Secret": _secrets,
    "aws:secretsmanager/secretVersion:SecretVersion": _secret_versions,
    "aws:sns/topicSubscription:TopicSubscription": _subscriptions,
}


def _where(name: str, *values: str) -> dict[str, Any]:
    return {"Name": name, "Values": list(values)}


def _tagged(own: Inputs) -> list[dict[str, Any]]:
    return [_where(f"tag:{key}", value) for key, value in _wanted_tags(own).items()]


def _wanted_tags(own: Inputs) -> dict[str, str]:
    """KeyError without any: then nothing tells it from another stage's."""
    tags = {str(key): str(value) for key, value in own["tags"].items() if key[:2] != "__"}
    if not tags:
        raise KeyError("tags")
    return tags
