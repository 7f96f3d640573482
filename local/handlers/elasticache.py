"""ElastiCache: real Valkey servers, registered in the emulator's control plane too."""

import threading
import time
from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs, PlatformServices
from local.handlers.refusals import found, gone
from local.handlers.shapes import chosen, physical_name, tag_list, tags_gone, tags_of
from local.processes import ProcessError
from local.servers.valkey import ValkeyServer

_LONGEST_PAUSE_SECONDS = 16.0  # between two attempts to start a node that ended by itself

_MODIFIABLE = {
    "applyImmediately": "ApplyImmediately",
    "autoMinorVersionUpgrade": "AutoMinorVersionUpgrade",
    "automaticFailoverEnabled": "AutomaticFailoverEnabled",
    "engineVersion": "EngineVersion",
    "maintenanceWindow": "PreferredMaintenanceWindow",
    "multiAzEnabled": "MultiAZEnabled",
    "nodeType": "CacheNodeType",
    "parameterGroupName": "CacheParameterGroupName",
    "securityGroupIds": "SecurityGroupIds",
    "snapshotRetentionLimit": "SnapshotRetentionLimit",
    "snapshotWindow": "SnapshotWindow",
}
_AT_CREATION = {
    **{key: theirs for key, theirs in _MODIFIABLE.items() if key != "applyImmediately"},
    "atRestEncryptionEnabled": "AtRestEncryptionEnabled",
    "authToken": "AuthToken",
    "engine": "Engine",
    "numCacheClusters": "NumCacheClusters",
    "subnetGroupName": "CacheSubnetGroupName",
    "transitEncryptionEnabled": "TransitEncryptionEnabled",
}


class SubnetGroup(Handler):
    """Subnets that a cache may live in."""

    resource_type = "aws:elasticache/subnetGroup:SubnetGroup"
    replaced_by = frozenset({"name"})

    def create(self, name: str, inputs: Inputs) -> Made:
        group = physical_name(inputs, name).lower()
        made = self.platform.aws("elasticache").create_cache_subnet_group(
            CacheSubnetGroupName=group,
            CacheSubnetGroupDescription=inputs.get("description", "Managed by Pulumi"),
            SubnetIds=list(inputs["subnetIds"]),
            Tags=tag_list(inputs),
        )["CacheSubnetGroup"]
        return Made(group, {**inputs, "name": group, "arn": made["ARN"], "tagsAll": tags_of(inputs)})

    def read(self, id: str, inputs: Inputs) -> Made | None:
        group = id or inputs.get("name")
        client = self.platform.aws("elasticache")
        answer = found(lambda: client.describe_cache_subnet_groups(CacheSubnetGroupName=group)) if group else None
        if answer is None or not answer["CacheSubnetGroups"]:
            return None
        arn = answer["CacheSubnetGroups"][0]["ARN"]
        return Made(str(group), {**inputs, "name": group, "arn": arn, "tagsAll": tags_of(inputs)})

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self.platform.aws("elasticache").modify_cache_subnet_group(
            CacheSubnetGroupName=id,
            CacheSubnetGroupDescription=new.get("description", "Managed by Pulumi"),
            SubnetIds=list(new["subnetIds"]),
        )
        _retag(self.platform, old["arn"], old, new)
        return {**new, "name": id, "arn": old["arn"], "tagsAll": tags_of(new)}

    def delete(self, id: str, outputs: Outputs) -> None:
        client = self.platform.aws("elasticache")
        gone(lambda: client.delete_cache_subnet_group(CacheSubnetGroupName=id))


