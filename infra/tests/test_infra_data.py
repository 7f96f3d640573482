"""The database and the cache."""

import itertools
import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

INSTANCE = "aws:rds/instance:Instance"
CACHE = "aws:elasticache/replicationGroup:ReplicationGroup"
PARAMETER = "aws:ssm/parameter:Parameter"


def test_the_database_is_private_encrypted_and_on_gp3(both_on: "Recording") -> None:
    database = both_on.one(INSTANCE, "db").inputs
    assert (database["engine"], database["engineVersion"]) == ("postgres", "18")
    assert database["storageEncrypted"] is True
    assert database["storageType"] == "gp3"
    assert database["publiclyAccessible"] is False
    assert database["vpcSecurityGroupIds"] == ["data-id"]
    assert database["autoMinorVersionUpgrade"] is True
    assert (database["dbName"], database["username"], database["port"]) == ("minitickets", "minitickets", 5432)


def test_the_database_forces_tls_by_its_parameter_group(both_on: "Recording") -> None:
    group = both_on.one("aws:rds/parameterGroup:ParameterGroup", "db").inputs
    assert group["family"] == "postgres18"
    assert {"name": "rds.force_ssl", "value": "1"} in group["parameters"]
    assert both_on.one(INSTANCE, "db").inputs["parameterGroupName"] == group["name"]


def test_a_violated_constraint_is_logged_without_the_row_that_violates_it(both_on: "Recording") -> None:
    group = both_on.one("aws:rds/parameterGroup:ParameterGroup", "db").inputs
    assert {"name": "log_error_verbosity", "value": "terse"} in group["parameters"]


def test_rds_exports_its_logs_into_groups_that_were_there_before_it_with_an_end(both_on: "Recording") -> None:
    database = both_on.one(INSTANCE, "db")
    assert database.inputs["enabledCloudwatchLogsExports"] == ["postgresql", "upgrade"]
    for log in database.inputs["enabledCloudwatchLogsExports"]:
        group = both_on.one("aws:cloudwatch/logGroup:LogGroup", f"db-{log}-logs")
        assert group.inputs == {"name": f"/aws/rds/instance/minitickets-dev-db/{log}", "retentionInDays": 30}
        assert group.key in database.depends_on


def test_the_certificate_of_the_database_is_of_the_authority_that_the_image_trusts(both_on: "Recording") -> None:
    assert both_on.one(INSTANCE, "db").inputs["caCertIdentifier"] == "rds-ca-rsa2048-g1"


def test_backups_and_maintenance_never_meet(both_on: "Recording") -> None:
    database, cache = both_on.one(INSTANCE, "db").inputs, both_on.one(CACHE, "redis").inputs
    windows = [
        database["backupWindow"],
        database["maintenanceWindow"].replace("sun:", ""),
        cache["maintenanceWindow"].replace("sun:", ""),
    ]
    ends = [tuple(window.split("-")) for window in windows]
    assert all(earlier[1] < later[0] for earlier, later in itertools.pairwise(ends))
    assert cache["snapshotWindow"] == database["backupWindow"]


def test_the_database_does_not_grow_beyond_what_the_next_wake_can_restore(both_on: "Recording") -> None:
    assert "maxAllocatedStorage" not in both_on.one(INSTANCE, "db").inputs


def test_rds_keeps_the_password_and_the_program_never_sees_it(both_on: "Recording") -> None:
    database = both_on.one(INSTANCE, "db").inputs
    assert database["manageMasterUserPassword"] is True
    assert "password" not in database


def test_a_stage_chooses_the_size_of_its_stores(record: "Record") -> None:
    recording = record(
        {
            "databaseInstanceClass": "db.m7g.large",
            "databaseStorageGib": "100",
            "databaseMultiAz": "true",
            "databaseBackupDays": "35",
            "deletionProtection": "false",
            "cacheNodeType": "cache.m7g.large",
            "cacheReplicas": "1",
        }
    )
    database = recording.one(INSTANCE, "db").inputs
    assert (database["instanceClass"], database["allocatedStorage"]) == ("db.m7g.large", 100)
    assert (database["multiAz"], database["backupRetentionPeriod"]) == (True, 35)
    assert database["deletionProtection"] is False
    cache = recording.one(CACHE, "redis").inputs
    assert (cache["nodeType"], cache["numCacheClusters"]) == ("cache.m7g.large", 2)
    assert (cache["automaticFailoverEnabled"], cache["multiAzEnabled"]) == (True, True)


def test_a_living_database_is_never_replaced_by_a_snapshot_a_zone_or_a_key(both_on: "Recording") -> None:
    assert set(both_on.one(INSTANCE, "db").ignore_changes) == {"snapshotIdentifier", "availabilityZone", "kmsKeyId"}


