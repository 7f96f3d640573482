"""Valkey on ElastiCache: rate limits and cached lists, all of which may be lost."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.account import Account
from src.network.vpc import Network
from src.ports import REDIS_PORT
from src.secret_policy import create_secret_policy
from src.settings import DataSettings

ENGINE = "valkey"
ENGINE_VERSION = "8.0"

# UTC, after the database's (data/database.py). One day of snapshots is free, and warms a replaced node.
SNAPSHOT_WINDOW = "03:00-04:00"
SNAPSHOT_DAYS = 1
MAINTENANCE_WINDOW = "sun:06:00-sun:07:00"


@dataclass(frozen=True, kw_only=True)
class Cache:
    """The replication group, and the stored token that clients authenticate with (the secret's whole string)."""

    group: aws.elasticache.ReplicationGroup
    token: aws.secretsmanager.SecretVersion


def create_cache(
    name: str,
    *,
    account: Account,
    network: Network,
    security_group: aws.ec2.SecurityGroup,
    sizes: DataSettings,
    secret_administrators: Sequence[str],
) -> Cache:
    """The replication group ``…-redis`` in private subnets, with TLS and a token; replicas take over if it fails."""
    secret, token = _create_token(name)
    create_secret_policy(
        "redis-token",
        secret=secret,
        reader=account.role_arn(f"{name}-api-execution"),
        administrators=secret_administrators,
    )
    subnets = aws.elasticache.SubnetGroup(
        "redis", name=f"{name}-redis", subnet_ids=[subnet.id for subnet in network.private]
    )
    group = aws.elasticache.ReplicationGroup(
        "redis",
        replication_group_id=f"{name}-redis",
        description="Rate limits and caches: all of it may be lost",
        engine=ENGINE,
        engine_version=ENGINE_VERSION,
        node_type=sizes.cache_node_type,
        num_cache_clusters=1 + sizes.cache_replicas,
        automatic_failover_enabled=sizes.cache_replicas > 0,
        multi_az_enabled=sizes.cache_replicas > 0,
        port=REDIS_PORT,
        subnet_group_name=subnets.name,
        security_group_ids=[security_group.id],
        at_rest_encryption_enabled=True,
        transit_encryption_enabled=True,
        auto_minor_version_upgrade=True,
        maintenance_window=MAINTENANCE_WINDOW,
        snapshot_retention_limit=SNAPSHOT_DAYS,
        snapshot_window=SNAPSHOT_WINDOW,
        # What is stored, not what this run generated: the two differ in every run but the first.
        auth_token=token.secret_string,
        apply_immediately=True,
    )
    return Cache(group=group, token=token)


def _create_token(name: str) -> tuple[aws.secretsmanager.Secret, aws.secretsmanager.SecretVersion]:
    secret = aws.secretsmanager.Secret(
        "redis-token",
        name=f"{name}-redis-token",
        description="Token that clients of Valkey authenticate with",
        # It protects nothing once its server is gone, and a secret that waits for its deletion would hold its name
        # against the next wake.
        recovery_window_in_days=0,
    )
    # Letters and digits only: ElastiCache takes 16 to 128 printable characters without @ " and /.
    generated = aws.secretsmanager.get_random_password_output(password_length=64, exclude_punctuation=True)
    version = aws.secretsmanager.SecretVersion(
        "redis-token",
        secret_id=secret.id,
        secret_string=pulumi.Output.secret(generated.random_password),
        opts=pulumi.ResourceOptions(ignore_changes=["secretString"]),  # made once; each run generates another
    )
    return secret, version
