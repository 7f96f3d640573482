"""The bucket of ticket images and posters. Every method blocks: call it from a thread (``Aws.run``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from minitickets_api.aws import Aws
from minitickets_api.refusals import Code, Refusal
from minitickets_contracts import keys

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

URL_SECONDS = 120
MAX_POSTER_BYTES = 5 * 1024 * 1024
_ENCRYPTION: Literal["AES256"] = "AES256"  # the role's policy demands it of every PutObject
# Without the right to list, S3 says AccessDenied of an object that is not there.
_NOT_THERE = frozenset({"NoSuchKey", "404", "AccessDenied", "403"})


@dataclass(frozen=True, kw_only=True)
class UploadForm:
    """Where a browser posts a file to, and the fields that must precede it in the form."""

    url: str
    fields: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Upload:
    """What was uploaded, and as what."""

    data: bytes
    content_type: str


def sign_asset_get(s3: "S3Client", *, bucket: str, key: str) -> str:
    """A URL that shows the object for 120 s, or until the role's own session ends. No call is made."""
    return s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=URL_SECONDS)


class Assets:
    """The bucket, as the API's role may use it."""

    def __init__(self, *, aws: Aws, bucket: str) -> None:
        self._aws = aws
        self._bucket = bucket

    def sign_get(self, key: str) -> str:
        """As ``sign_asset_get``."""
        return sign_asset_get(self._aws.s3, bucket=self._bucket, key=key)

    def sign_upload(self, key: str, *, content_type: str, return_url: str | None = None) -> UploadForm:
        """A form that S3 accepts for 120 s: this key, this type, encrypted, at most 5 MB; refused otherwise.

        The browser that posts it goes on to ``return_url``, if there is one, to which S3 adds its own query.
        """
        required = {"Content-Type": content_type, "x-amz-server-side-encryption": _ENCRYPTION}
        if return_url is not None:
            required["success_action_redirect"] = return_url
        form = self._aws.s3.generate_presigned_post(
            Bucket=self._bucket,
            Key=key,
            Fields=dict(required),
            Conditions=[
                *({name: value} for name, value in required.items()),
                ["content-length-range", 1, MAX_POSTER_BYTES],
            ],
            ExpiresIn=URL_SECONDS,
        )
        return UploadForm(url=form["url"], fields=form["fields"])

    def read_ticket(self, *, event_id: str, booking_id: str, seat: str) -> bytes | None:
        """The PNG of a ticket's QR code, None if it is not there yet. Raises Refusal (SERVICE_UNAVAILABLE)."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found = self._aws.s3.get_object(Bucket=self._bucket, Key=keys.ticket_image_key(event_id, booking_id, seat))
            with found["Body"] as body:
                return body.read()
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise _unavailable() from error
        except BotoCoreError as error:
            raise _unavailable() from error

    def read_upload(self, key: str) -> Upload | None:
        """The object, None if it is not there. Raises Refusal: BAD_REQUEST over 5 MB, SERVICE_UNAVAILABLE."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found = self._aws.s3.get_object(Bucket=self._bucket, Key=key)
            with found["Body"] as body:
                data = body.read(MAX_POSTER_BYTES + 1) if found["ContentLength"] <= MAX_POSTER_BYTES else None
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise _unavailable() from error
        except BotoCoreError as error:
            raise _unavailable() from error
        if data is None or len(data) > MAX_POSTER_BYTES:
            raise Refusal(Code.BAD_REQUEST, f"The poster is larger than {MAX_POSTER_BYTES // 1024 // 1024} MB.")
        return Upload(data=data, content_type=found.get("ContentType", ""))

    def write(self, key: str, data: bytes, *, content_type: str) -> None:
        """Keep exactly these bytes under ``key``. Raises Refusal (SERVICE_UNAVAILABLE)."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._aws.s3.put_object(
                Bucket=self._bucket, Key=key, Body=data, ContentType=content_type, ServerSideEncryption=_ENCRYPTION
            )
        except (ClientError, BotoCoreError) as error:
            raise _unavailable() from error


def _unavailable() -> Refusal:
    return Refusal(
        Code.SERVICE_UNAVAILABLE, "Images cannot be reached just now. Try again shortly.", retryAfterSeconds=5
    )