def test_a_life_is_written_down_before_its_database_is_touched(both_on: "Recording") -> None:
    assert f"{PARAMETER} database-life" in both_on.one(INSTANCE, "db").depends_on


def test_the_end_of_a_life_leaves_the_snapshot_that_was_written_down(both_on: "Recording") -> None:
    database = both_on.one(INSTANCE, "db").inputs
    life = json.loads(both_on.one(PARAMETER, "database-life").inputs["insecureValue"])
    assert database["skipFinalSnapshot"] is False
    assert database["finalSnapshotIdentifier"] == life["final"]
    assert life["final"].startswith("minitickets-dev-db-final-")
    assert (life["bornFrom"], life["rewoundAt"]) == (None, None)
    assert "snapshotIdentifier" not in database


def test_the_cache_is_private_encrypted_and_asks_for_its_token(both_on: "Recording") -> None:
    cache = both_on.one(CACHE, "redis")
    assert (cache.inputs["engine"], cache.inputs["port"]) == ("valkey", 6379)
    assert (cache.inputs["transitEncryptionEnabled"], cache.inputs["atRestEncryptionEnabled"]) == (True, True)
    assert cache.inputs["securityGroupIds"] == ["data-id"]
    assert "authToken" in cache.secrets


def test_cache_and_api_read_the_stored_token_not_the_one_that_a_run_generates(both_on: "Recording") -> None:
    version = "aws:secretsmanager/secretVersion:SecretVersion redis-token"
    assert both_on.resources[version].ignore_changes == ("secretString",)
    assert version in both_on.one(CACHE, "redis").depends_on
    assert version in both_on.one("aws:ecs/taskDefinition:TaskDefinition", "api").depends_on


def test_a_cache_token_has_only_characters_that_elasticache_takes(both_on: "Recording") -> None:
    questions = [args for token, args in both_on.lookups if token.endswith(":getRandomPassword")]
    assert len(questions) == 2
    for question in questions:
        assert question["excludePunctuation"] is True
        assert 16 <= question["passwordLength"] <= 128


VAULT, PLAN, SELECTION = "aws:backup/vault:Vault", "aws:backup/plan:Plan", "aws:backup/selection:Selection"


def test_a_stage_without_a_plan_has_the_vault_that_outlives_one(both_on: "Recording") -> None:
    assert both_on.of(VAULT).keys() == {"db"}
    assert not both_on.of(PLAN)
    assert not both_on.of(SELECTION)


def test_a_daily_backup_goes_into_the_vault_for_as_many_days_as_the_stage_says(record: "Record") -> None:
    recording = record({"backupPlanDays": "90"})
    (rule,) = recording.one(PLAN, "db").inputs["rules"]
    assert rule["targetVaultName"] == recording.one(VAULT, "db").inputs["name"] == "minitickets-dev-db"
    assert rule["lifecycle"] == {"deleteAfter": 90}
    assert "enableContinuousBackup" not in rule, "AWS Backup would take over the instance's own retention"
    selection = recording.one(SELECTION, "db")
    assert selection.inputs["planId"] == "db-id"
    assert selection.inputs["resources"] == ["arn:aws:rds:us-east-1:123456789012:minitickets-dev-db"]
    assert "aws:iam/rolePolicy:RolePolicy backup" in selection.depends_on


def test_a_backup_starts_outside_the_windows_of_the_database_and_the_hour_before_each(record: "Record") -> None:
    recording = record({"backupPlanDays": "35"})
    (rule,) = recording.one(PLAN, "db").inputs["rules"]
    schedule = re.fullmatch(r"cron\((\d+) (\d+) \* \* \? \*\)", rule["schedule"])
    assert schedule
    start = int(schedule[2]) * 60 + int(schedule[1])
    last = start + rule["startWindow"]
    assert last < 24 * 60
    database = recording.one(INSTANCE, "db").inputs
    for window in (database["backupWindow"], database["maintenanceWindow"].replace("sun:", "")):
        begins, ends = (int(time[:2]) * 60 + int(time[3:]) for time in window.split("-"))
        assert last < begins - 60 or start > ends
    assert rule["completionWindow"] >= rule["startWindow"] + 60, "AWS Backup refuses less"


def test_only_a_stage_that_may_lose_its_tickets_may_delete_a_vault_that_holds_backups(record: "Record") -> None:
    for forced in ("true", "false"):
        assert record({"forceDestroy": forced}).one(VAULT, "db").inputs["forceDestroy"] is (forced == "true")
