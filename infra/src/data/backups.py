"""Daily backups of the database that are not the instance's own: AWS Backup takes them into a vault of the stage.

RDS deletes an instance's automated backups with the instance, and whoever may modify the instance may switch them off.
What lies in the vault ends by its age only. (A stage's `RESTORE_FROM` takes one of them: docs/runbook.md, Restoring.)
"""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.account import Account
from src.policies import allow, trust
from src.roles import ServiceRole, create_role
from src.settings import KeepingSettings

# Of RDS, which takes no backup of ours in its own windows or in the hour before them (data/database.py). UTC.
SCHEDULE = "cron(0 8 * * ? *)"
START_MINUTES = 60  # the least that AWS Backup takes
COMPLETION_MINUTES = 480  # the first one copies everything


@dataclass(frozen=True, kw_only=True)
class BackupVault:
    """Where backups lie, and the role that takes them and ends them."""

    vault: aws.backup.Vault
    role: ServiceRole


def create_backup_vault(name: str, *, account: Account, keeping: KeepingSettings) -> BackupVault:
    """The vault ``…-db`` and its role ``…-backup``. Both are free, outlive every flip, and are there without a plan.

    AWS Backup ends a backup under the role that it was taken with: without it they would lie there for ever. The vault
    has AWS's key, for a snapshot keeps the key of its database, whatever the vault's is. AWS deletes no vault that
    holds something, but with ``force_destroy`` the provider empties it first.
    """
    database = f"arn:aws:rds:{account.region}:{account.id}:db:{name}-db"
    # Named after the job that made it, so no pattern tells ours from those of the account's other databases.
    snapshots = f"arn:aws:rds:{account.region}:{account.id}:snapshot:awsbackup:*"
    vault = aws.backup.Vault(
        "db",
        name=f"{name}-db",
        force_destroy=keeping.force_destroy,
        opts=pulumi.ResourceOptions(protect=keeping.deletion_protection),
    )
    role = create_role(
        "backup",
        name=f"{name}-backup",
        description="AWS Backup: takes backups of the database, and ends them by their age",
        trust_policy=trust("backup.amazonaws.com", account_id=account.id),
        statements=[
            allow(
                "TakeBackups",
                [
                    "rds:DescribeDBInstances",
                    "rds:ListTagsForResource",
                    "rds:CreateDBSnapshot",
                    "rds:AddTagsToResource",
                    "rds:DescribeDBSnapshots",
                ],
                [database, snapshots],
            ),
            allow("EndBackups", ["rds:DeleteDBSnapshot"], [snapshots]),
            allow("FillVault", ["backup:DescribeBackupVault", "backup:CopyIntoBackupVault"], [vault.arn]),
        ],
    )
    return BackupVault(vault=vault, role=role)


def create_backup_plan(name: str, *, into: BackupVault, instance: aws.rds.Instance, days: int) -> aws.backup.Plan:
    """Take a snapshot of ``instance`` each day and keep it for ``days``.

    No continuous backups: for these AWS Backup would take over the instance's own retention and window. The instance is
    named by its ARN, which counts even where the account has not opted in to backups of RDS.
    """
    plan = aws.backup.Plan(
        "db",
        name=f"{name}-db",
        rules=[
            {
                "rule_name": "daily",
                "target_vault_name": into.vault.name,
                "schedule": SCHEDULE,
                "start_window": START_MINUTES,
                "completion_window": COMPLETION_MINUTES,
                "lifecycle": {"delete_after": days},
            }
        ],
    )
    aws.backup.Selection(
        "db",
        name=f"{name}-db",
        plan_id=plan.id,
        iam_role_arn=into.role.role.arn,
        resources=[instance.arn],
        opts=pulumi.ResourceOptions(depends_on=[into.role.policy]),
    )
    return plan
