"""EventBridge Scheduler: schedules. The emulator keeps time, so one that is due is run."""

from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.permissions import missing_actions, require_trust
from local.handlers.refusals import found, gone
from local.handlers.shapes import capitalised, chosen, physical_name

_GROUP = "default"
_SERVICE = "scheduler.amazonaws.com"
_REFUSAL = (
    "ValidationException: The execution role you provide must allow AWS EventBridge Scheduler to assume the role."
)
_OPTIONAL = {
    "actionAfterCompletion": "ActionAfterCompletion",
    "description": "Description",
    "endDate": "EndDate",
    "kmsKeyArn": "KmsKeyArn",
    "scheduleExpressionTimezone": "ScheduleExpressionTimezone",
    "startDate": "StartDate",
    "state": "State",
}


class Schedule(Handler):
    """A schedule. A name in use within its group is refused, and a role that Scheduler may not assume.

    A role that may not publish to the topic that it is for is refused here too: AWS would say so in a metric only.
    """

    resource_type = "aws:scheduler/schedule:Schedule"
    replaced_by = frozenset({"groupName", "name", "namePrefix"})

    def create(self, name: str, inputs: Inputs) -> Made:
        schedule = physical_name(inputs, name, limit=64)
        self._require_permissions(inputs)
        arn = self.platform.aws("scheduler").create_schedule(**_request(schedule, inputs))["ScheduleArn"]
        return Made(f"{_group(inputs)}/{schedule}", _outputs(arn, schedule, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        group, _, schedule = id.partition("/") if id else (_group(inputs), "/", inputs.get("name"))
        if not schedule:
            return None
        live = found(lambda: self.platform.aws("scheduler").get_schedule(Name=schedule, GroupName=group))
        return None if live is None else Made(f"{group}/{schedule}", _outputs(live["Arn"], schedule, inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        schedule = id.partition("/")[2]
        self._require_permissions(new)
        arn = self.platform.aws("scheduler").update_schedule(**_request(schedule, new))["ScheduleArn"]
        return _outputs(arn, schedule, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        group, _, schedule = id.partition("/")
        gone(lambda: self.platform.aws("scheduler").delete_schedule(Name=schedule, GroupName=group))

    def _require_permissions(self, inputs: Inputs) -> None:
        target = inputs["target"]
        require_trust(self.platform, target["roleArn"], _SERVICE, _REFUSAL)
        if ":sns:" in target["arn"] and missing_actions(
            self.platform, target["roleArn"], ["sns:Publish"], target["arn"]
        ):
            raise HandlerError(
                f"AccessDeniedException: {target['roleArn']} is not authorized to perform sns:Publish on "
                f"{target['arn']}: the schedule would run in vain. Allow it in the role's policy, and let the schedule "
                "depend on that policy"
            )


def _group(inputs: Inputs) -> str:
    return str(inputs.get("groupName") or _GROUP)


def _request(schedule: str, inputs: Inputs) -> dict[str, Any]:
    return {
        "Name": schedule,
        "GroupName": _group(inputs),
        "ScheduleExpression": inputs["scheduleExpression"],
        "FlexibleTimeWindow": capitalised(inputs["flexibleTimeWindow"]),
        "Target": capitalised(inputs["target"]),
        **chosen(inputs, _OPTIONAL),
    }


def _outputs(arn: str, schedule: str, inputs: Inputs) -> Outputs:
    return {**inputs, "arn": arn, "name": schedule, "groupName": _group(inputs)}
