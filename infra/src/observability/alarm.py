"""An alarm: one number, one limit, one section of docs/runbook.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import pulumi
import pulumi_aws as aws

PERIOD_SECONDS = 300


class Side(Enum):
    """On which side of its limit a number is bad."""

    ABOVE = "GreaterThanThreshold"
    BELOW = "LessThanThreshold"


class Silence(Enum):
    """What it means that there is no number: services send none while nothing happens."""

    GOOD = "notBreaching"
    BAD = "breaching"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """When to raise an alarm: ``statistic`` of a metric on the bad ``side`` of ``value`` for ``periods`` in a row, each
    of `PERIOD_SECONDS`."""

    namespace: str
    metric: str
    dimensions: Mapping[str, pulumi.Input[str]]
    statistic: str
    value: float
    side: Side = Side.ABOVE
    periods: int = 1
    silence: Silence = Silence.GOOD


def create_alarm(
    name: str,
    *,
    thing: str,
    meaning: str,
    limit: Limit,
    topic: aws.sns.Topic,
    after: Sequence[pulumi.Resource] = (),
) -> aws.cloudwatch.MetricAlarm:
    """The alarm ``…-<thing>``, told to ``topic`` when it begins and when it ends.

    It is made after ``after``, and goes before it: what is still coming up, or going down, must not raise it.
    ``meaning`` says what it means for a booking; what to do stands in docs/runbook.md under the heading ``thing``.
    """
    return aws.cloudwatch.MetricAlarm(
        thing,
        name=f"{name}-{thing}",
        alarm_description=f"{meaning} What to do: docs/runbook.md, section {thing}",
        namespace=limit.namespace,
        metric_name=limit.metric,
        dimensions=dict(limit.dimensions),
        statistic=limit.statistic,
        comparison_operator=limit.side.value,
        threshold=limit.value,
        evaluation_periods=limit.periods,
        period=PERIOD_SECONDS,
        treat_missing_data=limit.silence.value,
        alarm_actions=[topic.arn],
        ok_actions=[topic.arn],
        opts=pulumi.ResourceOptions(depends_on=list(after)),
    )
