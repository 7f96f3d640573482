"""A poster from an organiser's form to what visitors see: straight to a real bucket, without script."""

import html
import re
from uuid import uuid4

import httpx
import pytest

from apps.api.tests.pictures import png
from tests.fixtures.running_api import Person, RunningApi, api_environment
from tests.fixtures.servers import Cache, Database

pytestmark = pytest.mark.integration


PNG = png()
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x03\x00\x02\x01\x01\x11\x00"
    b"\xff\xda\x00\x08\x01\x01\x00\x00?\x00\x12\xff\x00\x34\xff\xd9"
)


class Form:
    """The upload form of a page as a browser reads it."""

    def __init__(self, page: httpx.Response) -> None:
        assert page.status_code in (200, 400, 404), page.text
        form = r'<form method="post" action="([^"]*)" enctype="multipart/form-data".*?</form>'
        found = re.search(form, page.text, re.DOTALL)
        assert found is not None, page.text
        self.url = html.unescape(found[1])
        hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', found[0])
        self.fields = {html.unescape(name): html.unescape(value) for name, value in hidden}
        # S3 reads nothing that follows the file.
        self.has_file_last = found[0].rindex('type="hidden"') < found[0].index('type="file"')
        self.policy = page.headers["content-security-policy"]

    def post(self, data: bytes, *, content_type: str = "image/png", **changes: str) -> httpx.Response:
        return httpx.post(
            self.url, data={**self.fields, **changes}, files={"file": ("poster", data, content_type)}, timeout=30
        )


def opened(organiser: Person, event_id: str) -> Form:
    return Form(organiser.http.get(f"/organiser/events/{event_id}/poster"))


def confirm(organiser: Person, location: str) -> httpx.Response:
    """Open the page that S3 leads to and press its button."""
    page = organiser.http.get(location)
    assert page.status_code == 200, page.text
    path = httpx.URL(location).path
    form = re.search(
        rf'<form method="post" action="{path}".*?name="idempotencyKey" value="([^"]*)"', page.text, re.DOTALL
    )
    assert form is not None, page.text
    return organiser.http.post(path, data={"idempotencyKey": form[1]})


@pytest.mark.parametrize(("data", "content_type"), [(PNG, "image/png"), (JPEG, "image/jpeg")])
def test_a_picture_goes_straight_to_the_bucket_comes_back_and_is_seen_by_visitors(
    api_on_aws: RunningApi, data: bytes, content_type: str
) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)
    form = opened(organiser, event_id)
    bucket = f"{httpx.URL(form.url).scheme}://{httpx.URL(form.url).netloc.decode()}"
    assert form.has_file_last
    assert f"form-action 'self' {bucket}" in form.policy

    posted = form.post(data, content_type=content_type)

    assert posted.status_code == 303
    location = posted.headers["location"]
    assert location.startswith(f"{api_on_aws.base_url}/organiser/events/{event_id}/poster/")
    assert api_on_aws.sql("select poster_key from events")[0]["poster_key"] is None, "a look publishes nothing"
    reply = confirm(organiser, location)
    assert (reply.status_code, reply.headers["location"]) == (303, f"/organiser/events/{event_id}?notice=poster")
    page = api_on_aws.stranger().http.get(f"/events/{event_id}")
    shown = re.search(r'<img class="poster" src="([^"]*)"', page.text)
    assert shown is not None
    assert f"img-src 'self' {bucket}" in page.headers["content-security-policy"]
    picture = httpx.get(html.unescape(shown[1]))
    assert (picture.content, picture.headers["content-type"]) == (data, content_type)


def test_the_bucket_takes_nothing_else_than_the_form_says(api_on_aws: RunningApi) -> None:
    organiser = api_on_aws.organiser()
    form = opened(organiser, api_on_aws.event(organiser))

    assert form.post(b"x" * (5 * 1024 * 1024 + 1)).status_code >= 400
    assert form.post(b"").status_code >= 400
    assert form.post(PNG, key="posters/mine.png").status_code >= 400
    assert form.post(PNG, **{"Content-Type": "text/html"}).status_code >= 400
    assert form.post(PNG, success_action_redirect="https://attacker.example/").status_code >= 400
    without = Form.__new__(Form)
    without.url = form.url
    without.fields = {name: value for name, value in form.fields.items() if name != "success_action_redirect"}
    assert without.post(PNG).status_code >= 400


@pytest.mark.parametrize("data", [b"%PDF-1.7 ...", b"<svg xmlns='x'/>", PNG[:-4], PNG + b"<script>"])
def test_what_is_no_picture_is_told_beside_a_fresh_form_and_not_published(api_on_aws: RunningApi, data: bytes) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)

    reply = confirm(organiser, opened(organiser, event_id).post(data).headers["location"])

    assert reply.status_code == 400
    problem = re.search(r'<p class="wrong" id="file-problem" aria-live="polite">([^<]+)</p>', reply.text)
    assert problem is not None
    assert "Upload another file" in html.unescape(problem[1])
    assert api_on_aws.sql("select poster_key from events")[0]["poster_key"] is None
    again = confirm(organiser, Form(reply).post(PNG).headers["location"])
    assert again.status_code == 303


def test_an_upload_that_never_came_is_told_on_the_page(api_on_aws: RunningApi) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)

    reply = confirm(organiser, f"/organiser/events/{event_id}/poster/{uuid4()}")

    assert reply.status_code == 404
    assert "no such upload" in reply.text


def test_a_browser_without_script_is_led_back_to_the_address_that_it_came_by(api_on_aws: RunningApi) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)
    port = httpx.URL(api_on_aws.base_url).port

    page = organiser.http.get(f"/organiser/events/{event_id}/poster", headers={"Host": f"tickets.localhost:{port}"})

    assert Form(page).fields["success_action_redirect"].startswith(f"http://tickets.localhost:{port}/organiser/events/")


def test_opening_the_form_keeps_nothing(api_on_aws: RunningApi) -> None:
    organiser = api_on_aws.organiser()
    event_id = api_on_aws.event(organiser)
    before = api_on_aws.footprint()

    places = {opened(organiser, event_id).fields["key"] for _ in range(3)}

    assert len(places) == 3
    assert all(place.startswith(f"poster-uploads/{event_id}/") for place in places)
    assert api_on_aws.footprint() == before


def test_the_way_back_from_the_bucket_is_the_public_url_whatever_host_a_request_names(
    migrated_database: Database, cache: Cache, aws_is_down: None
) -> None:
    public_url = "http://tickets.example"
    api = RunningApi(api_environment(migrated_database, cache, PUBLIC_URL=public_url), migrated_database)
    api.start()
    try:
        organiser = api.organiser()
        event_id = api.event(organiser)
        for header in ("host", "x-forwarded-host"):
            headers = {header: "elsewhere.example", "x-forwarded-proto": "https"}
            page = organiser.http.get(f"/organiser/events/{event_id}/poster", headers=headers)

            back = Form(page).fields["success_action_redirect"]
            assert back.startswith(f"{public_url}/organiser/events/{event_id}/poster/"), header
            assert "elsewhere" not in page.text
    finally:
        api.stop()
