"""Tables, buckets, secrets and parameters: settings take effect, refusals are AWS's, data is not lost by accident."""

import json
import secrets
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.handlers.handler import HandlerError
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

TABLE, BUCKET = "dynamodb/table:Table", "s3/bucket:Bucket"
SECRET, VERSION = "secretsmanager/secret:Secret", "secretsmanager/secretVersion:SecretVersion"
PARAMETER, LOG_GROUP = "ssm/parameter:Parameter", "cloudwatch/logGroup:LogGroup"


@pytest.fixture
def name() -> str:
    return f"t-{secrets.token_hex(4)}"


def _tickets_table(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "hashKey": "userId",
        "rangeKey": "ticketId",
        "billingMode": "PAY_PER_REQUEST",
        "attributes": [
            {"name": attribute, "type": "S"} for attribute in ("userId", "ticketId", "eventDate", "eventDateKey")
        ],
        "globalSecondaryIndexes": [
            {"name": "by-event-date", "hashKey": "eventDate", "rangeKey": "eventDateKey", "projectionType": "ALL"}
        ],
        "serverSideEncryption": {"enabled": True},
    }


def test_a_table_has_its_keys_index_expiry_backups_and_encryption(stage: HandledStage, name: str) -> None:
    inputs = _tickets_table(name) | {
        "ttl": {"attributeName": "expiresAt", "enabled": True},
        "pointInTimeRecovery": {"enabled": True},
        "tags": {"stage": "dev"},
    }
    table = stage.create(TABLE, "t", **inputs)

    dynamodb = stage.aws("dynamodb")
    live = dynamodb.describe_table(TableName=name)["Table"]
    assert [key["AttributeName"] for key in live["KeySchema"]] == ["userId", "ticketId"]
    assert live["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert live["SSEDescription"]["Status"] == "ENABLED"
    assert live["TableArn"] == table["arn"]
    (index,) = live["GlobalSecondaryIndexes"]
    assert (index["IndexName"], index["Projection"]["ProjectionType"]) == ("by-event-date", "ALL")
    expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert (expiry["AttributeName"], expiry["TimeToLiveStatus"]) == ("expiresAt", "ENABLED")
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    tags = dynamodb.list_tags_of_resource(ResourceArn=table["arn"])["Tags"]
    assert {"Key": "stage", "Value": "dev"} in tags


def test_an_update_of_a_table_keeps_its_items_and_takes_away_what_is_gone(stage: HandledStage, name: str) -> None:
    inputs = _tickets_table(name) | {
        "ttl": {"attributeName": "expiresAt", "enabled": True},
        "pointInTimeRecovery": {"enabled": True},
    }
    stage.create(TABLE, "t", **inputs)
    item = {"userId": {"S": "u"}, "ticketId": {"S": "b:A1"}}
    dynamodb = stage.aws("dynamodb")
    dynamodb.put_item(TableName=name, Item=item)

    stage.update(TABLE, "t", **{**_tickets_table(name), "globalSecondaryIndexes": []})

    live = dynamodb.describe_table(TableName=name)["Table"]
    assert live.get("GlobalSecondaryIndexes", []) == []
    expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert expiry["TimeToLiveStatus"] == "DISABLED"
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "DISABLED"
    assert dynamodb.get_item(TableName=name, Key=item)["Item"] == item


def test_another_expiry_attribute_is_refused_as_aws_refuses_it(stage: HandledStage, name: str) -> None:
    inputs = _tickets_table(name) | {"ttl": {"attributeName": "expiresAt", "enabled": True}}
    stage.create(TABLE, "t", **inputs)

    with pytest.raises(HandlerError, match="active on a different AttributeName"):
        stage.update(TABLE, "t", **inputs | {"ttl": {"attributeName": "endsAt", "enabled": True}})


def test_a_table_name_in_use_is_refused(stage: HandledStage, name: str) -> None:
    stage.create(TABLE, "t", **_tickets_table(name))

    with pytest.raises(HandlerError, match="ResourceInUseException"):
        stage.create(TABLE, "again", **_tickets_table(name))


def test_a_protected_table_refuses_to_go_until_its_protection_has(stage: HandledStage, name: str) -> None:
    stage.create(TABLE, "t", **_tickets_table(name), deletionProtectionEnabled=True)

    with pytest.raises(HandlerError, match="protected against deletion"):
        stage.delete(TABLE, "t")

    stage.update(TABLE, "t", **_tickets_table(name))
    stage.delete(TABLE, "t")
    assert name not in stage.aws("dynamodb").list_tables()["TableNames"]


def test_a_bucket_has_the_settings_of_the_program_and_loses_them_with_their_resources(
    stage: HandledStage, name: str
) -> None:
    stage.create(BUCKET, "b", bucket=name, tags={"stage": "dev"})
    stage.create(
        "s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        "b",
        bucket=name,
        blockPublicAcls=True,
        blockPublicPolicy=True,
        ignorePublicAcls=True,
        restrictPublicBuckets=True,
    )
    stage.create(
        "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        "b",
        bucket=name,
        rules=[{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}],
    )
    ownership = {"objectOwnership": "BucketOwnerEnforced"}
    stage.create("s3/bucketOwnershipControls:BucketOwnershipControls", "b", bucket=name, rule=ownership)
    stage.create(
        "s3/bucketCorsConfiguration:BucketCorsConfiguration",
        "b",
        bucket=name,
        corsRules=[{"allowedMethods": ["POST"], "allowedOrigins": ["https://example.org"], "maxAgeSeconds": 3600.0}],
    )
    stage.create(
        "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
        "b",
        bucket=name,
        rules=[
            {
                "id": "uploads",
                "status": "Enabled",
                "filter": {"prefix": "poster-uploads/"},
                "expiration": {"days": 1.0},
                "abortIncompleteMultipartUpload": {"daysAfterInitiation": 1.0},
            }
        ],
    )

    s3 = stage.aws("s3")
    blocked = s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"]
    assert blocked == dict.fromkeys(blocked, True)
    (cors,) = s3.get_bucket_cors(Bucket=name)["CORSRules"]
    assert (cors["AllowedOrigins"], cors["MaxAgeSeconds"]) == (["https://example.org"], 3600)
    (rule,) = s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"]
    assert (rule["ID"], rule["Filter"]["Prefix"], rule["Expiration"]["Days"]) == ("uploads", "poster-uploads/", 1)
    (encryption,) = s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"]
    assert encryption["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert s3.get_bucket_tagging(Bucket=name)["TagSet"] == [{"Key": "stage", "Value": "dev"}]

    stage.delete("s3/bucketCorsConfiguration:BucketCorsConfiguration", "b")
    with pytest.raises(ClientError, match="NoSuchCORSConfiguration"):
        s3.get_bucket_cors(Bucket=name)


def test_a_bucket_with_objects_refuses_to_go_unless_it_is_forced(stage: HandledStage, name: str) -> None:
    stage.create(BUCKET, "b", bucket=name)
    stage.aws("s3").put_object(Bucket=name, Key="tickets/one.png", Body=b"png")

    with pytest.raises(HandlerError, match="BucketNotEmpty"):
        stage.delete(BUCKET, "b")
    assert stage.aws("s3").get_object(Bucket=name, Key="tickets/one.png")["Body"].read() == b"png"

    stage.update(BUCKET, "b", bucket=name, forceDestroy=True)
    stage.delete(BUCKET, "b")
    with pytest.raises(ClientError, match="404"):
        stage.aws("s3").head_bucket(Bucket=name)


def test_a_bucket_name_in_use_is_refused(stage: HandledStage, name: str) -> None:
    stage.create(BUCKET, "b", bucket=name)

    with pytest.raises(HandlerError, match="BucketAlreadyExists"):
        stage.create(BUCKET, "again", bucket=name)


def test_the_tls_only_deny_is_dropped_aloud_and_the_rest_of_the_policy_stays(stage: HandledStage, name: str) -> None:
    stage.create(BUCKET, "b", bucket=name, forceDestroy=True)
    tls_only = {
        "Sid": "DenyInsecureTransport",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    no_deletes = {
        "Sid": "Keep",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteObject",
        "Resource": f"arn:aws:s3:::{name}/*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [tls_only, no_deletes]})

    stage.create("s3/bucketPolicy:BucketPolicy", "b", bucket=name, policy=policy)

    stored = json.loads(stage.aws("s3").get_bucket_policy(Bucket=name)["Policy"])
    assert [statement["Sid"] for statement in stored["Statement"]] == ["Keep"]
    assert any(f"bucket {name}: plain HTTP let in" in line for line in stage.said.lines)


def test_a_secret_keeps_its_value_and_is_read_as_it_is_stored(stage: HandledStage, name: str) -> None:
    secret = stage.create(SECRET, "s", name=name, recoveryWindowInDays=0.0)
    stage.create(VERSION, "s", secretId=secret["arn"], secretString="first")
    stage.aws("secretsmanager").put_secret_value(SecretId=name, SecretString="rotated")

    stage.forget(VERSION, "s")
    adopted = stage.adopt(VERSION, "s", secretId=secret["arn"], secretString="generated anew")

    assert adopted is not None
    assert adopted["secretString"] == "rotated"
    assert stage.aws("secretsmanager").get_secret_value(SecretId=name)["SecretString"] == "rotated"


def test_a_secret_name_waits_out_its_recovery_unless_that_is_no_days(stage: HandledStage, name: str) -> None:
    stage.create(SECRET, "slow", name=f"{name}-slow", recoveryWindowInDays=7.0)
    stage.create(SECRET, "fast", name=f"{name}-fast", recoveryWindowInDays=0.0)
    stage.delete(SECRET, "slow")
    stage.delete(SECRET, "fast")

    with pytest.raises(HandlerError, match="already scheduled for deletion"):
        stage.create(SECRET, "slow", name=f"{name}-slow")
    assert stage.create(SECRET, "fast", name=f"{name}-fast", recoveryWindowInDays=0.0)["name"] == f"{name}-fast"


def test_a_parameter_name_in_use_is_refused_and_a_change_is_made_in_place(stage: HandledStage, name: str) -> None:
    path = f"/{name}/database-life"
    first = stage.create(PARAMETER, "p", name=path, type="String", insecureValue="{}", tags={"a": "b"})

    with pytest.raises(HandlerError, match="ParameterAlreadyExists"):
        stage.create(PARAMETER, "again", name=path, type="String", insecureValue="{}")
    second = stage.update(PARAMETER, "p", name=path, type="String", insecureValue='{"final":null}')

    assert stage.aws("ssm").get_parameter(Name=path)["Parameter"]["Value"] == '{"final":null}'
    assert (first["version"], second["version"]) == (1, 2)
    tags = stage.aws("ssm").list_tags_for_resource(ResourceType="Parameter", ResourceId=path)["TagList"]
    assert tags == []


def test_a_log_group_keeps_its_retention_and_refuses_its_name_twice(stage: HandledStage, name: str) -> None:
    group = f"/minitickets/{name}"
    stage.create(LOG_GROUP, "g", name=group, retentionInDays=14.0)

    def retention() -> object:
        (found,) = stage.aws("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        return found.get("retentionInDays")

    assert retention() == 14
    with pytest.raises(HandlerError, match="ResourceAlreadyExistsException"):
        stage.create(LOG_GROUP, "again", name=group)
    stage.update(LOG_GROUP, "g", name=group)
    assert retention() is None


def test_a_sender_in_use_is_refused_and_adopted_when_forgotten(stage: HandledStage, name: str) -> None:
    identity = f"{name}@example.org"
    stage.create("sesv2/emailIdentity:EmailIdentity", "sender", emailIdentity=identity)

    with pytest.raises(HandlerError, match="AlreadyExistsException"):
        stage.create("sesv2/emailIdentity:EmailIdentity", "again", emailIdentity=identity)
    stage.forget("sesv2/emailIdentity:EmailIdentity", "sender")
    adopted = stage.adopt("sesv2/emailIdentity:EmailIdentity", "sender", emailIdentity=identity)

    assert adopted is not None
    assert adopted["identityType"] == "EMAIL_ADDRESS"


def test_a_refusal_never_prints_the_value_that_was_sent(stage: HandledStage, name: str) -> None:
    stage.create(SECRET, "s", name=name, recoveryWindowInDays=0.0)

    with pytest.raises(HandlerError) as refused:
        stage.create(VERSION, "s", secretId=name, secretString={"password": "hunter2"})

    assert "secretString" in str(refused.value).lower().replace("secretstring", "secretString")
    assert "hunter2" not in str(refused.value)
