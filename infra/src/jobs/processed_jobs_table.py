"""What the worker has done: one item a business action, so that a message seen twice sends one mail."""

import pulumi
import pulumi_aws as aws

from src.settings import KeepingSettings


def create_processed_jobs_table(name: str, *, keeping: KeepingSettings) -> aws.dynamodb.Table:
    """The table ``…-processed-jobs``: key ``jobKey``, items expire at ``expiresAt`` (whole seconds since 1970).

    TTL only tidies up: an expired item may be readable for days, and still counts as done.
    """
    return aws.dynamodb.Table(
        "processed-jobs",
        name=f"{name}-processed-jobs",
        billing_mode="PAY_PER_REQUEST",
        hash_key="jobKey",
        attributes=[{"name": "jobKey", "type": "S"}],
        ttl={"attribute_name": "expiresAt", "enabled": True},
        server_side_encryption={"enabled": True},
        point_in_time_recovery={"enabled": keeping.point_in_time_recovery},
        deletion_protection_enabled=keeping.deletion_protection,
        opts=pulumi.ResourceOptions(protect=keeping.deletion_protection),
    )
