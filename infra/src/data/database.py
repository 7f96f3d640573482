"""PostgreSQL on RDS, which decides who has which seat."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
from pulumi_aws.rds.outputs import InstanceMasterUserSecret as MasterUserSecret

from src.data.database_memory import DatabaseMemory
from src.network.vpc import Network
from src.ports import POSTGRES_PORT
from src.settings import DataSettings

# Constants, because a change of any of them replaces the database.
DATABASE_NAME = "minitickets"
USERNAME = "minitickets"
ENGINE = "postgres"

MAJOR_VERSION = "18"  # RDS picks the minor one, and moves on within it


@dataclass(frozen=True, kw_only=True)
class Database:
    """The instance, and the secret in which RDS keeps its password (JSON with ``username`` and ``password``)."""

    instance: aws.rds.Instance
    password_secret_arn: pulumi.Output[str]


def create_database(
    name: str,
    *,
    network: Network,
    security_group: aws.ec2.SecurityGroup,
    memory: DatabaseMemory,
    sizes: DataSettings,
    deletion_protection: bool,
) -> Database:
    """The instance ``…-db``, in private subnets, born from the snapshot that ``memory`` says, or empty.

    Its end leaves the final snapshot that ``memory`` names. RDS makes and rotates the password.
    """
    subnets = aws.rds.SubnetGroup("db", name=f"{name}-db", subnet_ids=[subnet.id for subnet in network.private])
    parameters = aws.rds.ParameterGroup(
        "db",
        # The version is in the name: another family makes another group, which must not meet the old one's name.
        name=f"{name}-postgres{MAJOR_VERSION}",
        family=f"postgres{MAJOR_VERSION}",
        parameters=[{"name": "rds.force_ssl", "value": "1"}],
    )
    instance = aws.rds.Instance(
        "db",
        identifier=memory.identifier,
        engine=ENGINE,
        engine_version=MAJOR_VERSION,
        auto_minor_version_upgrade=True,
        instance_class=sizes.database_instance_class,
        allocated_storage=sizes.database_storage_gib,
        storage_type="gp3",
        storage_encrypted=True,
        multi_az=sizes.database_multi_az,
        db_name=DATABASE_NAME,
        username=USERNAME,
        manage_master_user_password=True,
        port=POSTGRES_PORT,
        db_subnet_group_name=subnets.name,
        parameter_group_name=parameters.name,
        vpc_security_group_ids=[security_group.id],
        publicly_accessible=False,
        backup_retention_period=sizes.database_backup_days,
        copy_tags_to_snapshot=True,
        deletion_protection=deletion_protection,
        snapshot_identifier=memory.life.born_from,
        skip_final_snapshot=False,
        final_snapshot_identifier=memory.life.final,
        # A change takes effect with the `up` that makes it, not in some later maintenance window.
        apply_immediately=True,
        opts=pulumi.ResourceOptions(
            depends_on=[memory.parameter],
            # Each would replace a living database, by deleting it first, since its name is fixed: the one that takes
            # its place would hold what the old one was born from.
            ignore_changes=["snapshotIdentifier", "availabilityZone", "kmsKeyId"],
        ),
    )
    return Database(instance=instance, password_secret_arn=instance.master_user_secrets.apply(_secret_arn))


def _secret_arn(secrets: Sequence[MasterUserSecret]) -> str:
    if not secrets or secrets[0].secret_arn is None:
        raise pulumi.RunError("RDS tells of no secret with the database's password, though it was asked to manage it")
    return secrets[0].secret_arn
