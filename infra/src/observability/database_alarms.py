"""Alarms on the database and its backups. They come and go with data."""

import pulumi_aws as aws

from src.observability.alarm import Limit, Side, create_alarm

_GIB = 1024**3
FREE_STORAGE_SHARE = 0.1  # of what the stage bought; a full disk stops every booking
CPU_PERCENT = 90


def create_database_alarms(
    name: str, *, instance: aws.rds.Instance, storage_gib: int, connections: int, topic: aws.sns.Topic
) -> None:
    """Storage (``storage_gib`` was bought) that runs out, CPU that stays high, more than ``connections``."""

    def limit(metric: str, statistic: str, value: float, *, side: Side = Side.ABOVE, periods: int = 1) -> Limit:
        return Limit(
            namespace="AWS/RDS",
            metric=metric,
            dimensions={"DBInstanceIdentifier": instance.identifier},
            statistic=statistic,
            value=value,
            side=side,
            periods=periods,
        )

    free_bytes = storage_gib * _GIB * FREE_STORAGE_SHARE
    watched = (
        (
            "database-storage",
            "A tenth of the database's storage is left.",
            limit("FreeStorageSpace", "Minimum", free_bytes, side=Side.BELOW),
        ),
        (
            "database-cpu",
            "The database has been busy for a quarter of an hour.",
            limit("CPUUtilization", "Average", CPU_PERCENT, periods=3),
        ),
        (
            "database-connections",
            "The database is near the end of its connections.",
            limit("DatabaseConnections", "Maximum", connections),
        ),
    )
    for thing, meaning, bad in watched:
        create_alarm(name, thing=thing, meaning=meaning, limit=bad, topic=topic)


def create_backup_alarm(name: str, *, vault: aws.backup.Vault, topic: aws.sns.Topic) -> None:
    """A backup of AWS Backup that failed. With a plan only: no plan, no number."""
    create_alarm(
        name,
        thing="backup-failed",
        meaning="A daily backup of the database failed.",
        limit=Limit(
            namespace="AWS/Backup",
            metric="NumberOfBackupJobsFailed",
            dimensions={"BackupVaultName": vault.name},
            statistic="Sum",
            value=0,
        ),
        topic=topic,
    )
