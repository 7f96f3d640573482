"""Where alarms are told, and who hears of them."""

from typing import Any

import pulumi_aws as aws

from src.account import Account
from src.policies import document

# How long a deleted key can be brought back, in days; until then it costs nothing.
KEY_RECOVERY_DAYS = 30


def create_alarm_topic(name: str, *, account: Account, email: str | None, own_key: bool) -> aws.sns.Topic:
    """The topic ``…-alarms``; ``email`` is mailed each change of an alarm, once its owner has confirmed by a link.

    It is encrypted with a key of our own or not at all: CloudWatch may not use SNS's key, so every alarm would be lost
    in silence.
    """
    alarms_of_this_stage = {
        "ArnLike": {"aws:SourceArn": f"arn:aws:cloudwatch:{account.region}:{account.id}:alarm:{name}-*"},
        "StringEquals": {"aws:SourceAccount": account.id},
    }
    key = _create_key(name, account_id=account.id, condition=alarms_of_this_stage) if own_key else None
    topic = aws.sns.Topic("alarms", name=f"{name}-alarms", kms_master_key_id=key.arn if key else None)
    aws.sns.TopicPolicy(
        "alarms",
        arn=topic.arn,
        policy=document(
            {
                "Sid": "AllowOwnAlarms",
                "Effect": "Allow",
                "Principal": {"Service": "cloudwatch.amazonaws.com"},
                "Action": "sns:Publish",
                "Resource": topic.arn,
                "Condition": alarms_of_this_stage,
            }
        ),
    )
    if email:
        aws.sns.TopicSubscription("alarms", topic=topic.arn, protocol="email", endpoint=email)
    return topic


def _create_key(name: str, *, account_id: str, condition: dict[str, Any]) -> aws.kms.Key:
    """A key that rotates each year. In a key's policy ``*`` is the key itself; the account's administrators may manage
    it, or nobody ever could again."""
    return aws.kms.Key(
        "alarms",
        description=f"Alarms of {name}",
        enable_key_rotation=True,
        deletion_window_in_days=KEY_RECOVERY_DAYS,
        policy=document(
            {
                "Sid": "ManageByAccount",
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:aws:iam::{account_id}:root"},
                "Action": "kms:*",
                "Resource": "*",
            },
            {
                "Sid": "AllowOwnAlarms",
                "Effect": "Allow",
                "Principal": {"Service": "cloudwatch.amazonaws.com"},
                "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
                "Resource": "*",
                "Condition": condition,
            },
        ),
    )
