"""EC2: security groups, and their rules in the three shapes that the provider has."""

from typing import Any

from local.handlers.ec2 import NetworkHandler, retag, tag_specification
from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.refusals import found, gone
from local.handlers.shapes import physical_name, plain, tags_of

_EVERYTHING = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]


class SecurityGroup(NetworkHandler):
    """A group. Like the provider, it takes AWS's allow-all way out away unless the program says so itself."""

    resource_type = "aws:ec2/securityGroup:SecurityGroup"
    replaced_by = frozenset({"description", "name", "namePrefix", "vpcId"})
    kind = "security-group"

    def create(self, name: str, inputs: Inputs) -> Made:
        ec2 = self.platform.aws("ec2")
        title = physical_name(inputs, name)
        group: str = ec2.create_security_group(
            GroupName=title,
            Description=inputs.get("description", "Managed by Pulumi"),
            VpcId=inputs["vpcId"],
            TagSpecifications=tag_specification(self.kind, inputs),
        )["GroupId"]
        ec2.revoke_security_group_egress(GroupId=group, IpPermissions=_EVERYTHING)
        self._set_rules(group, {}, inputs)
        return Made(group, self.outputs(group, inputs, name=title))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        ec2 = self.platform.aws("ec2")
        if not id and not (inputs.get("name") and inputs.get("vpcId")):
            return None
        filters = [
            {"Name": "vpc-id", "Values": [inputs.get("vpcId", "")]},
            {"Name": "group-name", "Values": [inputs.get("name", "")]},
        ]
        request: dict[str, Any] = {"GroupIds": [id]} if id else {"Filters": filters}
        listed = found(lambda: ec2.describe_security_groups(**request)["SecurityGroups"])
        if not listed:
            return None
        group = listed[0]["GroupId"]
        return Made(group, self.outputs(group, inputs, name=listed[0]["GroupName"]))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._set_rules(id, old, new)
        retag(self.platform, id, old, new)
        return self.outputs(id, new, name=old["name"])

    def delete(self, id: str, outputs: Outputs) -> None:
        ec2 = self.platform.aws("ec2")
        if outputs.get("revokeRulesOnDelete"):
            for rule in ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [id]}])[
                "SecurityGroupRules"
            ]:
                _revoke_by_id(self, id, rule["SecurityGroupRuleId"], egress=rule["IsEgress"])
        gone(lambda: ec2.delete_security_group(GroupId=id))

    def _set_rules(self, group: str, old: Inputs, new: Inputs) -> None:
        for direction, egress in (("ingress", False), ("egress", True)):
            before = [_permission(rule, group) for rule in old.get(direction) or []]
            after = [_permission(rule, group) for rule in new.get(direction) or []]
            for permission in before:
                if permission not in after:
                    _revoke(self, group, permission, egress=egress)
            for permission in after:
                if permission not in before:
                    _authorize(self, group, permission, egress=egress)


