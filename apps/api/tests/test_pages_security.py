"""What holds for every page: strict headers, no foreign forms, no way out to other sites, errors that help."""

import re
from collections.abc import Callable, Iterator

import httpx
import pytest

from apps.api.tests.site_paths import page_paths
from minitickets_api.pages.return_path import account_path, return_path
from minitickets_api.pages.static_files import StaticFiles
from tests.fixtures.running_api import Person, RunningApi, api_environment
from tests.fixtures.servers import Cache, Database
from tests.fixtures.web_pages import MAX_FIRST_LOAD_BYTES, WebPage, first_load_bytes, see

pytestmark = pytest.mark.integration
_BUCKET = "http://127.0.0.1:9"  # AWS, which is down
_POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}


def _fill(path: str, event_id: str, booking_id: str) -> str:
    return path.replace("{eventId}", event_id).replace("{bookingId}", booking_id)


class _Stage:
    """An event with a booking, and everybody who could look at it."""

    def __init__(self, api: RunningApi) -> None:
        self.organiser = api.organiser()
        self.event_id = api.event(self.organiser)
        self.customer = api.customer()
        self.booking_id = self.customer.book(self.event_id, "A-1").json()["result"]["data"]["bookingId"]
        self.stranger = api.stranger()

    def pages(self) -> Iterator[tuple[str, Person]]:
        """Every page as everybody."""
        for path in sorted({*page_paths("GET"), "/mail"}):
            if "{seat}" in path or "." in path or "{uploadId}" in path:
                continue  # no pages
            for person in (self.stranger, self.customer, self.organiser):
                yield _fill(path, self.event_id, self.booking_id), person


def test_every_page_for_everybody_is_strict_small_and_all_ours(api: RunningApi) -> None:
    stage = _Stage(api)
    seen = 0
    for path, person in stage.pages():
        reply = person.http.get(path)
        if not reply.headers.get("content-type", "").startswith("text/html"):
            assert reply.status_code in (302, 303), path
            assert reply.headers["location"].startswith("/"), path
            continue
        seen += 1
        html = reply.text
        assert reply.status_code in (200, 403, 404, 503), path
        policy = reply.headers["content-security-policy"]
        if path.endswith("/poster"):  # its form goes to the bucket itself
            policy, html = policy.replace(f" {_BUCKET}", ""), html.replace(f'action="{_BUCKET}/', 'action="/')
        assert set(policy.split("; ")) == _POLICY, path
        assert reply.headers["cache-control"] == "no-store", path
        assert "cookie" in reply.headers["vary"], path
        assert reply.headers["referrer-policy"] == "same-origin", path
        # Nothing inline, nothing from elsewhere.
        assert not re.search(r"<style|style=|<script(?![^>]* src=\"/static/)|\son[a-z]+=|javascript:", html), path
        assert not re.search(r"(?:src|href|action)=\"(?!/|#)", html), path
        assert person.http.head(path).status_code == reply.status_code, path
        assert first_load_bytes(person.http, path) < MAX_FIRST_LOAD_BYTES, path
        # What a screen reader needs to find its way.
        page = WebPage(reply)
        assert len(page.all("h1")) == len(page.all("main")) == 1, path
        assert page.links[0] == "#main", path
        labels = {label.get("for") for label in page.all("label")}
        for field in page.all("input"):
            if field.get("type") not in ("hidden", "checkbox", "radio"):
                assert field["id"] in labels, (path, field)
        ids = [found["id"] for _, found in page.elements if "id" in found]
        assert len(ids) == len(set(ids)), path
    assert seen > 30


def test_the_navigation_shows_each_role_what_is_theirs(api: RunningApi) -> None:
    stage = _Stage(api)

    def navigation(person: Person) -> set[str]:
        links = see(person.http, "/").links
        return {link for link in ("/tickets", "/bookings", "/organiser", "/login", "/register") if link in links}

    assert navigation(stage.stranger) == {"/login", "/register"}
    assert navigation(stage.customer) == {"/tickets", "/bookings"}
    assert navigation(stage.organiser) == {"/tickets", "/bookings", "/organiser"}


def test_who_is_not_logged_in_is_led_to_the_login_and_back(api: RunningApi) -> None:
    stage = _Stage(api)
    for path in ("/tickets", "/bookings", f"/bookings/{stage.booking_id}", f"/bookings/{stage.booking_id}/cancel"):
        reply = stage.stranger.http.get(f"{path}?a=b")

        assert (reply.status_code, reply.headers["location"]) == (303, f"/login?next={path}%3Fa%3Db")
    # Who is logged in already has nothing to do there.
    assert stage.customer.http.get("/login?next=/tickets").headers["location"] == "/tickets"
    assert stage.customer.http.get("/register?next=//elsewhere.example").headers["location"] == "/"


