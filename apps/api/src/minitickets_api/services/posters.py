"""Events' posters: organisers upload to a place of their own; only checked bytes get where visitors see them."""

import hashlib
from dataclasses import dataclass
from uuid import uuid4

import asyncpg

from minitickets_api.aws import Aws
from minitickets_api.database import connection
from minitickets_api.organisers import require_organiser, require_own_event
from minitickets_api.queries.assets import Assets, UploadForm
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import idempotency, images
from minitickets_api.services.accounts import User
from minitickets_api.services.idempotency import Memory
from minitickets_contracts import keys

# What a plain form uploads as: it stands before anybody has chosen a file, so the bytes alone tell the type.
_ANY_TYPE = "application/octet-stream"


@dataclass(frozen=True, kw_only=True)
class RequestedUpload:
    """``upload_id`` is what ``publish`` is told once the form was posted."""

    upload_id: str
    form: UploadForm


@dataclass(frozen=True, kw_only=True)
class Poster:
    """A published poster; ``url`` shows it for 120 s."""

    event_id: str
    url: str


class Posters:
    """Posters of events that belong to the organiser who asks."""

    def __init__(self, *, pool: asyncpg.Pool, aws: Aws, assets: Assets) -> None:
        self._pool = pool
        self._aws = aws
        self._assets = assets

    async def request_upload(
        self, *, organiser: User, event_id: str, content_type: str, idempotency_key: str
    ) -> RequestedUpload:
        """A form to upload with; asked again under the same key, a fresh form for the same place.

        Raises Refusal: FORBIDDEN, NOT_FOUND, CONFLICT for a key used otherwise, SERVICE_UNAVAILABLE.
        """
        organiser_id = require_organiser(organiser)
        input_hash = idempotency.hash_input({"eventId": event_id, "contentType": content_type})
        memory = Memory(
            procedure="posters.requestUpload", user_id=organiser_id, key=idempotency_key, input_hash=input_hash
        )
        async with connection(self._pool) as database, database.transaction():
            await memory.lock(database)
            remembered = await memory.recall(database)
            if remembered is None:
                await require_own_event(database, organiser_id=organiser_id, event_id=event_id)
                remembered = {"uploadId": str(uuid4())}
                await memory.keep(database, remembered)
        upload_id = str(remembered["uploadId"])
        form = await self._aws.sign(
            lambda: self._assets.sign_upload(_upload_key(event_id, upload_id), content_type=content_type)
        )
        return RequestedUpload(upload_id=upload_id, form=form)

    async def page_form(self, *, organiser: User, event_id: str, return_url: str) -> RequestedUpload:
        """A form for a page: after the upload the browser goes on to ``<return_url>/<upload_id>``.

        It is for a PNG, a JPEG or a WebP, whichever is chosen. Nothing is kept: asked again, it is for another place.
        Raises Refusal: FORBIDDEN, NOT_FOUND, SERVICE_UNAVAILABLE.
        """
        organiser_id = require_organiser(organiser)
        async with connection(self._pool) as database:
            await require_own_event(database, organiser_id=organiser_id, event_id=event_id)
        upload_id = str(uuid4())
        form = await self._aws.sign(
            lambda: self._assets.sign_upload(
                _upload_key(event_id, upload_id), content_type=_ANY_TYPE, return_url=f"{return_url}/{upload_id}"
            )
        )
        return RequestedUpload(upload_id=upload_id, form=form)

    async def publish(self, *, organiser: User, event_id: str, upload_id: str, idempotency_key: str) -> Poster:
        """Make the upload the event's poster.

        The bytes that are checked are the bytes that are kept: an upload may be replaced at any time, so it is read
        once and never copied. Raises Refusal: FORBIDDEN, NOT_FOUND, BAD_REQUEST for what is no image of its type,
        CONFLICT for a key used otherwise, SERVICE_UNAVAILABLE.
        """
        organiser_id = require_organiser(organiser)
        input_hash = idempotency.hash_input({"eventId": event_id, "uploadId": upload_id})
        memory = Memory(procedure="posters.publish", user_id=organiser_id, key=idempotency_key, input_hash=input_hash)
        async with connection(self._pool) as database:
            remembered = await memory.recall(database)
            await require_own_event(database, organiser_id=organiser_id, event_id=event_id)
        if remembered is None:
            key = await self._keep_checked(event_id, upload_id)
            async with connection(self._pool) as database, database.transaction():
                await memory.lock(database)
                remembered = await memory.recall(database)
                if remembered is None:
                    await database.execute(
                        "update events set poster_key = $1 where event_id = $2 and organiser_id = $3",
                        key,
                        event_id,
                        organiser_id,
                    )
                    remembered = {"posterKey": key}
                    await memory.keep(database, remembered)
        poster_key = str(remembered["posterKey"])
        return Poster(event_id=event_id, url=await self._aws.sign(lambda: self._assets.sign_get(poster_key)))

    async def _keep_checked(self, event_id: str, upload_id: str) -> str:
        def copy() -> str:
            upload = self._assets.read_upload(_upload_key(event_id, upload_id))
            if upload is None:
                raise Refusal(Code.NOT_FOUND, "There is no such upload. Post the file to the form first.")
            try:
                declared = upload.content_type
                content_type = images.content_type_of(upload.data) if declared == _ANY_TYPE else declared
                kind = images.check(upload.data, content_type=content_type)
            except images.NotAnImage as error:
                raise Refusal(Code.BAD_REQUEST, f"The poster {error}. Upload another file.") from None
            # Named after its content: the same poster published twice is one object, and none is ever overwritten.
            digest = hashlib.sha256(upload.data).hexdigest()[:32]
            key = f"{keys.POSTERS_PREFIX}{event_id}/{digest}.{kind.extension}"
            self._assets.write(key, upload.data, content_type=kind.content_type)
            return key

        return await self._aws.run(copy)


def _upload_key(event_id: str, upload_id: str) -> str:
    return f"{keys.POSTER_UPLOADS_PREFIX}{event_id}/{upload_id}"