class DefaultSecurityGroup(NetworkHandler):
    """A VPC's default group, adopted: its rules become exactly the program's (none: closed)."""

    resource_type = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
    replaced_by = frozenset({"vpcId"})
    kind = "security-group"

    def create(self, name: str, inputs: Inputs) -> Made:
        group = self._group(inputs)
        self._set_rules(group, inputs)
        retag(self.platform, group, {}, inputs)
        return Made(group, self.outputs(group, inputs, name="default"))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        # It exists with its VPC; only a create makes it the program's.
        return Made(id, self.outputs(id, inputs, name="default")) if id else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._set_rules(id, new)
        retag(self.platform, id, old, new)
        return self.outputs(id, new, name="default")

    def delete(self, id: str, outputs: Outputs) -> None:
        """AWS has no way to delete it: the provider only forgets it, and so do we."""

    def _group(self, inputs: Inputs) -> str:
        filters = [
            {"Name": "vpc-id", "Values": [inputs["vpcId"]]},
            {"Name": "group-name", "Values": ["default"]},
        ]
        listed = self.platform.aws("ec2").describe_security_groups(Filters=filters)["SecurityGroups"]
        if not listed:
            raise HandlerError(f"InvalidGroup.NotFound: {inputs['vpcId']} has no default security group")
        return str(listed[0]["GroupId"])

    def _set_rules(self, group: str, inputs: Inputs) -> None:
        live = self.platform.aws("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
        for permission in live["IpPermissions"]:
            _revoke(self, group, _without_empty(permission), egress=False)
        for permission in live["IpPermissionsEgress"]:
            _revoke(self, group, _without_empty(permission), egress=True)
        for rule in inputs.get("ingress") or []:
            _authorize(self, group, _permission(rule, group), egress=False)
        for rule in inputs.get("egress") or []:
            _authorize(self, group, _permission(rule, group), egress=True)


class SecurityGroupRule(Handler):
    """One rule, in the provider's older shape. Only its description can change."""

    resource_type = "aws:ec2/securityGroupRule:SecurityGroupRule"
    replaced_by = frozenset(
        {
            "cidrBlocks", "fromPort", "ipv6CidrBlocks", "prefixListIds", "protocol", "securityGroupId", "self",
            "sourceSecurityGroupId", "toPort", "type",
        }
    )  # fmt: skip

    def create(self, name: str, inputs: Inputs) -> Made:
        group = inputs["securityGroupId"]
        rule = _authorize(self, group, _permission(inputs, group), egress=inputs["type"] == "egress")
        return Made(rule, {**inputs, "securityGroupRuleId": rule})

    def read(self, id: str, inputs: Inputs) -> Made | None:
        rule = id and _rule_of(self, id)
        return Made(id, {**inputs, "securityGroupRuleId": id}) if rule else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        group, egress = new["securityGroupId"], new["type"] == "egress"
        _revoke_by_id(self, group, id, egress=egress)
        rule = _authorize(self, group, _permission(new, group), egress=egress)
        return {**new, "securityGroupRuleId": rule}

    def delete(self, id: str, outputs: Outputs) -> None:
        rule = outputs.get("securityGroupRuleId", id)
        _revoke_by_id(self, outputs["securityGroupId"], rule, egress=outputs["type"] == "egress")


class _OneWayRule(Handler):
    """One rule, in the provider's newer shape: one direction, one peer."""

    egress: bool
    replaced_by = frozenset({"securityGroupId"})

    def create(self, name: str, inputs: Inputs) -> Made:
        rule = _authorize(self, inputs["securityGroupId"], _one_peer(inputs), egress=self.egress)
        retag(self.platform, rule, {}, inputs)
        return Made(rule, self._outputs(rule, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        rule = id and _rule_of(self, id)
        return Made(id, self._outputs(id, inputs)) if rule else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        permission = _one_peer(new)
        wanted = {key: value for key, value in permission.items() if key in ("IpProtocol", "FromPort", "ToPort")}
        for ranges, theirs, ours in (
            ("IpRanges", "CidrIp", "CidrIpv4"),
            ("Ipv6Ranges", "CidrIpv6", "CidrIpv6"),
            ("PrefixListIds", "PrefixListId", "PrefixListId"),
            ("UserIdGroupPairs", "GroupId", "ReferencedGroupId"),
        ):
            for peer in permission.get(ranges, []):
                wanted[ours] = peer[theirs]
        self.platform.aws("ec2").modify_security_group_rules(
            GroupId=new["securityGroupId"],
            SecurityGroupRules=[
                {
                    "SecurityGroupRuleId": id,
                    "SecurityGroupRule": {**wanted, "Description": new.get("description", "")},
                }
            ],
        )
        retag(self.platform, id, old, new)
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        _revoke_by_id(self, outputs["securityGroupId"], id, egress=self.egress)

    def _outputs(self, rule: str, inputs: Inputs) -> Outputs:
        arn = f"arn:aws:ec2:{self.platform.region}:{self.platform.account}:security-group-rule/{rule}"
        return {**inputs, "securityGroupRuleId": rule, "arn": arn, "tagsAll": tags_of(inputs)}


class SecurityGroupIngressRule(_OneWayRule):
    resource_type = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    egress = False


class SecurityGroupEgressRule(_OneWayRule):
    resource_type = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    egress = True


def _permission(rule: Inputs, group: str) -> dict[str, Any]:
    """A rule with lists of peers, as EC2 takes it."""
    described = {"Description": rule["description"]} if rule.get("description") else {}
    groups = [*(rule.get("securityGroups") or []), *([group] if rule.get("self") else [])]
    if rule.get("sourceSecurityGroupId"):
        groups.append(rule["sourceSecurityGroupId"])
    permission = {
        **_ports(rule, "protocol"),
        "IpRanges": [{"CidrIp": cidr, **described} for cidr in rule.get("cidrBlocks") or []],
        "Ipv6Ranges": [{"CidrIpv6": cidr, **described} for cidr in rule.get("ipv6CidrBlocks") or []],
        "PrefixListIds": [{"PrefixListId": entry, **described} for entry in rule.get("prefixListIds") or []],
        "UserIdGroupPairs": [{"GroupId": peer, **described} for peer in groups],
    }
    return _without_empty(permission)


def _one_peer(rule: Inputs) -> dict[str, Any]:
    described = {"Description": rule["description"]} if rule.get("description") else {}
    permission = _ports(rule, "ipProtocol")
    if rule.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": rule["cidrIpv4"], **described}]
    if rule.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": rule["cidrIpv6"], **described}]
    if rule.get("prefixListId"):
        permission["PrefixListIds"] = [{"PrefixListId": rule["prefixListId"], **described}]
    if rule.get("referencedSecurityGroupId"):
        permission["UserIdGroupPairs"] = [{"GroupId": rule["referencedSecurityGroupId"], **described}]
    return permission


def _ports(rule: Inputs, protocol_key: str) -> dict[str, Any]:
    protocol = str(plain(rule[protocol_key])).lower()
    protocol = "-1" if protocol == "all" else protocol
    ports: dict[str, Any] = {"IpProtocol": protocol}
    if protocol != "-1":
        for ours, theirs in (("fromPort", "FromPort"), ("toPort", "ToPort")):
            if rule.get(ours) is not None:
                ports[theirs] = plain(rule[ours])
    return ports


def _without_empty(permission: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in permission.items() if value not in ([], None)}


def _authorize(handler: Handler, group: str, permission: dict[str, Any], *, egress: bool) -> str:
    ec2 = handler.platform.aws("ec2")
    authorize = ec2.authorize_security_group_egress if egress else ec2.authorize_security_group_ingress
    answer = authorize(GroupId=group, IpPermissions=[permission])
    return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])


def _revoke(handler: Handler, group: str, permission: dict[str, Any], *, egress: bool) -> None:
    ec2 = handler.platform.aws("ec2")
    revoke = ec2.revoke_security_group_egress if egress else ec2.revoke_security_group_ingress
    gone(lambda: revoke(GroupId=group, IpPermissions=[permission]))


def _revoke_by_id(handler: Handler, group: str, rule: str, *, egress: bool) -> None:
    ec2 = handler.platform.aws("ec2")
    revoke = ec2.revoke_security_group_egress if egress else ec2.revoke_security_group_ingress
    gone(lambda: revoke(GroupId=group, SecurityGroupRuleIds=[rule]))


def _rule_of(handler: Handler, rule: str) -> dict[str, Any] | None:
    ec2 = handler.platform.aws("ec2")
    listed = found(lambda: ec2.describe_security_group_rules(SecurityGroupRuleIds=[rule])["SecurityGroupRules"])
    return next((entry for entry in listed or [] if entry["SecurityGroupRuleId"] == rule), None)
