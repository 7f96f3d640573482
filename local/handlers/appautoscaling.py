"""Application Auto Scaling: targets and policies that are kept and do nothing.

The emulator has no such service, and a service here runs the number of tasks that it was declared with.
"""

from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.refusals import found
from local.handlers.shapes import physical_name, tags_of

_POLICY_PARTS = ("serviceNamespace", "scalableDimension", "resourceId")


class Target(Handler):
    """A service that may be scaled. One that does not exist is refused, as is a range that holds no number."""

    resource_type = "aws:appautoscaling/target:Target"
    replaced_by = frozenset({"resourceId", "scalableDimension", "serviceNamespace"})

    def create(self, name: str, inputs: Inputs) -> Made:
        return Made(inputs["resourceId"], self.update(inputs["resourceId"], {}, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        # Nothing but the platform's own record holds it, so there is never one to adopt; and it goes with its service.
        return Made(id, self._outputs(inputs)) if id and self._service(inputs) else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        if new["minCapacity"] > new["maxCapacity"]:
            raise HandlerError("ValidationException: Maximum capacity cannot be less than minimum capacity")
        if self._service(new) is None:
            raise HandlerError(f"ValidationException: ECS service doesn't exist: {new['resourceId']}")
        return self._outputs(new)

    def delete(self, id: str, outputs: Outputs) -> None:
        return

    def _service(self, inputs: Inputs) -> dict[str, Any] | None:
        _, cluster, service = str(inputs["resourceId"]).split("/")
        answer = found(lambda: self.platform.aws("ecs").describe_services(cluster=cluster, services=[service]))
        active = [entry for entry in (answer or {}).get("services", []) if entry["status"] == "ACTIVE"]
        return active[0] if active else None

    def _outputs(self, inputs: Inputs) -> Outputs:
        where = f"{self.platform.region}:{self.platform.account}"
        arn = f"arn:aws:application-autoscaling:{where}:scalable-target/{inputs['resourceId']}"
        return {**inputs, "arn": arn, "tagsAll": tags_of(inputs)}


class Policy(Handler):
    """What a target follows."""

    resource_type = "aws:appautoscaling/policy:Policy"
    replaced_by = frozenset({"name", *_POLICY_PARTS})

    def create(self, name: str, inputs: Inputs) -> Made:
        title = physical_name(inputs, name)
        return Made(title, self._outputs(title, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        return Made(id, self._outputs(id, inputs)) if id else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        return

    def _outputs(self, title: str, inputs: Inputs) -> Outputs:
        where = f"{self.platform.region}:{self.platform.account}"
        arn = f"arn:aws:autoscaling:{where}:scalingPolicy:{inputs['resourceId']}:policyName/{title}"
        return {**inputs, "name": title, "arn": arn, "alarmArns": []}
