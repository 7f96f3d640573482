"""Posters, from an organiser's upload to what visitors see, on a real bucket under the API's own role."""

from uuid import uuid4

import httpx
import pytest

from apps.api.tests.pictures import png
from minitickets_api.aws import Aws
from minitickets_api.queries.assets import Assets
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import ASSETS_BUCKET, Person, RunningApi

pytestmark = pytest.mark.integration


def request(
    organiser: Person, event_id: str, *, content_type: str = "image/png", key: str | None = None
) -> httpx.Response:
    wanted = {"eventId": event_id, "contentType": content_type, "idempotencyKey": key or str(uuid4())}
    return organiser.mutate("posters.requestUpload", wanted)


def requested(organiser: Person, event_id: str) -> dict[str, object]:
    reply = request(organiser, event_id)
    assert reply.status_code == 200, reply.text
    found: dict[str, object] = reply.json()["result"]["data"]
    return found


def post(form: dict[str, object], data: bytes, **changes: str) -> httpx.Response:
    fields = {**form["fields"], **changes}  # type: ignore[dict-item]  # JSON
    return httpx.post(str(form["url"]), data=fields, files={"file": ("poster", data, "image/png")})


def publish(organiser: Person, event_id: str, upload_id: object, *, key: str | None = None) -> httpx.Response:
    return organiser.mutate(
        "posters.publish", {"eventId": event_id, "uploadId": upload_id, "idempotencyKey": key or str(uuid4())}
    )


def poster_key(api: RunningApi, event_id: str) -> str | None:
    key: str | None = api.sql("select poster_key from events where event_id = $1", event_id)[0]["poster_key"]
    return key


def test_an_organisers_upload_becomes_what_visitors_see(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    api = api_on_aws
    organiser = api.organiser()
    event_id = api.event(organiser)
    form = requested(organiser, event_id)

    assert post(form, png()).status_code in (200, 201, 204)
    published = publish(organiser, event_id, form["uploadId"])

    assert published.status_code == 200, published.text
    url = api.stranger().query("events.byId", {"eventId": event_id}).json()["result"]["data"]["posterUrl"]
    shown = httpx.get(url)
    assert (shown.status_code, shown.content, shown.headers["content-type"]) == (200, png(), "image/png")
    assert httpx.get(published.json()["result"]["data"]["posterUrl"]).content == png()
    kept = emulator.aws("s3").head_object(Bucket=ASSETS_BUCKET, Key=poster_key(api, event_id))
    assert kept["ServerSideEncryption"] == "AES256"


def test_the_form_accepts_this_key_this_type_and_at_most_5_mb(api_on_aws: RunningApi) -> None:
    organiser = api_on_aws.organiser()
    form = requested(organiser, api_on_aws.event(organiser))

    assert post(form, b"").status_code >= 400
    assert post(form, b"x" * (5 * 1024 * 1024 + 1)).status_code >= 400
    assert post(form, png(), key="posters/mine.png").status_code >= 400
    assert post(form, png(), **{"Content-Type": "text/html"}).status_code >= 400
    assert post(form, png(), **{"x-amz-server-side-encryption": "aws:kms"}).status_code >= 400


@pytest.mark.parametrize("data", [b"<script>alert(1)</script>", png() + b"<script>", png()[:-1]])
def test_what_is_no_whole_image_is_not_published(api_on_aws: RunningApi, data: bytes) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)
    form = requested(organiser, event_id)
    post(form, data)

    reply = publish(organiser, event_id, form["uploadId"])

    assert (reply.status_code, reply.json()["error"]["data"]["code"]) == (400, "BAD_REQUEST")
    assert poster_key(api_on_aws, event_id) is None


def test_an_upload_that_never_came_is_not_found(api_on_aws: RunningApi) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)

    reply = publish(organiser, event_id, str(uuid4()))

    assert (reply.status_code, reply.json()["error"]["data"]["code"]) == (404, "NOT_FOUND")


def test_an_upload_for_one_event_cannot_become_the_poster_of_another(api_on_aws: RunningApi) -> None:
    organiser = api_on_aws.organiser()
    mine, other = api_on_aws.event(organiser), api_on_aws.event(organiser)
    form = requested(organiser, mine)
    post(form, png())

    assert publish(organiser, other, form["uploadId"]).status_code == 404


def test_the_same_keys_give_the_same_upload_and_the_same_poster(api_on_aws: RunningApi) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)

    first, again = (request(organiser, event_id, key="u").json()["result"]["data"] for _ in range(2))
    assert first["uploadId"] == again["uploadId"]
    assert request(organiser, event_id, key="u", content_type="image/jpeg").status_code == 409

    post(again, png(b"first"))
    assert publish(organiser, event_id, first["uploadId"], key="p").status_code == 200
    before = poster_key(api_on_aws, event_id)
    post(again, png(b"second"))  # the form still holds, but what was published stays what was checked
    assert publish(organiser, event_id, first["uploadId"], key="p").status_code == 200
    assert poster_key(api_on_aws, event_id) == before
    assert publish(organiser, event_id, str(uuid4()), key="p").status_code == 409


def test_an_upload_that_changes_after_its_check_does_not_reach_visitors(
    api_on_aws: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)
    form = requested(organiser, event_id)
    post(form, png())
    write = Assets.write

    def overwritten_meanwhile(assets: Assets, key: str, data: bytes, *, content_type: str) -> None:
        assert post(form, b"<script>alert(1)</script>").status_code < 300
        write(assets, key, data, content_type=content_type)

    monkeypatch.setattr(Assets, "write", overwritten_meanwhile)
    published = publish(organiser, event_id, form["uploadId"])

    assert httpx.get(published.json()["result"]["data"]["posterUrl"]).content == png()


def test_presigned_urls_name_the_regional_host_and_live_120_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for region in ("us-east-1", "eu-central-1"):
        aws = Aws(region=region)
        assets = Assets(aws=aws, bucket="minitickets-dev-assets")
        url = httpx.URL(assets.sign_get("posters/a.png"))
        form = assets.sign_upload("poster-uploads/a", content_type="image/png")
        aws.close()

        assert url.host == f"minitickets-dev-assets.s3.{region}.amazonaws.com"
        assert url.params["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
        assert url.params["X-Amz-Expires"] == "120"
        assert httpx.URL(form.url).host == url.host
        assert form.fields["x-amz-server-side-encryption"] == "AES256"
