"""Where the program runs: the AWS account and region that the credentials of this run lead to."""

from dataclasses import dataclass

import pulumi_aws as aws


@dataclass(frozen=True, kw_only=True)
class Account:
    """The account's twelve digits, and the region that every resource is made in."""

    id: str
    region: str


def look_up_account() -> Account:
    """Ask AWS who we are. Fails with the provider's message if there are no credentials."""
    return Account(id=aws.get_caller_identity().account_id, region=aws.get_region().region)
