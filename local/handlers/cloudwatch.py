"""CloudWatch: log groups, alarms, dashboards."""

from typing import Any

from local.handlers.handler import Handler, Inputs, Made, Outputs
from local.handlers.refusals import found, gone
from local.handlers.shapes import chosen, physical_name, plain, tag_list, tags_gone, tags_of

_ALARM_FIELDS = {
    "comparisonOperator": "ComparisonOperator",
    "evaluationPeriods": "EvaluationPeriods",
    "datapointsToAlarm": "DatapointsToAlarm",
    "metricName": "MetricName",
    "namespace": "Namespace",
    "period": "Period",
    "statistic": "Statistic",
    "extendedStatistic": "ExtendedStatistic",
    "threshold": "Threshold",
    "treatMissingData": "TreatMissingData",
    "unit": "Unit",
    "alarmDescription": "AlarmDescription",
    "actionsEnabled": "ActionsEnabled",
    "alarmActions": "AlarmActions",
    "okActions": "OKActions",
    "insufficientDataActions": "InsufficientDataActions",
}


class LogGroup(Handler):
    """A log group. A name in use is refused."""

    resource_type = "aws:cloudwatch/logGroup:LogGroup"
    replaced_by = frozenset({"logGroupClass", "name", "namePrefix"})

    def create(self, name: str, inputs: Inputs) -> Made:
        group = physical_name(inputs, name)
        request: dict[str, Any] = {"logGroupName": group, "tags": tags_of(inputs)}
        if inputs.get("kmsKeyId"):
            request["kmsKeyId"] = inputs["kmsKeyId"]
        self.platform.aws("logs").create_log_group(**request)
        self._set_retention(group, inputs)
        return Made(group, self._outputs(group, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        group = id or inputs.get("name")
        if not group:
            return None
        listed = self.platform.aws("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        exists = any(entry["logGroupName"] == group for entry in listed)
        return Made(group, self._outputs(group, inputs)) if exists else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        logs = self.platform.aws("logs")
        self._set_retention(id, new)
        outputs = self._outputs(id, new)
        if removed := tags_gone(old, new):
            logs.untag_resource(resourceArn=outputs["arn"], tagKeys=removed)
        if tags := tags_of(new):
            logs.tag_resource(resourceArn=outputs["arn"], tags=tags)
        return outputs

    def delete(self, id: str, outputs: Outputs) -> None:
        if outputs.get("skipDestroy"):
            return
        gone(lambda: self.platform.aws("logs").delete_log_group(logGroupName=id))

    def _set_retention(self, group: str, inputs: Inputs) -> None:
        logs = self.platform.aws("logs")
        if days := plain(inputs.get("retentionInDays")):
            logs.put_retention_policy(logGroupName=group, retentionInDays=days)
        else:
            gone(lambda: logs.delete_retention_policy(logGroupName=group))

    def _outputs(self, group: str, inputs: Inputs) -> Outputs:
        return {
            **inputs,
            "name": group,
            "arn": f"arn:aws:logs:{self.platform.region}:{self.platform.account}:log-group:{group}",
            "tagsAll": tags_of(inputs),
        }


class LogMetricFilter(Handler):
    """A count of log lines. Kept in the control plane: a task's log is a file here, which the emulator never sees."""

    resource_type = "aws:cloudwatch/logMetricFilter:LogMetricFilter"
    replaced_by = frozenset({"logGroupName", "name"})

    def create(self, name: str, inputs: Inputs) -> Made:
        title = physical_name(inputs, name)
        return Made(title, self.update(title, {}, {**inputs, "name": title}))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        title, group = id or inputs.get("name"), inputs["logGroupName"]
        listed = found(lambda: self.platform.aws("logs").describe_metric_filters(logGroupName=group))
        exists = title and any(entry["filterName"] == title for entry in (listed or {}).get("metricFilters", []))
        return Made(str(title), {**inputs, "name": title}) if exists else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        transformation = chosen(
            new["metricTransformation"],
            {"name": "metricName", "namespace": "metricNamespace", "unit": "unit"},
        )
        # AWS takes the value as text and the default as a number; the provider's inputs are text both.
        transformation["metricValue"] = str(new["metricTransformation"]["value"])
        if (default := new["metricTransformation"].get("defaultValue")) is not None:
            transformation["defaultValue"] = float(default)
        self.platform.aws("logs").put_metric_filter(
            logGroupName=new["logGroupName"],
            filterName=id,
            filterPattern=new["pattern"],
            metricTransformations=[transformation],
        )
        return {**new, "name": id}

    def delete(self, id: str, outputs: Outputs) -> None:
        logs, group = self.platform.aws("logs"), outputs["logGroupName"]
        gone(lambda: logs.delete_metric_filter(logGroupName=group, filterName=id))


class MetricAlarm(Handler):
    """An alarm. The emulator has no metrics of its services, so it stays without data unless someone puts some."""

    resource_type = "aws:cloudwatch/metricAlarm:MetricAlarm"
    replaced_by = frozenset({"name"})

    def create(self, name: str, inputs: Inputs) -> Made:
        alarm = physical_name(inputs, name)
        self._put(alarm, inputs)
        return Made(alarm, self._outputs(alarm, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        alarm = id or inputs.get("name")
        if not alarm:
            return None
        listed = self.platform.aws("cloudwatch").describe_alarms(AlarmNames=[alarm])["MetricAlarms"]
        return Made(alarm, self._outputs(alarm, inputs)) if listed else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._put(id, new)
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("cloudwatch").delete_alarms(AlarmNames=[id]))

    def _put(self, alarm: str, inputs: Inputs) -> None:
        request = chosen(inputs, _ALARM_FIELDS)
        if dimensions := inputs.get("dimensions"):
            request["Dimensions"] = [{"Name": key, "Value": value} for key, value in sorted(dimensions.items())]
        if queries := inputs.get("metricQueries"):
            request["Metrics"] = [_metric_query(query) for query in queries]
        self.platform.aws("cloudwatch").put_metric_alarm(AlarmName=alarm, Tags=tag_list(inputs), **request)

    def _outputs(self, alarm: str, inputs: Inputs) -> Outputs:
        arn = f"arn:aws:cloudwatch:{self.platform.region}:{self.platform.account}:alarm:{alarm}"
        return {**inputs, "name": alarm, "arn": arn, "tagsAll": tags_of(inputs)}


def _metric_query(query: Inputs) -> dict[str, Any]:
    written: dict[str, Any] = {"Id": query["id"], "ReturnData": bool(query.get("returnData"))}
    written |= chosen(query, {"expression": "Expression", "label": "Label"})
    if metric := query.get("metric"):
        dimensions = [{"Name": key, "Value": value} for key, value in sorted((metric.get("dimensions") or {}).items())]
        written["MetricStat"] = {
            "Metric": {"MetricName": metric["metricName"], "Namespace": metric["namespace"], "Dimensions": dimensions},
            "Period": plain(metric["period"]),
            "Stat": metric["stat"],
        }
    return written


class Dashboard(Handler):
    """A dashboard; no two of a name."""

    resource_type = "aws:cloudwatch/dashboard:Dashboard"
    replaced_by = frozenset({"dashboardName"})

    def create(self, name: str, inputs: Inputs) -> Made:
        return Made(inputs["dashboardName"], self.update(inputs["dashboardName"], {}, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        name = id or inputs["dashboardName"]
        exists = found(lambda: self.platform.aws("cloudwatch").get_dashboard(DashboardName=name)) is not None
        return Made(name, self._outputs(name, inputs)) if exists else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self.platform.aws("cloudwatch").put_dashboard(DashboardName=id, DashboardBody=new["dashboardBody"])
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("cloudwatch").delete_dashboards(DashboardNames=[id]))

    def _outputs(self, name: str, inputs: Inputs) -> Outputs:
        return {**inputs, "dashboardArn": f"arn:aws:cloudwatch::{self.platform.account}:dashboard/{name}"}
