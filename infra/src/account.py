"""Where the program runs: the AWS account and region that the credentials of this run lead to."""

from dataclasses import dataclass

import pulumi_aws as aws


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account's twelve digits, the region that every resource is made in, and who deploys: the name of a role or a
    user, or ``arn:…:root``."""

    id: str
    region: str
    caller: str

    def role_arn(self, name: str) -> str:
        """The ARN of a role of ours."""
        return f"arn:aws:iam::{self.id}:role/{name}"


def look_up_account() -> Account:
    """Ask AWS who we are. Fails with the provider's message if there are no credentials."""
    identity = aws.get_caller_identity()
    return Account(id=identity.account_id, region=aws.get_region().region, caller=name_in(identity.arn))


def name_in(arn: str) -> str:
    """The name in a caller's ARN: ``…:assumed-role/<role>/<session>``, ``…:user/<path>/<user>``; a root's whole ARN."""
    kind, *names = arn.rpartition(":")[2].split("/")
    if not names:
        return arn
    return names[0] if kind == "assumed-role" else names[-1]
