"""What the API's log tells of its outbox, as numbers: the rows are in a private database, where no metric looks."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

# As apps/api's services/outbox.py logs them; infra/tests compares the texts.
PARKED = "booking event parked:"
DELAYED = "booking event delayed"


@dataclass(frozen=True, kw_only=True)
class OutboxMetrics:
    """Names of the metrics ``parked`` and ``delayed``: log lines of that kind, to be summed over time."""

    namespace: str
    parked: str
    delayed: str


def create_outbox_metrics(name: str, *, logs: aws.cloudwatch.LogGroup) -> OutboxMetrics:
    """Count parked rows (never published without a person) and delayed attempts (the relay goes on trying)."""
    metrics = OutboxMetrics(namespace=name, parked="outbox-parked", delayed="outbox-delayed")
    for metric, beginning in ((metrics.parked, PARKED), (metrics.delayed, DELAYED)):
        aws.cloudwatch.LogMetricFilter(
            metric,
            name=f"{name}-{metric}",
            log_group_name=logs.name,
            pattern=f'{{ $.message = "{beginning}*" }}',
            metric_transformation={
                "name": metric,
                "namespace": metrics.namespace,
                "value": "1",
                "default_value": "0",  # so that an alarm ends when the lines do
                "unit": "Count",
            },
            opts=pulumi.ResourceOptions(delete_before_replace=True),  # its name is fixed
        )
    return metrics
