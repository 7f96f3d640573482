"""The signing secret, read once a process."""

from typing import TYPE_CHECKING, Self

import boto3

from minitickets_contracts.token import SigningKeys
from minitickets_tickets.aws import CLIENT_CONFIG, aws_call

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


class SigningSecret:
    """The keys by which tickets are signed."""

    def __init__(self, client: "SecretsManagerClient", *, arn: str) -> None:
        self._client = client
        self._arn = arn
        self._keys: SigningKeys | None = None

    @classmethod
    def connect(cls, *, arn: str) -> Self:
        """With a client of its own, under the function's role."""
        return cls(boto3.client("secretsmanager", config=CLIENT_CONFIG), arn=arn)

    def keys(self) -> SigningKeys:
        """The keys as they were when first asked for. Raises CallFailed; ContractError if the secret is malformed."""
        return self._keys or self.read_again()

    def read_again(self) -> SigningKeys:
        """The keys as they are now: they may have rotated since this process began. Raises as ``keys`` does."""
        with aws_call("GetSecretValue"):
            reply = self._client.get_secret_value(SecretId=self._arn)
        self._keys = SigningKeys.from_json(reply.get("SecretString", ""))
        return self._keys
