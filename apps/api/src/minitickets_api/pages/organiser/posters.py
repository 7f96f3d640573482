"""The poster of an event: a form that goes straight to the bucket, and the check of what it brought."""

from uuid import uuid4

from starlette.responses import Response

from minitickets_api.pages.forms import Form, read_input
from minitickets_api.pages.organiser.access import own_event
from minitickets_api.pages.site import Site
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import posters
from minitickets_api.queries.assets import MAX_POSTER_BYTES
from minitickets_api.refusals import Code, Refusal


async def poster_form(visit: Visit) -> Response:
    return await _poster_page(visit)


async def uploaded(visit: Visit) -> Response:
    # Whatever S3 adds to the address is anybody's text: the upload is looked for where its form put it.
    event = await own_event(visit)
    return await visit.page(
        "organiser/uploaded.html",
        section="organiser",
        event=event,
        upload_id=visit.id("uploadId"),
        key=str(uuid4()),
    )


async def publish_poster(visit: Visit) -> Response:
    form = await visit.form()
    event_id = visit.id("eventId")
    given = {
        "eventId": event_id,
        "uploadId": visit.id("uploadId"),
        "idempotencyKey": form.text("idempotencyKey"),
    }
    try:
        await posters.publish(visit.call, read_input(posters.PublishUpload, given))
    except Refusal as reason:
        if reason.code not in (Code.BAD_REQUEST, Code.NOT_FOUND, Code.CONFLICT):
            raise
        return await _poster_page(visit, refusal=reason)
    return visit.go(f"/organiser/events/{event_id}", notice="poster")


async def _poster_page(visit: Visit, *, refusal: Refusal | None = None) -> Response:
    event = await own_event(visit)
    upload = await visit.call.services.posters.page_form(
        organiser=await visit.call.require_session(),
        event_id=event.event_id,
        return_url=f"{visit.origin}/organiser/events/{event.event_id}/poster",
    )
    return await visit.page(
        "organiser/poster.html",
        section="organiser",
        refusal=refusal,
        bucket_url=upload.form.url,
        event=event,
        upload=upload,
        form=Form(problems={"file": refusal.message}) if refusal else Form(),
        most_bytes=MAX_POSTER_BYTES,
    )


def add_to(site: Site) -> None:
    """Register this module's pages."""
    site.get("/organiser/events/{eventId}/poster", session=True)(poster_form)
    site.get("/organiser/events/{eventId}/poster/{uploadId}", session=True)(uploaded)
    site.post("/organiser/events/{eventId}/poster/{uploadId}", session=True)(publish_poster)
