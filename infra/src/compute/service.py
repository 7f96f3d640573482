"""The service that keeps the API's tasks running behind the load balancer."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from src.compute.load_balancer import LoadBalancer
from src.compute.task import CONTAINER
from src.network.vpc import Network
from src.ports import API_PORT

# Migrations come before the first answer to a health check.
HEALTH_CHECK_GRACE_SECONDS = 180


def create_cluster(name: str) -> aws.ecs.Cluster:
    """The cluster ``minitickets-<stage>``; it costs nothing but what runs in it."""
    return aws.ecs.Cluster("main", name=name, settings=[{"name": "containerInsights", "value": "disabled"}])


def create_api_service(
    name: str,
    *,
    cluster: aws.ecs.Cluster,
    task: aws.ecs.TaskDefinition,
    load_balancer: LoadBalancer,
    network: Network,
    security_group: aws.ec2.SecurityGroup,
    in_private_subnets: bool,
    min_tasks: int,
    max_tasks: int,
    after: Sequence[pulumi.Resource],
) -> aws.ecs.Service:
    """The service ``…-api``: new tasks come up healthy before old ones go, and a deploy that fails is rolled back.

    In public subnets a task needs a public address to pull its image; its security group lets only the load balancer
    in. With ``max_tasks`` above ``min_tasks`` the number is compute/scaling.py's business once the service is there.
    ``after`` is what must be there first: the memory of the database that it writes into, the roles' policies, the
    routes out, the consumers of the events that the new API may publish.
    """
    subnets = network.private if in_private_subnets else network.public
    return aws.ecs.Service(
        "api",
        name=f"{name}-api",
        cluster=cluster.arn,
        task_definition=task.arn,
        desired_count=min_tasks,
        launch_type="FARGATE",
        network_configuration={
            "subnets": [subnet.id for subnet in subnets],
            "security_groups": [security_group.id],
            "assign_public_ip": not in_private_subnets,
        },
        load_balancers=[
            {
                "target_group_arn": load_balancer.target_group.arn,
                "container_name": CONTAINER,
                "container_port": API_PORT,
            }
        ],
        health_check_grace_period_seconds=HEALTH_CHECK_GRACE_SECONDS,
        deployment_circuit_breaker={"enable": True, "rollback": True},
        deployment_minimum_healthy_percent=100,
        deployment_maximum_percent=200,
        propagate_tags="SERVICE",
        wait_for_steady_state=True,  # an `up` that ends well means that the new tasks answer
        enable_execute_command=False,  # nobody gets a shell beside the database's password
        opts=pulumi.ResourceOptions(
            # ECS refuses a target group that no listener uses yet.
            depends_on=[*load_balancer.doors, *after],
            # A deploy in the middle of a sale must not take back the tasks that were added for it.
            ignore_changes=["desiredCount"] if max_tasks > min_tasks else [],
        ),
    )
