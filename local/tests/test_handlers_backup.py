"""Backups: vaults, plans and what they select, refused as AWS refuses."""

import json
import secrets
from typing import Any

import pytest

from local.handlers.handler import HandlerError
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

VAULT, PLAN, SELECTION = "backup/vault:Vault", "backup/plan:Plan", "backup/selection:Selection"
DATABASE = "arn:aws:rds:us-east-1:000000000000:db:minitickets-dev-db"


@pytest.fixture
def name() -> str:
    return f"t-{secrets.token_hex(4)}"


def _role(stage: HandledStage, name: str, *, service: str = "backup.amazonaws.com") -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    return str(stage.create("iam/role:Role", "r", name=name, assumeRolePolicy=trust)["arn"])


def _rules(vault: str, *, days: float) -> list[dict[str, Any]]:
    return [
        {
            "ruleName": "daily",
            "targetVaultName": vault,
            "schedule": "cron(0 8 * * ? *)",
            "startWindow": 60.0,
            "completionWindow": 480.0,
            "lifecycle": {"deleteAfter": days},
        }
    ]


def test_a_plan_keeps_its_schedule_and_days_and_changes_in_place(stage: HandledStage, name: str) -> None:
    vault = stage.create(VAULT, "v", name=name)
    plan = stage.create(PLAN, "p", name=name, rules=_rules(name, days=35.0), tagsAll={"Stage": "dev", "Old": "x"})
    backup, (found,) = stage.aws("backup"), _plans(stage, name)

    def live() -> dict[str, Any]:
        (rule,) = backup.get_backup_plan(BackupPlanId=found["BackupPlanId"])["BackupPlan"]["Rules"]
        return dict(rule)

    assert vault["arn"].endswith(f":backup-vault:{name}")
    assert live() == {
        "RuleName": "daily",
        "TargetBackupVaultName": name,
        "ScheduleExpression": "cron(0 8 * * ? *)",
        "StartWindowMinutes": 60,
        "CompletionWindowMinutes": 480,
        "Lifecycle": {"DeleteAfterDays": 35},
    }
    changed = stage.update(PLAN, "p", name=name, rules=_rules(name, days=90.0), tagsAll={"Stage": "dev"})
    assert live()["Lifecycle"] == {"DeleteAfterDays": 90}
    assert changed["version"] != plan["version"]
    assert backup.list_tags(ResourceArn=plan["arn"])["Tags"] == {"Stage": "dev"}


def test_a_selection_names_what_its_plan_protects_and_holds_the_plan(stage: HandledStage, name: str) -> None:
    stage.create(VAULT, "v", name=name)
    stage.create(PLAN, "p", name=name, rules=_rules(name, days=35.0))
    (plan,) = _plans(stage, name)
    role = _role(stage, name)
    stage.create(SELECTION, "s", name=name, planId=plan["BackupPlanId"], iamRoleArn=role, resources=[DATABASE])

    backup = stage.aws("backup")
    (listed,) = backup.list_backup_selections(BackupPlanId=plan["BackupPlanId"])["BackupSelectionsList"]
    live = backup.get_backup_selection(BackupPlanId=plan["BackupPlanId"], SelectionId=listed["SelectionId"])
    assert live["BackupSelection"]["Resources"] == [DATABASE]
    assert live["BackupSelection"]["IamRoleArn"] == role
    with pytest.raises(HandlerError, match="selections must be deleted prior to backup plan deletion"):
        stage.delete(PLAN, "p")
    stage.delete(SELECTION, "s")
    assert backup.list_backup_selections(BackupPlanId=plan["BackupPlanId"])["BackupSelectionsList"] == []
    stage.delete(PLAN, "p")
    assert _plans(stage, name) == []


def test_a_selection_of_a_plan_that_is_not_there_is_refused(stage: HandledStage, name: str) -> None:
    with pytest.raises(HandlerError, match="ResourceNotFoundException"):
        stage.create(
            SELECTION, "s", name=name, planId="no-such-plan", iamRoleArn=_role(stage, name), resources=[DATABASE]
        )


def test_a_selection_whose_role_backup_may_not_assume_is_refused(stage: HandledStage, name: str) -> None:
    stage.create(PLAN, "p", name=name, rules=_rules(name, days=35.0))
    (plan,) = _plans(stage, name)
    role = _role(stage, name, service="lambda.amazonaws.com")
    with pytest.raises(HandlerError, match=f"IAM Role {role} cannot be assumed by AWS Backup"):
        stage.create(SELECTION, "s", name=name, planId=plan["BackupPlanId"], iamRoleArn=role, resources=[DATABASE])


def test_a_vault_is_encrypted_adopted_by_its_name_and_refused_twice(stage: HandledStage, name: str) -> None:
    made = stage.create(VAULT, "v", name=name)

    assert stage.aws("backup").describe_backup_vault(BackupVaultName=name)["EncryptionKeyArn"] == made["kmsKeyArn"]
    assert made["kmsKeyArn"].endswith(":alias/aws/backup")
    with pytest.raises(HandlerError, match="AlreadyExistsException"):
        stage.create(VAULT, "another", name=name)
    stage.forget(VAULT, "v")
    assert stage.adopt(VAULT, "v", name=name) is not None
    assert stage.adopt(VAULT, "another", name=f"{name}-2") is None


def test_a_vault_that_holds_backups_does_not_go_unless_it_is_forced(stage: HandledStage, name: str) -> None:
    stage.create(VAULT, "v", name=name)
    stage.aws("backup").start_backup_job(BackupVaultName=name, ResourceArn=DATABASE, IamRoleArn=_role(stage, name))

    with pytest.raises(HandlerError, match="cannot be deleted because it contains recovery points"):
        stage.delete(VAULT, "v")
    stage.update(VAULT, "v", name=name, forceDestroy=True)
    stage.delete(VAULT, "v")
    vaults = stage.aws("backup").list_backup_vaults()["BackupVaultList"]
    assert name not in [vault["BackupVaultName"] for vault in vaults]


def _plans(stage: HandledStage, name: str) -> list[dict[str, Any]]:
    plans = stage.aws("backup").list_backup_plans()["BackupPlansList"]
    return [plan for plan in plans if plan["BackupPlanName"] == name]