@pytest.mark.parametrize(
    "origin",
    [
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_no_form_of_another_site_changes_anything(api: RunningApi, origin: dict[str, str]) -> None:
    stage = _Stage(api)
    before, password = api.footprint(), api.sql("select password_hash from users order by email")
    sent = 0
    for path in sorted(page_paths("POST")):
        for person in (stage.customer, stage.organiser, stage.stranger):
            data = {"idempotencyKey": "k", "seat": "A-2", "email": "a@b.example", "password": "long enough to pass"}
            target = _fill(path, stage.event_id, stage.booking_id)
            reply = person.http.post(target, data=data, headers=origin)
            sent += 1
            assert reply.status_code == 403, path
            assert "another site" in WebPage(reply).text, path
            assert "set-cookie" not in reply.headers, path
    assert sent > 20
    assert api.footprint() == before
    assert api.sql("select password_hash from users order by email") == password
    assert stage.customer.http.get("/bookings").status_code == 200


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/tickets", "/tickets"),
        ("/events/1?seat=A-1&seat=A-2", "/events/1?seat=A-1&seat=A-2"),
        ("", "/"),
        ("tickets", "/"),
        ("//elsewhere.example", "/"),
        ("///elsewhere.example", "/"),
        ("/\\elsewhere.example", "/"),
        ("/a\\..\\b", "/"),
        ("\\\\elsewhere.example", "/"),
        ("https://elsewhere.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/\t/elsewhere.example", "/"),
        ("/\n/elsewhere.example", "/"),
        (" //elsewhere.example", "/"),
        ("/\x00", "/"),
        ("/\u2025/x", "/"),
        ("//[", "/"),
        ("/" + "a" * 2000, "/"),
    ],
)
def test_the_way_back_never_leads_to_another_site(wanted: str, reached: str) -> None:
    assert return_path(wanted) == reached
    assert account_path("/login", wanted).startswith("/login")


def test_a_login_leads_nowhere_but_here_whatever_its_form_says(api: RunningApi) -> None:
    api.customer("ada@example.org")
    http = api.stranger().http
    for wanted in ("//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example"):
        data = {"email": "ada@example.org", "password": "correct horse battery", "next": wanted}

        assert http.post("/login", data=data).headers["location"] == "/"


def test_pages_that_are_not_there_and_methods_that_are_not_theirs_say_so(api: RunningApi) -> None:
    http = api.stranger().http
    for path in ("/nowhere", "/bookings/", "/static/x/../app.py", "/events", "/static/0/none.css", "/%00"):
        assert http.get(path).status_code == 404, path
    reply = http.put("/login")
    assert (reply.status_code, set(reply.headers["allow"].split(", "))) == (405, {"GET", "HEAD", "POST"})
    assert WebPage(reply).title.startswith("This page cannot be asked that way")
    assert "no such page" in WebPage(http.get("/nowhere")).text


_TRIED = b"email=ada%40example.org&password=a+wrong+one"


def test_a_whole_form_with_a_wrong_password_is_only_wrong(api: RunningApi) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}

    assert api.stranger().http.post("/login", content=_TRIED, headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"a=" + b"x" * 70_000, {}, 413),
        # Each with an address and a password, which alone would be answered with 401.
        (_TRIED + b"&a=1" * 7000, {}, 400),
        (_TRIED + b"&a=%ff", {}, 400),
        (_TRIED + b"&a=\xff", {}, 400),
        (_TRIED + b"%00", {}, 400),
        (_TRIED + b"&%00=1", {}, 400),
        (b"{}", {"content-type": "application/json"}, 415),
        (b"--x--", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b"", {"content-encoding": "gzip"}, 415),
    ],
)
def test_a_form_that_no_browser_of_ours_sends_is_refused_with_a_page(
    api: RunningApi, content: bytes, headers: dict[str, str], status: int
) -> None:
    reply = api.stranger().http.post(
        "/login", content=content, headers={"content-type": "application/x-www-form-urlencoded", **headers}
    )

    assert reply.status_code == status
    assert WebPage(reply).all("h1")


def test_an_empty_form_is_answered_in_words_for_people(api: RunningApi) -> None:
    stage = _Stage(api)
    before = api.footprint()
    answered = 0
    for path in sorted({*page_paths("POST")} - {"/logout"}):
        for person in (stage.customer, stage.organiser):
            reply = person.http.post(_fill(path, stage.event_id, stage.booking_id), data={"nothing": ""})
            if reply.status_code == 303:  # nothing to do: its event is published, say
                continue
            answered += 1
            page = WebPage(reply)
            assert 400 <= page.status < 500, path
            assert not re.search(r"pattern|\^\[|[Ff]ield required|[Ii]nput should|idempotencyKey", page.text), page.text
    assert answered > 10
    assert api.footprint() == before


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/?cursor=" + "x" * 600, "cursor: Use at most 512 characters."),
        ("/?cursor=x", "not one of this list"),
        ("/bookings?cursor=" + "x" * 600, "cursor: Use at most 512 characters."),
        ("/organiser/events/{eventId}/bookings?search=" + "x" * 201, "search: Use at most 200 characters."),
    ],
)
def test_an_address_that_asks_for_what_cannot_be_is_told_what_is_wrong_with_it(
    api: RunningApi, path: str, told: str
) -> None:
    stage = _Stage(api)

    page = WebPage(stage.organiser.http.get(_fill(path, stage.event_id, "")))

    assert page.status == 400
    assert told in page.text


