"""The API: a service of tasks behind a load balancer, and all that only they need."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.account import Account
from src.compute.alias_record import create_alias_record
from src.compute.iam import create_execution_role, create_task_role
from src.compute.load_balancer import LoadBalancer, create_load_balancer
from src.compute.scaling import create_api_scaling
from src.compute.service import create_api_service, create_cluster
from src.compute.task import api_environment, create_task_definition
from src.data.cache import Cache
from src.data.database import Database
from src.network.nat_gateways import create_nat_gateways
from src.network.security_groups import SecurityGroups
from src.network.vpc import Network
from src.settings import ApiSettings, SiteSettings
from src.tickets.storage import TicketStorage


@dataclass(frozen=True, kw_only=True)
class Api:
    """Where the API answers and runs. ``running`` is None as long as the stage has no image."""

    load_balancer: LoadBalancer
    cluster: aws.ecs.Cluster
    running: "RunningApi | None"


@dataclass(frozen=True, kw_only=True)
class RunningApi:
    """What runs, and what keeps it running."""

    task: aws.ecs.TaskDefinition
    service: aws.ecs.Service


def create_api(
    name: str,
    *,
    stage: str,
    account: Account,
    network: Network,
    security_groups: SecurityGroups,
    repository: aws.ecr.Repository,
    logs: aws.cloudwatch.LogGroup,
    topic: aws.sns.Topic,
    storage: TicketStorage,
    database: Database,
    cache: Cache,
    sessions_void_before: str | None,
    site: SiteSettings,
    size: ApiSettings,
    consumers: Sequence[pulumi.Resource],
) -> Api:
    """Roles, load balancer, cluster, and with an image the task and its service.

    ``consumers`` are deployed before the service, so that no event of a new type meets an old consumer.
    """
    task_role = create_task_role(name, account=account, topic_arn=topic.arn, storage=storage)
    execution_role = create_execution_role(
        name,
        account=account,
        repository=repository,
        logs=logs,
        injected_secret_arns=[database.password_secret_arn, cache.token.secret_arn],
    )
    routes_out = create_nat_gateways(name, network=network, count=site.nat_gateways)
    load_balancer = create_load_balancer(
        network=network, security_group=security_groups.load_balancer, certificate_arn=site.certificate_arn
    )
    if site.public_url and site.hosted_zone_id:
        create_alias_record(public_url=site.public_url, zone_id=site.hosted_zone_id, balancer=load_balancer.balancer)
    cluster = create_cluster(name)
    if size.image is None:
        pulumi.log.warn(f"No image is set, so no API runs: `make push STAGE={stage}` builds, pushes and sets one")
        return Api(load_balancer=load_balancer, cluster=cluster, running=None)
    task = create_task_definition(
        name,
        image=size.image,
        cpu=size.api_cpu,
        memory_mib=size.api_memory_mib,
        region=account.region,
        task_role=task_role,
        execution_role=execution_role,
        logs=logs,
        environment=api_environment(
            stage=stage,
            region=account.region,
            topic_arn=topic.arn,
            storage=storage,
            database=database,
            cache=cache,
            public_url=site.public_url,
            sessions_void_before=sessions_void_before,
        ),
        database=database,
        cache=cache,
    )
    service = create_api_service(
        name,
        cluster=cluster,
        task=task,
        load_balancer=load_balancer,
        network=network,
        security_group=security_groups.api,
        in_private_subnets=site.nat_gateways > 0,
        min_tasks=size.api_min_tasks,
        max_tasks=size.api_max_tasks,
        after=[database.remembered_up, task_role.policy, execution_role.policy, *routes_out, *consumers],
    )
    if size.api_max_tasks > size.api_min_tasks:
        create_api_scaling(
            name,
            cluster=cluster,
            service=service,
            load_balancer=load_balancer,
            min_tasks=size.api_min_tasks,
            max_tasks=size.api_max_tasks,
        )
    return Api(load_balancer=load_balancer, cluster=cluster, running=RunningApi(task=task, service=service))