class ReplicationGroup(Handler):
    """A cache of one node: a Valkey that asks for the program's token, at the same port for all its life."""

    resource_type = "aws:elasticache/replicationGroup:ReplicationGroup"
    replaced_by = frozenset(
        {
            "atRestEncryptionEnabled", "dataTieringEnabled", "engine", "globalReplicationGroupId", "kmsKeyId",
            "networkType", "port", "replicationGroupId", "securityGroupNames", "snapshotArns", "snapshotName",
            "subnetGroupName", "transitEncryptionEnabled",
        }
    )  # fmt: skip

    def __init__(self, platform: PlatformServices) -> None:
        super().__init__(platform)
        self._servers: dict[str, ValkeyServer] = {}
        self._lock = threading.Lock()

    def create(self, name: str, inputs: Inputs) -> Made:
        group = str(inputs.get("replicationGroupId") or physical_name(inputs, name, limit=40))
        if inputs.get("authToken") and not inputs.get("transitEncryptionEnabled"):
            raise HandlerError(
                "InvalidParameterCombination: The AUTH token is only supported when encryption-in-transit is enabled"
            )
        port = self.platform.free_port()
        made = self.platform.aws("elasticache").create_replication_group(
            ReplicationGroupId=group,
            ReplicationGroupDescription=inputs.get("description", "Managed by Pulumi"),
            Port=port,
            Tags=tag_list(inputs),
            **chosen(inputs, _AT_CREATION),
        )["ReplicationGroup"]
        outputs = self._outputs(group, made["ARN"], port, inputs)
        try:
            self._serve(group, outputs)
        except BaseException:
            self.delete(group, outputs)
            raise
        return Made(group, outputs)

    def read(self, id: str, inputs: Inputs) -> Made | None:
        group = id or inputs.get("replicationGroupId")
        client = self.platform.aws("elasticache")
        answer = found(lambda: client.describe_replication_groups(ReplicationGroupId=group)) if group else None
        if answer is None or not answer["ReplicationGroups"]:
            return None
        with self._lock:
            server = self._servers.get(str(group))
        if server is None and id:
            return None
        arn = answer["ReplicationGroups"][0]["ARN"]
        # Adopted after a crash, its port is lost with its outputs; a cache loses nothing that counts by a new one.
        port = server.port if server else self.platform.free_port()
        outputs = self._outputs(str(group), arn, port, inputs)
        if server is None:
            self._serve(str(group), outputs)
        return Made(str(group), outputs)

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        request: dict[str, Any] = chosen(new, _MODIFIABLE)
        if new.get("authToken") != old.get("authToken"):
            request |= {"AuthToken": new.get("authToken"), "AuthTokenUpdateStrategy": "ROTATE"}
        self.platform.aws("elasticache").modify_replication_group(
            ReplicationGroupId=id,
            ReplicationGroupDescription=new.get("description", "Managed by Pulumi"),
            **request,
        )
        outputs = self._outputs(id, old["arn"], int(old["port"]), new)
        if new.get("authToken") != old.get("authToken"):
            self._stop(id)
            self._serve(id, outputs)
        _retag(self.platform, old["arn"], old, new)
        return outputs

    def delete(self, id: str, outputs: Outputs) -> None:
        self._stop(id)
        gone(lambda: self.platform.aws("elasticache").delete_replication_group(ReplicationGroupId=id))

    def resume(self, id: str, outputs: Outputs) -> None:
        self._serve(id, outputs)

    def _serve(self, group: str, outputs: Outputs) -> None:
        self.platform.say(f"starting Valkey {group}")
        port = int(outputs["port"])
        server = ValkeyServer(
            self.platform.state / "elasticache" / group,
            port=port,
            password=outputs.get("authToken") or "",
            log=self.platform.state / "logs" / f"{group}.log",
        )
        child = server.start()
        with self._lock:
            self._servers[group] = server
        self.platform.adopt_process(child, on_exit=lambda code: self._start_again(group, outputs, code))

    def _start_again(self, group: str, outputs: Outputs, code: int) -> None:
        """ElastiCache replaces a node that failed, and does not give up; what it held is gone."""
        with self._lock:
            crashed = self._servers.get(group)
        pause = 1.0
        while True:
            with self._lock:
                if crashed is None or self._servers.get(group) is not crashed:
                    return  # stopped or deleted meanwhile
            self.platform.say(f"Valkey {group} ended with exit code {code}; starting it again, empty")
            try:
                self._serve(group, outputs)
            except (OSError, ProcessError) as error:
                self.platform.say(f"Valkey {group} did not start: {error}; next attempt in {pause:g} s")
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            else:
                return

    def _stop(self, group: str) -> None:
        with self._lock:
            server = self._servers.pop(group, None)
        if server is not None:
            self.platform.stop_process(f"valkey:{server.port}")

    def _outputs(self, group: str, arn: str, port: int, inputs: Inputs) -> Outputs:
        return {
            **inputs,
            "replicationGroupId": group,
            "arn": arn,
            "port": port,
            "primaryEndpointAddress": "127.0.0.1",
            "readerEndpointAddress": "127.0.0.1",
            "memberClusters": [f"{group}-001"],
            "tagsAll": tags_of(inputs),
        }


def _retag(platform: PlatformServices, arn: str, old: Inputs, new: Inputs) -> None:
    client = platform.aws("elasticache")
    if removed := tags_gone(old, new):
        client.remove_tags_from_resource(ResourceName=arn, TagKeys=removed)
    if tags := tag_list(new):
        client.add_tags_to_resource(ResourceName=arn, Tags=tags)
