"""ECS: clusters, and task definitions with rising revisions."""

import json
from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs, PlatformServices
from local.handlers.refusals import found, gone
from local.handlers.shapes import chosen, physical_name, plain, tags_gone, tags_of
from local.handlers.tasks import TaskResult, run_task

__all__ = ["Cluster", "TaskDefinitionHandler", "TaskResult", "ecs_tags", "outputs_of", "retag", "run_task"]


class Cluster(Handler):
    """A cluster. AWS hands out the existing one of a name; deleting refuses while it has services."""

    resource_type = "aws:ecs/cluster:Cluster"
    replaced_by = frozenset({"name"})

    def create(self, name: str, inputs: Inputs) -> Made:
        title = physical_name(inputs, name)
        arn: str = self.platform.aws("ecs").create_cluster(
            clusterName=title, settings=list(inputs.get("settings") or []), tags=ecs_tags(inputs)
        )["cluster"]["clusterArn"]
        return Made(arn, outputs_of(arn, inputs, name=title))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        reference = id or inputs.get("name")
        if not reference:
            return None
        listed = self.platform.aws("ecs").describe_clusters(clusters=[reference])["clusters"]
        if not listed or listed[0]["status"] != "ACTIVE":
            return None
        arn = listed[0]["clusterArn"]
        return Made(arn, outputs_of(arn, inputs, name=listed[0]["clusterName"]))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        settings = list(new.get("settings") or [{"name": "containerInsights", "value": "disabled"}])
        self.platform.aws("ecs").update_cluster_settings(cluster=id, settings=settings)
        retag(self.platform, id, old, new)
        return outputs_of(id, new, name=old["name"])

    def delete(self, id: str, outputs: Outputs) -> None:
        ecs = self.platform.aws("ecs")
        services = found(lambda: ecs.list_services(cluster=id)["serviceArns"]) or []
        if services:
            raise HandlerError(
                f"ClusterContainsServicesException: The Cluster cannot be deleted while Services are active: "
                f"{services[0]}"
            )
        gone(lambda: ecs.delete_cluster(cluster=id))


class TaskDefinitionHandler(Handler):
    """A task definition. Each registration is a revision of its family, and the ARN holds it."""

    resource_type = "aws:ecs/taskDefinition:TaskDefinition"
    replaced_by = frozenset(
        {
            "containerDefinitions", "cpu", "ephemeralStorage", "executionRoleArn", "family", "ipcMode", "memory",
            "networkMode", "pidMode", "placementConstraints", "proxyConfiguration", "requiresCompatibilities",
            "runtimePlatform", "taskRoleArn", "volumes",
        }
    )  # fmt: skip
    _FIELDS = (
        "cpu", "memory", "ephemeralStorage", "executionRoleArn", "ipcMode", "networkMode", "pidMode",
        "requiresCompatibilities", "runtimePlatform", "taskRoleArn",
    )  # fmt: skip

    def create(self, name: str, inputs: Inputs) -> Made:
        request = chosen(inputs, {field: field for field in self._FIELDS})
        for key in ("cpu", "memory"):
            if key in request:
                request[key] = str(request[key])
        request["containerDefinitions"] = plain(json.loads(inputs["containerDefinitions"]))
        if inputs.get("volumes"):
            request["volumes"] = [{"name": volume["name"]} for volume in inputs["volumes"]]
        made = self.platform.aws("ecs").register_task_definition(
            family=inputs["family"], tags=ecs_tags(inputs), **request
        )["taskDefinition"]
        return Made(inputs["family"], self._outputs(made, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        """Nothing is adopted: a revision more does no harm, a wrong one would."""
        ecs = self.platform.aws("ecs")
        if not id:
            return None
        answer = found(lambda: ecs.describe_task_definition(taskDefinition=id)["taskDefinition"])
        return Made(id, self._outputs(answer, inputs)) if answer else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        retag(self.platform, old["arn"], old, new)
        kept = {key: old[key] for key in ("arn", "arnWithoutRevision", "revision")}
        return {**new, **kept, "tagsAll": tags_of(new)}

    def delete(self, id: str, outputs: Outputs) -> None:
        if outputs.get("skipDestroy"):
            return
        ecs = self.platform.aws("ecs")
        gone(lambda: ecs.deregister_task_definition(taskDefinition=outputs["arn"]))

    def _outputs(self, made: dict[str, Any], inputs: Inputs) -> Outputs:
        arn: str = made["taskDefinitionArn"]
        return outputs_of(arn, inputs, arnWithoutRevision=arn.rsplit(":", 1)[0], revision=made["revision"])


def ecs_tags(inputs: Inputs) -> list[dict[str, str]]:
    """The tags as ECS takes them."""
    return [{"key": key, "value": value} for key, value in sorted(tags_of(inputs).items())]


def outputs_of(arn: str, inputs: Inputs, **more: Any) -> Outputs:
    """Outputs of what ECS made: the inputs, the ARN, all tags, and ``more``."""
    return {**inputs, "arn": arn, "tagsAll": tags_of(inputs), **more}


def retag(platform: PlatformServices, arn: str, old: Inputs, new: Inputs) -> None:
    """Make the tags of a thing those of ``new``."""
    ecs = platform.aws("ecs")
    if removed := tags_gone(old, new):
        ecs.untag_resource(resourceArn=arn, tagKeys=removed)
    if tags := ecs_tags(new):
        ecs.tag_resource(resourceArn=arn, tags=tags)
