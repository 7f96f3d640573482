"""Posters of an organiser's events."""

from typing import Literal

from minitickets_api.procedures.call import Call
from minitickets_api.procedures.fields import Id, IdempotencyKey
from minitickets_api.trpc.registry import Input, Output, Registry


class RequestUpload(Input):
    """What will be uploaded, at most 5 MB."""

    event_id: Id
    content_type: Literal["image/png", "image/jpeg", "image/webp"]
    idempotency_key: IdempotencyKey


class PublishUpload(Input):
    """Which upload becomes the event's poster."""

    event_id: Id
    upload_id: Id
    idempotency_key: IdempotencyKey


class RequestedUpload(Output):
    """Post `fields`, then the file as `file`, to `url` as multipart/form-data within 120 s; then publish `uploadId`."""

    upload_id: str
    url: str
    fields: dict[str, str]


class Poster(Output):
    """`posterUrl` shows it for 120 s."""

    event_id: str
    poster_url: str


async def request_upload(call: Call, wanted: RequestUpload) -> RequestedUpload:
    """A form to upload a poster with. FORBIDDEN: you are no organiser. NOT_FOUND: you have no such event."""
    requested = await call.services.posters.request_upload(
        organiser=await call.require_session(),
        event_id=wanted.event_id,
        content_type=wanted.content_type,
        idempotency_key=wanted.idempotency_key,
    )
    return RequestedUpload(upload_id=requested.upload_id, url=requested.form.url, fields=dict(requested.form.fields))


async def publish(call: Call, wanted: PublishUpload) -> Poster:
    """Check the upload and make it the event's poster.

    BAD_REQUEST: it is no whole image of its type. FORBIDDEN: you are no organiser. NOT_FOUND: no such event of
    yours, or nothing was uploaded.
    """
    published = await call.services.posters.publish(
        organiser=await call.require_session(),
        event_id=wanted.event_id,
        upload_id=wanted.upload_id,
        idempotency_key=wanted.idempotency_key,
    )
    return Poster(event_id=published.event_id, poster_url=published.url)


def add_to(registry: Registry[Call]) -> None:
    """Register this module's procedures."""
    registry.mutation("posters.requestUpload", session=True)(request_upload)
    registry.mutation("posters.publish", session=True)(publish)
