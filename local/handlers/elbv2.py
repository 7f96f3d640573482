"""Elastic Load Balancing: load balancers that answer on this machine, their target groups, listeners and rules.

A load balancer is one port of this machine, passing connections on; which task they reach is the target group's
business, so neither a listener's port nor its certificate nor a rule's condition changes what happens here.
"""

import json
from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs, PlatformServices
from local.handlers.refusals import found, gone
from local.handlers.shapes import (
    attribute_text,
    capitalised,
    chosen,
    physical_name,
    plain,
    tag_list,
    tags_gone,
    tags_of,
)

_LONGEST_NAME = 32
_LOAD_BALANCER_ATTRIBUTES = {
    "idleTimeout": "idle_timeout.timeout_seconds",
    "enableDeletionProtection": "deletion_protection.enabled",
    "enableHttp2": "routing.http2.enabled",
    "dropInvalidHeaderFields": "routing.http.drop_invalid_header_fields.enabled",
    "desyncMitigationMode": "routing.http.desync_mitigation_mode",
}
_TARGET_GROUP_ATTRIBUTES = {
    "deregistrationDelay": "deregistration_delay.timeout_seconds",
    "slowStart": "slow_start.duration_seconds",
    "loadBalancingAlgorithmType": "load_balancing.algorithm.type",
}
_HEALTH_CHECK = {
    "enabled": "HealthCheckEnabled",
    "path": "HealthCheckPath",
    "port": "HealthCheckPort",
    "protocol": "HealthCheckProtocol",
    "interval": "HealthCheckIntervalSeconds",
    "timeout": "HealthCheckTimeoutSeconds",
    "healthyThreshold": "HealthyThresholdCount",
    "unhealthyThreshold": "UnhealthyThresholdCount",
}


def load_balancers_of(platform: PlatformServices, target_group_arn: str) -> list[str]:
    """ARNs of the load balancers that have a listener or a rule for a target group.

    The emulator's own list keeps those that once had one, so their listeners are asked.
    """
    client = platform.aws("elbv2")
    groups = found(lambda: client.describe_target_groups(TargetGroupArns=[target_group_arn])["TargetGroups"])
    claimed = groups[0].get("LoadBalancerArns", []) if groups else []
    return [balancer for balancer in claimed if _sends_to(client, balancer, target_group_arn)]


def _sends_to(client: Any, balancer: str, target_group_arn: str) -> bool:
    for listener in found(lambda: client.describe_listeners(LoadBalancerArn=balancer)["Listeners"]) or []:
        rules = client.describe_rules(ListenerArn=listener["ListenerArn"])["Rules"]
        actions = [*listener["DefaultActions"], *(action for rule in rules for action in rule["Actions"])]
        if target_group_arn in json.dumps(actions):
            return True
    return False


def set_targets(platform: PlatformServices, target_group_arn: str, ports: list[int]) -> None:
    """Make ``ports`` of this machine the targets of a group, in the control plane and behind its load balancers."""
    client = platform.aws("elbv2")
    health = found(lambda: client.describe_target_health(TargetGroupArn=target_group_arn)["TargetHealthDescriptions"])
    if health is None:
        return
    stale = [entry["Target"] for entry in health if entry["Target"]["Port"] not in ports]
    if ports:
        targets = [{"Id": "127.0.0.1", "Port": port} for port in ports]
        client.register_targets(TargetGroupArn=target_group_arn, Targets=targets)
    for balancer in load_balancers_of(platform, target_group_arn):
        platform.set_targets(balancer, ports)
    if stale:
        client.deregister_targets(
            TargetGroupArn=target_group_arn, Targets=[{"Id": entry["Id"], "Port": entry["Port"]} for entry in stale]
        )


def _registered_ports(platform: PlatformServices, target_group_arn: str) -> list[int]:
    health = platform.aws("elbv2").describe_target_health(TargetGroupArn=target_group_arn)
    return [entry["Target"]["Port"] for entry in health["TargetHealthDescriptions"]]