@pytest.mark.parametrize("text", ["%00", "a%00b", "%ff", "%ED%A0%80", "%F0%9F%8E%AB", "1e400", "9" * 400, "%27%3B--"])
def test_whatever_stands_in_the_query_of_a_page_is_no_fault_of_ours(api: RunningApi, text: str) -> None:
    stage = _Stage(api)
    names = ("cursor", "search", "next", "notice", "token", "seat", "view", "for", "key", "bucket", text)
    faults = []
    for path, person in stage.pages():
        if person is not stage.organiser and path.startswith("/organiser"):
            continue
        for query in ("&".join(f"{name}={text}" for name in names), f"cursor={text}", f"search={text}"):
            status = person.http.get(f"{path}?{query}").status_code
            if status >= 500 and status != 503:  # AWS is down: what needs it says so
                faults.append((path, query, status))
    assert faults == []


def test_a_fault_of_ours_is_a_page_that_tells_its_number_and_nothing_else(api: RunningApi) -> None:
    ada = api.customer().http
    api.sql("alter table events rename to elsewhere")
    try:
        reply = ada.get("/bookings", headers={"x-correlation-id": "0123456789abcdef"})
    finally:
        api.sql("alter table elsewhere rename to events")

    page = WebPage(reply)
    assert reply.status_code == 500
    assert "0123456789abcdef" in page.text
    assert not re.search("events rename|relation|Traceback|asyncpg", reply.text)
    assert "Log out" in page.text


def test_what_is_tried_too_often_says_when_to_come_back(api: RunningApi) -> None:
    http = api.stranger().http
    for _ in range(11):
        reply = http.post("/login", data={"email": "ada@example.org", "password": "wrong"})

    assert reply.status_code == 429
    assert int(reply.headers["retry-after"]) > 0
    assert "Too many attempts" in WebPage(reply).text


def test_static_files_are_kept_for_ever_and_travel_packed(api: RunningApi) -> None:
    http = api.stranger().http
    files, page = StaticFiles(), see(http, "/")
    style = page.all("link", rel="stylesheet")[0]["href"]

    reply = http.get(style)

    assert style == files.url("app.css")
    assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (reply.headers["content-encoding"], reply.headers["content-type"]) == ("gzip", "text/css; charset=utf-8")
    plain = http.get(style, headers={"accept-encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers
    assert plain.text == reply.text
    # A page of the release before, answered by this one: shown, not kept.
    old = http.get("/static/0123456789abcdef/app.css")
    assert (old.text, old.headers["cache-control"]) == (reply.text, "no-store")


def test_one_hash_changes_with_any_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    def version(name: str, content: str) -> str:
        folder = tmp_path_factory.mktemp("static")
        (folder / name).write_text(content)
        return StaticFiles(folder).version

    assert version("a.css", "x") == version("a.css", "x")
    assert len({version("a.css", "x"), version("a.css", "y"), version("b.css", "x")}) == 3


def test_the_service_worker_is_looked_for_each_time_and_may_fetch_from_here_alone(api: RunningApi) -> None:
    reply = api.stranger().http.get("/sw.js")

    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["content-type"].startswith("text/javascript")
    assert reply.headers["content-security-policy"] == "default-src 'none'; connect-src 'self'"


def test_only_the_local_platform_names_its_stage_and_leads_to_its_mailbox(
    migrated_database: Database, cache: Cache, aws_is_down: None
) -> None:
    def visit(look: Callable[[httpx.Client], None], **settings: str) -> None:
        api = RunningApi(api_environment(migrated_database, cache, **settings), migrated_database)
        api.start()
        try:
            look(api.stranger().http)
        finally:
            api.stop()

    def on_aws(http: httpx.Client) -> None:
        assert "/mail" not in see(http, "/").links
        assert http.get("/mail").status_code == 404

    def local(http: httpx.Client) -> None:
        page = see(http, "/")
        assert "Stage dev<b> on this machine" in page.text
        assert "/mail" in page.links
        assert http.get("/mail").headers["location"] == "http://127.0.0.1:4000/key"

    visit(on_aws)
    visit(local, LOCAL_MAILBOX_URL="http://127.0.0.1:4000/key", STAGE="dev<b>")
