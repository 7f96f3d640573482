"""RDS: the groups of subnets and of settings that a database is made in."""

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs, PlatformServices
from local.handlers.refusals import found, gone
from local.handlers.shapes import physical_name, tag_list, tags_gone, tags_of


class SubnetGroup(Handler):
    """Subnets that a database may live in. RDS wants two zones, which the emulator does not ask."""

    resource_type = "aws:rds/subnetGroup:SubnetGroup"
    replaced_by = frozenset({"name", "namePrefix"})

    def create(self, name: str, inputs: Inputs) -> Made:
        group = physical_name(inputs, name).lower()
        _require_two_zones(self.platform, inputs["subnetIds"])
        made = self.platform.aws("rds").create_db_subnet_group(
            DBSubnetGroupName=group,
            DBSubnetGroupDescription=inputs.get("description", "Managed by Pulumi"),
            SubnetIds=list(inputs["subnetIds"]),
            Tags=tag_list(inputs),
        )["DBSubnetGroup"]
        return Made(group, _group_outputs(group, made["DBSubnetGroupArn"], inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        group = id or inputs.get("name")
        if not group:
            return None
        answer = found(lambda: self.platform.aws("rds").describe_db_subnet_groups(DBSubnetGroupName=group))
        if answer is None:
            return None
        return Made(group, _group_outputs(group, answer["DBSubnetGroups"][0]["DBSubnetGroupArn"], inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        _require_two_zones(self.platform, new["subnetIds"])
        self.platform.aws("rds").modify_db_subnet_group(
            DBSubnetGroupName=id,
            DBSubnetGroupDescription=new.get("description", "Managed by Pulumi"),
            SubnetIds=list(new["subnetIds"]),
        )
        retag(self.platform, old["arn"], old, new)
        return _group_outputs(id, old["arn"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        rds = self.platform.aws("rds")
        for instance in rds.describe_db_instances()["DBInstances"]:
            group = instance.get("DBSubnetGroup") or {}
            if group.get("DBSubnetGroupName") == id and instance["DBInstanceStatus"] != "deleting":
                raise HandlerError(
                    f"InvalidDBSubnetGroupStateFault: Cannot delete the subnet group '{id}' because at least one "
                    f"database instance: {instance['DBInstanceIdentifier']} is still using it."
                )
        gone(lambda: rds.delete_db_subnet_group(DBSubnetGroupName=id))


class ParameterGroup(Handler):
    """Settings of a server. A database takes them when it starts."""

    resource_type = "aws:rds/parameterGroup:ParameterGroup"
    replaced_by = frozenset({"description", "family", "name", "namePrefix"})

    def create(self, name: str, inputs: Inputs) -> Made:
        group = physical_name(inputs, name).lower()
        made = self.platform.aws("rds").create_db_parameter_group(
            DBParameterGroupName=group,
            DBParameterGroupFamily=inputs["family"],
            Description=inputs.get("description", "Managed by Pulumi"),
            Tags=tag_list(inputs),
        )["DBParameterGroup"]
        self._set(group, {}, inputs)
        return Made(group, _group_outputs(group, made["DBParameterGroupArn"], inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        group = id or inputs.get("name")
        if not group:
            return None
        answer = found(lambda: self.platform.aws("rds").describe_db_parameter_groups(DBParameterGroupName=group))
        if answer is None or not answer["DBParameterGroups"]:
            return None
        return Made(group, _group_outputs(group, answer["DBParameterGroups"][0]["DBParameterGroupArn"], inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._set(id, old, new)
        retag(self.platform, old["arn"], old, new)
        return _group_outputs(id, old["arn"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("rds").delete_db_parameter_group(DBParameterGroupName=id))

    def _set(self, group: str, old: Inputs, new: Inputs) -> None:
        rds = self.platform.aws("rds")
        wanted = {entry["name"]: _parameter(entry) for entry in new.get("parameters") or []}
        removed = [_parameter(entry) for entry in old.get("parameters") or [] if entry["name"] not in wanted]
        if removed:
            rds.reset_db_parameter_group(DBParameterGroupName=group, Parameters=removed)
        if wanted:
            rds.modify_db_parameter_group(DBParameterGroupName=group, Parameters=list(wanted.values()))


def _parameter(entry: Inputs) -> dict[str, str]:
    return {
        "ParameterName": entry["name"],
        "ParameterValue": str(entry["value"]),
        "ApplyMethod": entry.get("applyMethod", "immediate"),
    }


def _group_outputs(name: str, arn: str, inputs: Inputs) -> Outputs:
    return {**inputs, "name": name, "arn": arn, "tagsAll": tags_of(inputs)}


def _require_two_zones(platform: PlatformServices, subnet_ids: list[str]) -> None:
    subnets = platform.aws("ec2").describe_subnets(SubnetIds=list(subnet_ids))["Subnets"]
    zones = {subnet["AvailabilityZone"] for subnet in subnets}
    if len(zones) < 2:
        raise HandlerError(
            "DBSubnetGroupDoesNotCoverEnoughAZs: The DB subnet group doesn't meet Availability Zone (AZ) coverage "
            f"requirement. Current AZ coverage: {', '.join(sorted(zones))}. Add subnets to cover at least 2 AZs."
        )


def retag(platform: PlatformServices, arn: str, old: Inputs, new: Inputs) -> None:
    """Make the tags of a database, or of a group, those of ``new``."""
    rds = platform.aws("rds")
    if removed := tags_gone(old, new):
        rds.remove_tags_from_resource(ResourceName=arn, TagKeys=removed)
    if tags := tag_list(new):
        rds.add_tags_to_resource(ResourceName=arn, Tags=tags)
