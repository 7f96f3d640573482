"""Where tickets live: their table, the bucket of their images (and of posters), and the keys that sign them."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.account import Account
from src.policies import compact_json
from src.secret_policy import create_secret_policy
from src.settings import KeepingSettings
from src.tickets.assets_bucket import create_assets_bucket

EVENT_DATE_INDEX = "by-event-date"


@dataclass(frozen=True, kw_only=True)
class TicketStorage:
    """All that outlives both switches, because a ticket does."""

    table: aws.dynamodb.Table
    bucket: aws.s3.Bucket
    signing_secret: aws.secretsmanager.Secret
    signing_key: aws.secretsmanager.SecretVersion

    def objects_arn(self, prefix: str) -> pulumi.Output[str]:
        """ARN of every object below ``prefix/`` of the bucket."""
        return pulumi.Output.concat(self.bucket.arn, f"/{prefix}/*")


def create_ticket_storage(
    name: str,
    *,
    account: Account,
    public_url: str | None,
    keeping: KeepingSettings,
) -> TicketStorage:
    """The table ``…-tickets``, the bucket ``…-assets-<account>`` and the secret ``…-ticket-signing``.

    Browsers of ``public_url`` may upload posters. With deletion protection the engine protects all three as well: no
    flip takes them away, so only a `destroy` or a mistake would fail, and in its preview already.
    """
    secret, key = _create_signing_secret(name, keeping=keeping)
    create_secret_policy(
        "ticket-signing",
        secret=secret,
        reader=account.role_arn(f"{name}-tickets"),
        administrators=keeping.secret_administrators,
    )
    return TicketStorage(
        table=_create_tickets_table(name, keeping=keeping),
        bucket=create_assets_bucket(name, account_id=account.id, public_url=public_url, keeping=keeping),
        signing_secret=secret,
        signing_key=key,
    )


def _create_tickets_table(name: str, *, keeping: KeepingSettings) -> aws.dynamodb.Table:
    keys = ("userId", "ticketId", "eventDate", "eventDateKey")
    return aws.dynamodb.Table(
        "tickets",
        name=f"{name}-tickets",
        billing_mode="PAY_PER_REQUEST",
        hash_key="userId",
        range_key="ticketId",
        attributes=[{"name": key, "type": "S"} for key in keys],
        global_secondary_indexes=[
            {
                "name": EVENT_DATE_INDEX,
                "key_schemas": [
                    {"attribute_name": "eventDate", "key_type": "HASH"},
                    {"attribute_name": "eventDateKey", "key_type": "RANGE"},
                ],
                "projection_type": "ALL",
            }
        ],
        server_side_encryption={"enabled": True},
        point_in_time_recovery={"enabled": keeping.point_in_time_recovery},
        deletion_protection_enabled=keeping.deletion_protection,
        opts=pulumi.ResourceOptions(protect=keeping.deletion_protection),
    )


def _create_signing_secret(
    name: str, *, keeping: KeepingSettings
) -> tuple[aws.secretsmanager.Secret, aws.secretsmanager.SecretVersion]:
    secret = aws.secretsmanager.Secret(
        "ticket-signing",
        name=f"{name}-ticket-signing",
        description="Keys that sign tickets: {current, keys: {id: key}}",
        recovery_window_in_days=keeping.secret_recovery_days,
        opts=pulumi.ResourceOptions(protect=keeping.deletion_protection),
    )
    generated = aws.secretsmanager.get_random_password_output(password_length=64, exclude_punctuation=True)
    first_keys: pulumi.Output[str] = pulumi.Output.secret(
        compact_json({"current": "k1", "keys": {"k1": generated.random_password}})
    )
    key = aws.secretsmanager.SecretVersion(
        "ticket-signing",
        secret_id=secret.id,
        secret_string=first_keys,
        # Made once. Each run generates another one, and rotation adds keys behind the program's back: a new value here
        # would void every ticket sold.
        opts=pulumi.ResourceOptions(ignore_changes=["secretString"]),
    )
    return secret, key
