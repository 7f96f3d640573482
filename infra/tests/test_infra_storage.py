"""Tables, bucket, secrets: what outlives both switches."""

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

ACCOUNT = "123456789012"
TABLE = "aws:dynamodb/table:Table"
SECRET = "aws:secretsmanager/secret:Secret"
VERSION = "aws:secretsmanager/secretVersion:SecretVersion"


def _bucket_part(recording: "Recording", part: str) -> dict[str, Any]:
    return recording.one(f"aws:s3/bucket{part}:Bucket{part}", "assets").inputs


def test_processed_jobs_are_found_by_their_key_and_expire(both_on: "Recording") -> None:
    table = both_on.one(TABLE, "processed-jobs").inputs
    assert table["name"] == "minitickets-dev-processed-jobs"
    assert (table["hashKey"], table.get("rangeKey")) == ("jobKey", None)
    assert table["ttl"] == {"attributeName": "expiresAt", "enabled": True}
    assert table["billingMode"] == "PAY_PER_REQUEST"


def test_tickets_are_found_by_their_owner_and_by_the_date_on_the_door(both_on: "Recording") -> None:
    table = both_on.one(TABLE, "tickets").inputs
    assert table["name"] == "minitickets-dev-tickets"
    assert (table["hashKey"], table["rangeKey"]) == ("userId", "ticketId")
    assert table["billingMode"] == "PAY_PER_REQUEST"
    assert table["globalSecondaryIndexes"] == [
        {
            "name": "by-event-date",
            "keySchemas": [
                {"attributeName": "eventDate", "keyType": "HASH"},
                {"attributeName": "eventDateKey", "keyType": "RANGE"},
            ],
            "projectionType": "ALL",
        }
    ]


@pytest.mark.parametrize("name", ["processed-jobs", "tickets"])
def test_a_table_is_encrypted_and_a_stage_chooses_how_hard_it_is_to_lose(
    record: "Record", both_on: "Recording", name: str
) -> None:
    safe = both_on.one(TABLE, name).inputs
    assert safe["serverSideEncryption"] == {"enabled": True}
    assert (safe["pointInTimeRecovery"], safe["deletionProtectionEnabled"]) == ({"enabled": True}, True)
    cheap = record({"pointInTimeRecovery": "false", "deletionProtection": "false"}).one(TABLE, name).inputs
    assert (cheap["pointInTimeRecovery"], cheap["deletionProtectionEnabled"]) == ({"enabled": False}, False)


def test_the_bucket_is_closed_to_the_public_and_has_no_acls(both_on: "Recording") -> None:
    assert both_on.one("aws:s3/bucket:Bucket", "assets").inputs == {
        "bucket": f"minitickets-dev-assets-{ACCOUNT}",
        "forceDestroy": False,
    }
    block = _bucket_part(both_on, "PublicAccessBlock")
    for rule in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"):
        assert block[rule] is True
    assert _bucket_part(both_on, "OwnershipControls")["rule"] == {"objectOwnership": "BucketOwnerEnforced"}


def test_the_bucket_is_encrypted_with_the_key_that_the_policies_demand(both_on: "Recording") -> None:
    (rule,) = _bucket_part(both_on, "ServerSideEncryptionConfiguration")["rules"]
    assert rule == {"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}


def test_the_bucket_denies_everything_without_tls(both_on: "Recording") -> None:
    (statement,) = both_on.policy("aws:s3/bucketPolicy:BucketPolicy", "assets")["Statement"]
    bucket = f"arn:aws:s3:::minitickets-dev-assets-{ACCOUNT}"
    assert statement == {
        "Sid": "DenyInsecureTransport",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket, f"{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def test_uploads_that_nobody_published_are_gone_after_a_day(both_on: "Recording") -> None:
    (rule,) = _bucket_part(both_on, "LifecycleConfiguration")["rules"]
    assert (rule["status"], rule["filter"], rule["expiration"]) == (
        "Enabled",
        {"prefix": "poster-uploads/"},
        {"days": 1},
    )


def test_browsers_of_the_public_url_may_post_and_no_other_origin_may(record: "Record", both_on: "Recording") -> None:
    recording = record({"publicUrl": "https://tickets.example.org"})
    (rule,) = _bucket_part(recording, "CorsConfiguration")["corsRules"]
    assert rule["allowedOrigins"] == ["https://tickets.example.org"]
    assert rule["allowedMethods"] == ["POST"]
    assert not both_on.of("aws:s3/bucketCorsConfiguration:BucketCorsConfiguration")


def test_a_bucket_with_objects_refuses_to_go_unless_the_stage_says_so(record: "Record") -> None:
    recording = record({"forceDestroy": "true"})
    assert recording.one("aws:s3/bucket:Bucket", "assets").inputs["forceDestroy"] is True
    assert recording.one("aws:ecr/repository:Repository", "api").inputs["forceDelete"] is True


def test_signing_keys_are_made_by_secrets_manager_once_and_never_shown(both_on: "Recording") -> None:
    version = both_on.one(VERSION, "ticket-signing")
    assert json.loads(version.inputs["secretString"]) == {
        "current": "k1",
        "keys": {"k1": "generated-by-secrets-manager"},
    }
    assert version.ignore_changes == ("secretString",)
    assert "secretString" in version.secrets


def test_a_deleted_secret_blocks_its_name_so_a_stage_chooses_for_how_long(
    record: "Record", both_on: "Recording"
) -> None:
    assert both_on.one(SECRET, "ticket-signing").inputs["recoveryWindowInDays"] == 30
    assert record({"secretRecoveryDays": "0"}).one(SECRET, "ticket-signing").inputs["recoveryWindowInDays"] == 0


def test_a_flip_deletes_the_cache_token_at_once_so_that_its_name_is_free_for_the_next_wake(
    both_on: "Recording",
) -> None:
    assert both_on.one(SECRET, "redis-token").inputs["recoveryWindowInDays"] == 0


def test_image_tags_never_move_and_images_are_scanned(both_on: "Recording") -> None:
    repository = both_on.one("aws:ecr/repository:Repository", "api").inputs
    assert repository["imageTagMutability"] == "IMMUTABLE"
    assert repository["imageScanningConfiguration"] == {"scanOnPush": True}
    (rule,) = both_on.policy("aws:ecr/lifecyclePolicy:LifecyclePolicy", "api")["rules"]
    assert (rule["selection"]["countType"], rule["selection"]["countNumber"]) == ("imageCountMoreThan", 20)
