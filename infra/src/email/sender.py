"""Who mails come from."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.settings import MailSettings


@dataclass(frozen=True, kw_only=True)
class Sender:
    """The address in From, and the ARNs of the identities that vouch for it."""

    address: str
    identity_arns: list[pulumi.Output[str]]


def create_sender(mail: MailSettings) -> Sender:
    """An SES identity for the sender: the address itself, or with ``verify_domain`` its whole domain.

    SES accepts no mail from it until it is verified (by a link mailed to the address, or by the domain's DKIM records
    in DNS); creating it does not wait for that. In the SES sandbox recipients must be verified too.
    """
    identity = mail.sender.partition("@")[2] if mail.verify_domain else mail.sender
    resource = aws.sesv2.EmailIdentity("sender", email_identity=identity)
    return Sender(address=mail.sender, identity_arns=[resource.arn])
