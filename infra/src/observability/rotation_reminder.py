"""A reminder of what nothing rotates by itself: the keys that sign tickets.

A schedule with a role of its own. EventBridge's rules publish by the topic's policy, in which they satisfy no condition
on source or account, so that every rule of every account would have to be let in.
"""

import pulumi
import pulumi_aws as aws

from src.account import Account
from src.policies import allow, trust
from src.roles import create_role

SECTION = "Rotating the signing keys"  # of docs/runbook.md


def create_rotation_reminder(
    name: str, *, account: Account, topic: aws.sns.Topic, topic_has_own_key: bool, days: int
) -> None:
    """Tell ``topic`` every ``days`` to rotate the signing keys, the first time when the schedule is made."""
    statements = [allow("Remind", ["sns:Publish"], [topic.arn])]
    if topic_has_own_key:
        key_arn = topic.kms_master_key_id.apply(str)
        statements.append(allow("EncryptReminder", ["kms:Decrypt", "kms:GenerateDataKey"], [key_arn]))
    role = create_role(
        "rotation-reminder",
        name=f"{name}-rotation-reminder",
        description="Scheduler: reminds of the signing keys' rotation",
        # The schedule's group is what Scheduler tells as the source, not the schedule.
        trust_policy=trust(
            "scheduler.amazonaws.com",
            account_id=account.id,
            source_arn=f"arn:aws:scheduler:{account.region}:{account.id}:schedule-group/default",
        ),
        statements=statements,
    )
    aws.scheduler.Schedule(
        "rotation-reminder",
        name=f"{name}-rotation-reminder",
        description="Reminds of the signing keys, which nothing rotates by itself",
        schedule_expression=f"rate({days} day{'s' if days > 1 else ''})",
        flexible_time_window={"mode": "OFF"},
        target={
            "arn": topic.arn,
            "role_arn": role.role.arn,
            "input": (
                f"Rotate the signing keys of {name}, unless that was done in the last {days} days. "
                f"How: docs/runbook.md, section {SECTION}"
            ),
        },
        opts=pulumi.ResourceOptions(depends_on=[role.policy]),
    )
