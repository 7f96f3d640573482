"""PostgreSQL on RDS, which decides who has which seat."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
from pulumi_aws.rds.outputs import InstanceMasterUserSecret as MasterUserSecret

from src.data.database_memory import DatabaseMemory, remember_database_up
from src.network.vpc import Network
from src.ports import POSTGRES_PORT
from src.settings import DataSettings

# Constants, because a change of any of them replaces the database.
DATABASE_NAME = "minitickets"
USERNAME = "minitickets"
ENGINE = "postgres"

MAJOR_VERSION = "18"  # RDS picks the minor one, and moves on within it
CERTIFICATE_AUTHORITY = "rds-ca-rsa2048-g1"  # its root is in the bundle that the API's image verifies against

# UTC, one after the other: the night in the venues' Americas is later, and a sale rarely opens on a Sunday morning.
BACKUP_WINDOW = "03:00-04:00"
MAINTENANCE_WINDOW = "sun:04:30-sun:05:30"

LOGS = ("postgresql", "upgrade")

PARAMETERS = {
    "rds.force_ssl": "1",
    # Without it a violated constraint is logged with the row's values: addresses of customers.
    "log_error_verbosity": "terse",
}


@dataclass(frozen=True, kw_only=True)
class Database:
    """The instance, and the secret in which RDS keeps its password (JSON with ``username`` and ``password``).

    What writes into the database depends on ``remembered_up`` (data/database_memory.py says why).
    """

    instance: aws.rds.Instance
    remembered_up: aws.ssm.Parameter
    password_secret_arn: pulumi.Output[str]


def create_database_logs(name: str, *, retention_days: int) -> list[aws.cloudwatch.LogGroup]:
    """The log groups that RDS exports to, before it makes its own without an end. They outlive the database: what it
    said before it went is evidence."""
    return [
        aws.cloudwatch.LogGroup(
            f"db-{log}-logs", name=f"/aws/rds/instance/{name}-db/{log}", retention_in_days=retention_days
        )
        for log in LOGS
    ]


def create_database(
    name: str,
    *,
    network: Network,
    security_group: aws.ec2.SecurityGroup,
    memory: DatabaseMemory,
    logs: Sequence[aws.cloudwatch.LogGroup],
    sizes: DataSettings,
    deletion_protection: bool,
) -> Database:
    """The instance ``…-db``, in private subnets, born from the snapshot that ``memory`` says, or empty.

    Its end leaves the final snapshot that ``memory`` names. RDS makes and rotates the password. Its storage does not
    grow by itself: a snapshot that is larger than ``database_storage_gib`` could not be restored by the next wake, so
    an alarm asks a person to raise the setting.
    """
    subnets = aws.rds.SubnetGroup("db", name=f"{name}-db", subnet_ids=[subnet.id for subnet in network.private])
    parameters = aws.rds.ParameterGroup(
        "db",
        # The version is in the name: another family makes another group, which must not meet the old one's name.
        name=f"{name}-postgres{MAJOR_VERSION}",
        family=f"postgres{MAJOR_VERSION}",
        parameters=[{"name": parameter, "value": value} for parameter, value in PARAMETERS.items()],
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
        ca_cert_identifier=CERTIFICATE_AUTHORITY,
        enabled_cloudwatch_logs_exports=list(LOGS),
        # Off: it is paid beyond a week, and the alarms look at CPU, storage and connections.
        performance_insights_enabled=False,
        backup_retention_period=sizes.database_backup_days,
        backup_window=BACKUP_WINDOW,
        maintenance_window=MAINTENANCE_WINDOW,
        copy_tags_to_snapshot=True,
        deletion_protection=deletion_protection,
        snapshot_identifier=memory.life.born_from,
        skip_final_snapshot=False,
        final_snapshot_identifier=memory.life.final,
        # A change takes effect with the `up` that makes it, not in some later maintenance window.
        apply_immediately=True,
        opts=pulumi.ResourceOptions(
            depends_on=[memory.parameter, *logs],
            # Each would replace a living database, by deleting it first, since its name is fixed: the one that takes
            # its place would hold what the old one was born from.
            ignore_changes=["snapshotIdentifier", "availabilityZone", "kmsKeyId"],
        ),
    )
    return Database(
        instance=instance,
        remembered_up=remember_database_up(memory, instance=instance),
        password_secret_arn=instance.master_user_secrets.apply(_secret_arn),
    )


def _secret_arn(secrets: Sequence[MasterUserSecret]) -> str:
    if not secrets or secrets[0].secret_arn is None:
        raise pulumi.RunError("RDS tells of no secret with the database's password, though it was asked to manage it")
    return secrets[0].secret_arn
