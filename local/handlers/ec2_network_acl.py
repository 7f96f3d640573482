"""EC2: a VPC's default network ACL."""

from typing import Any

from local.handlers.ec2 import NetworkHandler, retag
from local.handlers.handler import HandlerError, Inputs, Made, Outputs
from local.handlers.refusals import found
from local.handlers.shapes import plain

_LAST = 32_767  # AWS's own: what no other rule names is denied
_PROTOCOLS = {"all": "-1", "icmp": "1", "tcp": "6", "udp": "17"}


class DefaultNetworkAcl(NetworkHandler):
    """A VPC's default ACL, adopted: its rules become exactly the program's (none: closed)."""

    resource_type = "aws:ec2/defaultNetworkAcl:DefaultNetworkAcl"
    replaced_by = frozenset({"defaultNetworkAclId"})
    kind = "network-acl"

    def create(self, name: str, inputs: Inputs) -> Made:
        acl = str(inputs["defaultNetworkAclId"])
        self._set_rules(acl, inputs)
        retag(self.platform, acl, {}, inputs)
        return Made(acl, self.outputs(acl, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        # It exists with its VPC; only a create makes it the program's.
        return Made(id, self.outputs(id, inputs)) if id else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._set_rules(id, new)
        retag(self.platform, id, old, new)
        return self.outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        """AWS has no way to delete it: the provider only forgets it, and so do we."""

    def _set_rules(self, acl: str, inputs: Inputs) -> None:
        ec2 = self.platform.aws("ec2")
        listed = found(lambda: ec2.describe_network_acls(NetworkAclIds=[acl])["NetworkAcls"])
        if not listed:
            raise HandlerError(f"InvalidNetworkAclID.NotFound: The network ACL '{acl}' does not exist")
        for entry in listed[0]["Entries"]:
            if entry["RuleNumber"] != _LAST:
                ec2.delete_network_acl_entry(NetworkAclId=acl, RuleNumber=entry["RuleNumber"], Egress=entry["Egress"])
        for egress, rules in ((False, inputs.get("ingress")), (True, inputs.get("egress"))):
            for rule in rules or []:
                ec2.create_network_acl_entry(NetworkAclId=acl, Egress=egress, **_entry(rule))


def _entry(rule: Inputs) -> dict[str, Any]:
    protocol = _PROTOCOLS.get(rule["protocol"], rule["protocol"])
    entry: dict[str, Any] = {
        "RuleNumber": plain(rule["ruleNo"]),
        "RuleAction": rule["action"],
        "Protocol": protocol,
    }
    for ours, theirs in (("cidrBlock", "CidrBlock"), ("ipv6CidrBlock", "Ipv6CidrBlock")):
        if rule.get(ours):
            entry[theirs] = rule[ours]
    if protocol in (_PROTOCOLS["tcp"], _PROTOCOLS["udp"]):
        entry["PortRange"] = {"From": plain(rule["fromPort"]), "To": plain(rule["toPort"])}
    if protocol == _PROTOCOLS["icmp"]:
        entry["IcmpTypeCode"] = {"Type": plain(rule["icmpType"]), "Code": plain(rule["icmpCode"])}
    return entry
