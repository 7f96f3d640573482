"""Alarms on the API. They come and go with compute: without it there is nothing to be wrong."""

import pulumi
import pulumi_aws as aws

from src.compute.load_balancer import LoadBalancer
from src.observability.alarm import Limit, Side, Silence, create_alarm
from src.observability.outbox_metrics import OutboxMetrics

# In five minutes. A deploy or a database's failover costs a few requests; more is not weather.
FAILED_REQUESTS = 5


def create_outbox_alarms(name: str, *, metrics: OutboxMetrics, topic: aws.sns.Topic) -> None:
    """Events that are in the database and do not reach their consumers."""
    watched = (
        ("outbox-parked", metrics.parked, 1, "A booking event can never be published as it is."),
        ("outbox-delayed", metrics.delayed, 3, "Booking events have not been published for a quarter of an hour."),
    )
    for thing, metric, periods, meaning in watched:
        create_alarm(
            name,
            thing=thing,
            meaning=meaning,
            limit=Limit(
                namespace=metrics.namespace, metric=metric, dimensions={}, statistic="Sum", value=0, periods=periods
            ),
            topic=topic,
        )


def create_door_alarms(name: str, *, load_balancer: LoadBalancer, topic: aws.sns.Topic) -> None:
    """Requests that fail, at the load balancer or behind it."""
    watched = (
        ("api-errors", "HTTPCode_Target_5XX_Count", "The API answers requests with 5xx."),
        ("load-balancer-errors", "HTTPCode_ELB_5XX_Count", "The load balancer gets no answer from the API."),
    )
    for thing, metric, meaning in watched:
        create_alarm(
            name,
            thing=thing,
            meaning=meaning,
            limit=Limit(
                namespace="AWS/ApplicationELB",
                metric=metric,
                dimensions={"LoadBalancer": load_balancer.balancer.arn_suffix},
                statistic="Sum",
                value=FAILED_REQUESTS,
            ),
            topic=topic,
        )


def create_task_alarm(
    name: str, *, load_balancer: LoadBalancer, service: aws.ecs.Service, topic: aws.sns.Topic
) -> None:
    """No task of ``service`` is ready. A load balancer without any task sends no number, so silence is bad too."""
    dimensions: dict[str, pulumi.Input[str]] = {
        "LoadBalancer": load_balancer.balancer.arn_suffix,
        "TargetGroup": load_balancer.target_group.arn_suffix,
    }
    create_alarm(
        name,
        thing="api-tasks",
        meaning="No task of the API is ready: nobody can book.",
        limit=Limit(
            namespace="AWS/ApplicationELB",
            metric="HealthyHostCount",
            dimensions=dimensions,
            statistic="Maximum",
            value=1,
            side=Side.BELOW,
            silence=Silence.BAD,
        ),
        topic=topic,
        after=[service],
    )
