"""Where alarms are told, and who hears of them."""

import pulumi_aws as aws

from src.account import Account
from src.policies import document


def create_alarm_topic(name: str, *, account: Account, email: str | None) -> aws.sns.Topic:
    """The topic ``…-alarms``; ``email`` is mailed each change of an alarm, once its owner has confirmed by a link.

    It is not encrypted: CloudWatch may not use SNS's own key, so every alarm would be lost in silence, and a key of our
    own costs money every month. What an alarm says holds nothing of a customer (docs/security.md).
    """
    topic = aws.sns.Topic("alarms", name=f"{name}-alarms")
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
                "Condition": {
                    "ArnLike": {"aws:SourceArn": f"arn:aws:cloudwatch:{account.region}:{account.id}:alarm:{name}-*"},
                    "StringEquals": {"aws:SourceAccount": account.id},
                },
            }
        ),
    )
    if email:
        aws.sns.TopicSubscription("alarms", topic=topic.arn, protocol="email", endpoint=email)
    return topic
