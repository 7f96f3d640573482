"""The assets bucket, where tickets' images lie."""

from typing import TYPE_CHECKING, Self

import boto3

from minitickets_tickets.aws import CLIENT_CONFIG, aws_call

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class TicketImages:
    """PNGs under stable keys. How they are encrypted is the bucket's business."""

    def __init__(self, client: "S3Client", *, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    @classmethod
    def connect(cls, *, bucket: str) -> Self:
        """With a client of its own, under the function's role."""
        return cls(boto3.client("s3", config=CLIENT_CONFIG), bucket=bucket)

    def put(self, key: str, png: bytes) -> None:
        """Store ``png``; what was there is replaced. Raises CallFailed."""
        with aws_call("PutObject"):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=png, ContentType="image/png")
