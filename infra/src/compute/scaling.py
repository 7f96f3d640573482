"""More tasks when the API is busy, fewer when it is not."""

import pulumi
import pulumi_aws as aws

from src.compute.load_balancer import LoadBalancer

# Of all tasks' CPU, on average. Hashing passwords is what costs CPU; above this a burst of logins would queue.
CPU_TARGET_PERCENT = 60
# Per task and minute. An estimate on the careful side (50 a second, on a quarter of a core), to be replaced by what is
# measured on Fargate: a sale that opens must be met before CPU, which is averaged over a minute, shows it.
REQUESTS_TARGET_PER_MINUTE = 3000
# Out at once; in slowly, because the quiet after the first rush is often followed by another.
SCALE_OUT_COOLDOWN_SECONDS = 60
SCALE_IN_COOLDOWN_SECONDS = 300


def create_api_scaling(
    name: str,
    *,
    cluster: aws.ecs.Cluster,
    service: aws.ecs.Service,
    load_balancer: LoadBalancer,
    min_tasks: int,
    max_tasks: int,
) -> None:
    """Keep the service between ``min_tasks`` and ``max_tasks``, by CPU and by requests; whichever wants more wins.

    Application Auto Scaling acts under its service-linked role, which AWS makes with the first target.
    """
    target = aws.appautoscaling.Target(
        "api",
        service_namespace="ecs",
        scalable_dimension="ecs:service:DesiredCount",
        resource_id=pulumi.Output.concat("service/", cluster.name, "/", service.name),
        min_capacity=min_tasks,
        max_capacity=max_tasks,
    )
    _follow(
        name,
        thing="cpu",
        target=target,
        target_value=CPU_TARGET_PERCENT,
        metric={"predefined_metric_type": "ECSServiceAverageCPUUtilization"},
    )
    _follow(
        name,
        thing="requests",
        target=target,
        target_value=REQUESTS_TARGET_PER_MINUTE,
        metric={
            "predefined_metric_type": "ALBRequestCountPerTarget",
            "resource_label": pulumi.Output.concat(
                load_balancer.balancer.arn_suffix, "/", load_balancer.target_group.arn_suffix
            ),
        },
    )


def _follow(
    name: str,
    *,
    thing: str,
    target: aws.appautoscaling.Target,
    target_value: float,
    metric: aws.appautoscaling.PolicyTargetTrackingScalingPolicyConfigurationPredefinedMetricSpecificationArgsDict,
) -> None:
    aws.appautoscaling.Policy(
        f"api-{thing}",
        name=f"{name}-api-{thing}",
        policy_type="TargetTrackingScaling",
        service_namespace=target.service_namespace,
        scalable_dimension=target.scalable_dimension,
        resource_id=target.resource_id,
        target_tracking_scaling_policy_configuration={
            "target_value": target_value,
            "predefined_metric_specification": metric,
            "scale_out_cooldown": SCALE_OUT_COOLDOWN_SECONDS,
            "scale_in_cooldown": SCALE_IN_COOLDOWN_SECONDS,
        },
    )
