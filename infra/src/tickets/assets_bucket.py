"""The bucket of ticket images and posters: private, encrypted, reached by presigned URLs only."""

import pulumi
import pulumi_aws as aws

from src.policies import document
from src.settings import KeepingSettings


def create_assets_bucket(
    name: str, *, account_id: str, public_url: str | None, keeping: KeepingSettings
) -> aws.s3.Bucket:
    """The bucket ``…-assets-<account>`` (bucket names are shared by the world, so the account's number is in it).

    Objects: ``tickets/<eventId>/<bookingId>/<seat>.png``, ``posters/…`` (checked), ``poster-uploads/…`` (not checked
    yet; gone after a day). Browsers of ``public_url`` may post uploads; without it no other origin may.
    """
    bucket = aws.s3.Bucket(
        "assets",
        bucket=f"{name}-assets-{account_id}",
        force_destroy=keeping.force_destroy,
        opts=pulumi.ResourceOptions(protect=keeping.deletion_protection),
    )
    closed = aws.s3.BucketPublicAccessBlock(
        "assets",
        bucket=bucket.id,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
    )
    aws.s3.BucketOwnershipControls("assets", bucket=bucket.id, rule={"object_ownership": "BucketOwnerEnforced"})
    aws.s3.BucketServerSideEncryptionConfiguration(
        "assets",
        bucket=bucket.id,
        rules=[{"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}}],
    )
    aws.s3.BucketPolicy(
        "assets",
        bucket=bucket.id,
        policy=document(
            {
                "Sid": "DenyInsecureTransport",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [bucket.arn, pulumi.Output.concat(bucket.arn, "/*")],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ),
        # S3 answers two changes of a bucket's access at the same time with OperationAborted.
        opts=pulumi.ResourceOptions(depends_on=[closed]),
    )
    aws.s3.BucketLifecycleConfiguration(
        "assets",
        bucket=bucket.id,
        rules=[
            {
                "id": "expire-poster-uploads",
                "status": "Enabled",
                "filter": {"prefix": "poster-uploads/"},
                "expiration": {"days": 1},
                "abort_incomplete_multipart_upload": {"days_after_initiation": 1},
            }
        ],
    )
    if public_url:
        aws.s3.BucketCorsConfiguration(
            "assets",
            bucket=bucket.id,
            cors_rules=[
                {
                    "id": "poster-uploads",
                    "allowed_origins": [public_url],
                    "allowed_methods": ["POST"],
                    "allowed_headers": ["*"],
                    "max_age_seconds": 3000,
                }
            ],
        )
    return bucket
