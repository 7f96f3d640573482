"""Policy documents: statements, trust policies, and the one function that writes JSON into an input.

The AWS provider compares some JSON inputs as text: default blanks or another order of keys would show a change at
every preview. So every JSON input of the program is written by `compact_json`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

Statement = dict[str, Any]


def compact_json(value: Any) -> pulumi.Output[str]:
    """``value``, with outputs anywhere in it, as JSON without blanks and with sorted keys. Secrets stay secret."""
    return pulumi.Output.json_dumps(value, separators=(",", ":"), sort_keys=True)


def allow(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[pulumi.Input[str]],
    *,
    condition: Mapping[str, Any] | None = None,
) -> Statement:
    """A statement that lets a role do ``actions`` on ``resources`` (ARNs), under ``condition`` if one is given."""
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    if condition:
        statement["Condition"] = dict(condition)
    return statement


def document(*statements: Statement) -> pulumi.Output[str]:
    """A policy document of these statements."""
    return compact_json({"Version": "2012-10-17", "Statement": list(statements)})


def trust(service: str, *, account_id: str, source_arn: str | None = None) -> pulumi.Output[str]:
    """Lets an AWS service assume a role, and only on behalf of our own account.

    ``source_arn`` narrows it to resources that match the pattern, for services that tell it (ECS does; for a Lambda's
    execution role only the account is documented).
    """
    condition: dict[str, Any] = {"StringEquals": {"aws:SourceAccount": account_id}}
    if source_arn:
        condition["ArnLike"] = {"aws:SourceArn": source_arn}
    return document(
        {
            "Sid": "AllowService",
            "Effect": "Allow",
            "Principal": {"Service": service},
            "Action": "sts:AssumeRole",
            "Condition": condition,
        }
    )


def write_own_logs(log_group_arn: pulumi.Input[str]) -> Statement:
    """Write into one log group. Not create it: a group that a function makes for itself has no retention."""
    return allow(
        "WriteOwnLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], [pulumi.Output.concat(log_group_arn, ":*")]
    )
