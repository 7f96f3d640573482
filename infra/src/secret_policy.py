"""Who may touch a secret at all, where the stage names them: its one reader, and its administrators.

Without such a policy, whatever an IAM policy of the account allows is allowed, and of ours each secret's one reader is
let in only. With it, everybody else is denied, an account's administrator included. It can lock out: a deploy by
somebody whom it does not name could not even take it away again. So that is refused before anything is made.
"""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from src.account import Account
from src.policies import document


class SecretPolicyError(pulumi.RunError):
    """Whoever deploys would be locked out."""


def require_administrator(account: Account, *, administrators: Sequence[str]) -> None:
    """SecretPolicyError if administrators are named and the credentials of this run are none's.

    Compared by name: of a role that somebody has assumed, AWS does not tell the path.
    """
    names = {arn.rpartition("/")[2] for arn in administrators}
    if names and account.caller not in names:
        raise SecretPolicyError(
            f"minitickets:secretAdministrators does not name {account.caller}, as whom this run deploys: its secrets' "
            f"policy would lock you out. Add the ARN of your role or user (named are {', '.join(sorted(names))})"
        )


def create_secret_policy(
    resource_name: str, *, secret: aws.secretsmanager.Secret, reader: str, administrators: Sequence[str]
) -> None:
    """Deny everything to all but the role ``reader`` and the administrators (ARNs); nothing if none are named.

    What the reader may do is still only what its own policy allows.
    """
    if not administrators:
        return
    aws.secretsmanager.SecretPolicy(
        resource_name,
        secret_arn=secret.arn,
        policy=document(
            {
                "Sid": "DenyAllOthers",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "secretsmanager:*",
                "Resource": "*",
                "Condition": {"StringNotEquals": {"aws:PrincipalArn": sorted({reader, *administrators})}},
            }
        ),
    )