class LoadBalancer(Handler):
    """A load balancer. Its DNS name is ``127.0.0.1:<port>``, the same for all its life.

    One with deletion protection refuses to go.
    """

    resource_type = "aws:lb/loadBalancer:LoadBalancer"
    replaced_by = frozenset({"customerOwnedIpv4Pool", "internal", "loadBalancerType", "name", "namePrefix"})

    def create(self, name: str, inputs: Inputs) -> Made:
        client = self.platform.aws("elbv2")
        title = physical_name(inputs, name, limit=_LONGEST_NAME)
        if found(lambda: client.describe_load_balancers(Names=[title])["LoadBalancers"]):
            raise HandlerError(f"DuplicateLoadBalancerName: A load balancer with the name '{title}' exists already")
        request = {"SecurityGroups": list(inputs["securityGroups"])} if inputs.get("securityGroups") else {}
        made = client.create_load_balancer(
            Name=title,
            Type=inputs.get("loadBalancerType", "application"),
            Scheme="internal" if inputs.get("internal") else "internet-facing",
            Subnets=list(inputs.get("subnets") or []),
            **_tags(inputs),
            **request,
        )["LoadBalancers"][0]
        arn: str = made["LoadBalancerArn"]
        self._set_attributes(arn, {}, inputs)
        port = self.platform.free_port()
        self.platform.balance(arn, port=port)
        return Made(arn, self._outputs(made, port, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        """A load balancer's port is in its outputs only, so nothing is adopted by name."""
        client = self.platform.aws("elbv2")
        if not id or not found(lambda: client.describe_load_balancers(LoadBalancerArns=[id])["LoadBalancers"]):
            return None
        return Made(id, dict(inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        client = self.platform.aws("elbv2")
        self._set_attributes(id, old, new)
        if old.get("securityGroups") != new.get("securityGroups"):
            client.set_security_groups(LoadBalancerArn=id, SecurityGroups=list(new.get("securityGroups") or []))
        if old.get("subnets") != new.get("subnets"):
            client.set_subnets(LoadBalancerArn=id, Subnets=list(new.get("subnets") or []))
        _retag(self.platform, id, old, new)
        made = client.describe_load_balancers(LoadBalancerArns=[id])["LoadBalancers"][0]
        return self._outputs(made, int(old["dnsName"].rsplit(":", 1)[1]), new)

    def delete(self, id: str, outputs: Outputs) -> None:
        if outputs.get("enableDeletionProtection"):
            raise HandlerError(
                f"OperationNotPermitted: Load balancer '{id}' cannot be deleted because deletion protection is enabled"
            )
        gone(lambda: self.platform.aws("elbv2").delete_load_balancer(LoadBalancerArn=id))
        self.platform.stop_balancing(id)

    def resume(self, id: str, outputs: Outputs) -> None:
        self.platform.balance(id, port=int(outputs["dnsName"].rsplit(":", 1)[1]))

    def _set_attributes(self, arn: str, old: Inputs, new: Inputs) -> None:
        _set_attributes(
            _LOAD_BALANCER_ATTRIBUTES,
            {"idleTimeout": 60, "enableDeletionProtection": False},
            old,
            new,
            lambda attributes: self.platform.aws("elbv2").modify_load_balancer_attributes(
                LoadBalancerArn=arn, Attributes=attributes
            ),
        )

    def _outputs(self, made: dict[str, Any], port: int, inputs: Inputs) -> Outputs:
        arn: str = made["LoadBalancerArn"]
        return {
            **inputs,
            "name": made["LoadBalancerName"],
            "arn": arn,
            "arnSuffix": arn.split(":loadbalancer/", 1)[1],
            "dnsName": f"127.0.0.1:{port}",
            "zoneId": made["CanonicalHostedZoneId"],
            "vpcId": made["VpcId"],
            "tagsAll": tags_of(inputs),
        }


class TargetGroup(Handler):
    """Where a listener sends its connections. AWS refuses to delete one that a listener uses; the emulator does not."""

    resource_type = "aws:lb/targetGroup:TargetGroup"
    replaced_by = frozenset(
        {"ipAddressType", "name", "namePrefix", "port", "protocol", "protocolVersion", "targetType", "vpcId"}
    )

    def create(self, name: str, inputs: Inputs) -> Made:
        client = self.platform.aws("elbv2")
        title = physical_name(inputs, name, limit=_LONGEST_NAME)
        if found(lambda: client.describe_target_groups(Names=[title])["TargetGroups"]):
            raise HandlerError(f"DuplicateTargetGroupName: A target group with the name '{title}' exists already")
        request = chosen(
            inputs,
            {
                "port": "Port", "protocol": "Protocol", "protocolVersion": "ProtocolVersion",
                "targetType": "TargetType", "vpcId": "VpcId",
            },
        )  # fmt: skip
        made = client.create_target_group(Name=title, **_tags(inputs), **request, **_health_check(inputs))[
            "TargetGroups"
        ][0]
        arn: str = made["TargetGroupArn"]
        self._set_attributes(arn, {}, inputs)
        return Made(arn, self._outputs(made, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        client = self.platform.aws("elbv2")
        request = {"TargetGroupArns": [id]} if id else {"Names": [inputs.get("name", "")]}
        listed = found(lambda: client.describe_target_groups(**request)["TargetGroups"])
        return Made(listed[0]["TargetGroupArn"], self._outputs(listed[0], inputs)) if listed else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        client = self.platform.aws("elbv2")
        made = client.modify_target_group(TargetGroupArn=id, **_health_check(new))["TargetGroups"][0]
        self._set_attributes(id, old, new)
        _retag(self.platform, id, old, new)
        return self._outputs(made, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        client = self.platform.aws("elbv2")
        if load_balancers_of(self.platform, id):
            raise HandlerError(f"ResourceInUse: Target group '{id}' is currently in use by a listener or a rule")
        gone(lambda: client.delete_target_group(TargetGroupArn=id))

    def _set_attributes(self, arn: str, old: Inputs, new: Inputs) -> None:
        _set_attributes(
            _TARGET_GROUP_ATTRIBUTES,
            {"deregistrationDelay": 300, "slowStart": 0},
            old,
            new,
            lambda attributes: self.platform.aws("elbv2").modify_target_group_attributes(
                TargetGroupArn=arn, Attributes=attributes
            ),
        )

    def _outputs(self, made: dict[str, Any], inputs: Inputs) -> Outputs:
        arn: str = made["TargetGroupArn"]
        return {
            **inputs,
            "name": made["TargetGroupName"],
            "arn": arn,
            "arnSuffix": arn.rsplit(":", 1)[1],
            "tagsAll": tags_of(inputs),
        }


class Listener(Handler):
    """What a load balancer does with a connection. The targets of its group answer from then on.

    One that is made again with the same settings is the same one, as AWS documents; with others its port is refused.
    """

    resource_type = "aws:lb/listener:Listener"
    replaced_by = frozenset({"loadBalancerArn"})

    def create(self, name: str, inputs: Inputs) -> Made:
        client = self.platform.aws("elbv2")
        request = _listener(inputs)
        for entry in client.describe_listeners(LoadBalancerArn=inputs["loadBalancerArn"])["Listeners"]:
            if entry["Port"] != request.get("Port"):
                continue
            actions = json.dumps(entry["DefaultActions"])
            forwards_alike = all(arn in actions for arn in _target_groups(inputs["defaultActions"]))
            if entry.get("Protocol") != request.get("Protocol") or not forwards_alike:
                raise HandlerError("DuplicateListener: A listener already exists on this port for this load balancer")
            return Made(entry["ListenerArn"], _rule_outputs(entry["ListenerArn"], inputs))
        arn: str = client.create_listener(LoadBalancerArn=inputs["loadBalancerArn"], **_tags(inputs), **request)[
            "Listeners"
        ][0]["ListenerArn"]
        self._connect(inputs)
        return Made(arn, _rule_outputs(arn, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        client = self.platform.aws("elbv2")
        listed = found(lambda: client.describe_listeners(LoadBalancerArn=inputs["loadBalancerArn"])["Listeners"])
        for entry in listed or []:
            if entry["ListenerArn"] == id or (not id and entry["Port"] == plain(inputs.get("port"))):
                return Made(entry["ListenerArn"], _rule_outputs(entry["ListenerArn"], inputs))
        return None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self.platform.aws("elbv2").modify_listener(ListenerArn=id, **_listener(new))
        self._connect(new)
        _retag(self.platform, id, old, new)
        return _rule_outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("elbv2").delete_listener(ListenerArn=id))

    def _connect(self, inputs: Inputs) -> None:
        for arn in _target_groups(inputs["defaultActions"]):
            self.platform.set_targets(inputs["loadBalancerArn"], _registered_ports(self.platform, arn))


class ListenerRule(Handler):
    """A condition of a listener; kept for an auditor, without effect here."""

    resource_type = "aws:lb/listenerRule:ListenerRule"
    replaced_by = frozenset({"listenerArn"})

    def create(self, name: str, inputs: Inputs) -> Made:
        arn: str = self.platform.aws("elbv2").create_rule(
            ListenerArn=inputs["listenerArn"],
            Priority=plain(inputs["priority"]),
            Conditions=_conditions(inputs),
            Actions=_actions(inputs["actions"]),
            **_tags(inputs),
        )["Rules"][0]["RuleArn"]
        return Made(arn, _rule_outputs(arn, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        client = self.platform.aws("elbv2")
        listed = found(lambda: client.describe_rules(ListenerArn=inputs["listenerArn"])["Rules"])
        priority = str(plain(inputs.get("priority")))
        for entry in listed or []:
            if entry["RuleArn"] == id or (not id and entry["Priority"] == priority):
                return Made(entry["RuleArn"], _rule_outputs(entry["RuleArn"], inputs))
        return None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        client = self.platform.aws("elbv2")
        client.modify_rule(RuleArn=id, Conditions=_conditions(new), Actions=_actions(new["actions"]))
        if old.get("priority") != new.get("priority"):
            client.set_rule_priorities(RulePriorities=[{"RuleArn": id, "Priority": plain(new["priority"])}])
        _retag(self.platform, id, old, new)
        return _rule_outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("elbv2").delete_rule(RuleArn=id))


def _set_attributes(names: dict[str, str], defaults: dict[str, Any], old: Inputs, new: Inputs, modify: Any) -> None:
    gone_back = {key: value for key, value in defaults.items() if key not in new and old.get(key) is not None}
    values = chosen({**gone_back, **new}, names)
    attributes = [{"Key": key, "Value": attribute_text(value)} for key, value in values.items()]
    if attributes:
        modify(attributes)


def _health_check(inputs: Inputs) -> dict[str, Any]:
    check = inputs.get("healthCheck") or {}
    request = chosen(check, _HEALTH_CHECK)
    if "HealthCheckPort" in request:
        request["HealthCheckPort"] = str(request["HealthCheckPort"])
    if check.get("matcher"):
        request["Matcher"] = {"HttpCode": str(plain(check["matcher"]))}
    return request


def _listener(inputs: Inputs) -> dict[str, Any]:
    request = chosen(inputs, {"port": "Port", "protocol": "Protocol", "sslPolicy": "SslPolicy"})
    if inputs.get("certificateArn"):
        request["Certificates"] = [{"CertificateArn": inputs["certificateArn"]}]
    return {**request, "DefaultActions": _actions(inputs["defaultActions"])}


def _actions(actions: list[Inputs]) -> list[dict[str, Any]]:
    written = []
    for action in actions:
        entry = chosen(action, {"type": "Type", "targetGroupArn": "TargetGroupArn", "order": "Order"})
        if action.get("forward"):
            groups = [
                chosen(group, {"arn": "TargetGroupArn", "weight": "Weight"})
                for group in action["forward"].get("targetGroups") or []
            ]
            entry["ForwardConfig"] = {"TargetGroups": groups}
        if action.get("redirect"):
            entry["RedirectConfig"] = {"Host": "#{host}", "Path": "/#{path}", "Query": "#{query}"} | capitalised(
                action["redirect"]
            )
            if "Port" in entry["RedirectConfig"]:
                entry["RedirectConfig"]["Port"] = str(entry["RedirectConfig"]["Port"])
        if action.get("fixedResponse"):
            entry["FixedResponseConfig"] = {
                key: str(value) for key, value in capitalised(action["fixedResponse"]).items()
            }
        written.append(entry)
    return written


def _target_groups(actions: list[Inputs]) -> list[str]:
    arns = [action["targetGroupArn"] for action in actions if action.get("targetGroupArn")]
    for action in actions:
        arns += [group["arn"] for group in (action.get("forward") or {}).get("targetGroups") or []]
    return arns


def _conditions(inputs: Inputs) -> list[dict[str, Any]]:
    fields = {
        "pathPattern": ("path-pattern", "PathPatternConfig"),
        "hostHeader": ("host-header", "HostHeaderConfig"),
        "httpRequestMethod": ("http-request-method", "HttpRequestMethodConfig"),
        "sourceIp": ("source-ip", "SourceIpConfig"),
    }
    return [
        {"Field": field, config: {"Values": list(condition[key]["values"])}}
        for condition in inputs["conditions"]
        for key, (field, config) in fields.items()
        if condition.get(key)
    ]


def _tags(inputs: Inputs) -> dict[str, Any]:
    """The tags of a new thing: the service refuses an empty list."""
    tags = tag_list(inputs)
    return {"Tags": tags} if tags else {}


def _rule_outputs(arn: str, inputs: Inputs) -> Outputs:
    return {**inputs, "arn": arn, "tagsAll": tags_of(inputs)}


def _retag(platform: PlatformServices, arn: str, old: Inputs, new: Inputs) -> None:
    client = platform.aws("elbv2")
    if removed := tags_gone(old, new):
        client.remove_tags(ResourceArns=[arn], TagKeys=removed)
    if tags := tag_list(new):
        client.add_tags(ResourceArns=[arn], Tags=tags)
