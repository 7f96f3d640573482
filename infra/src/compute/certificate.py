"""The load balancer's certificate: ours, and where the load balancer is."""

import pulumi

from src.account import Account


class CertificateError(pulumi.RunError):
    """The certificate cannot belong to this stage's load balancer."""


def require_certificate_here(arn: str | None, *, account: Account) -> None:
    """Raise CertificateError if the certificate is of another account or region.

    AWS would refuse it too, but only after everything that the load balancer stands on had been made.
    """
    if arn is None:
        return
    region, owner = arn.split(":")[3:5]
    if (region, owner) != (account.region, account.id):
        raise CertificateError(
            f"minitickets:certificateArn is {arn}: it is of account {owner} in {region}, and this run is in account "
            f"{account.id} in {account.region}. Request a certificate there (`aws acm request-certificate`) and "
            "set its ARN, or use other credentials"
        )
