"""The mailbox's pages over real sockets: what they show, what a hostile mail can do, and who gets in."""

import base64
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.loopback import serve
from local.mailbox import Mailbox
from local.mailbox_pages.pages import PER_PAGE, MailboxPages
from local.processes import free_port

pytestmark = pytest.mark.unit

HOSTILE = "<script>alert(1)</script>'\"><img src=x onerror=alert(1)>"


def request(
    *, to: str = "ada@example.org", subject: str = "Your tickets", text: str = "", html: str = "", **simple: Any
) -> dict[str, Any]:
    """A SendEmail as SES v2 gets it."""
    bodies = {"Text": {"Data": text}, "Html": {"Data": html}}
    body = {kind: data for kind, data in bodies.items() if data["Data"]}
    return {
        "FromEmailAddress": "tickets@example.org",
        "Destination": {"ToAddresses": [to]},
        "Content": {"Simple": {"Subject": {"Data": subject}, "Body": body, **simple}},
    }


class _Pages:
    def __init__(self, folder: Path) -> None:
        self.mailbox = Mailbox(folder)
        port = free_port()
        pages = MailboxPages(mailbox=self.mailbox, key="the-key", stage="dev")
        self.stop = serve("mailbox", port=port, answer=pages.answer)
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}/the-key/", trust_env=False)

    def keep(self, **mail: Any) -> str:
        self.mailbox.keep(request(**mail), message_id="m-1")
        return f"mails/{self.mailbox.names()[-1]}"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[_Pages]:
    pages = _Pages(tmp_path / "mailbox")
    yield pages
    pages.http.close()
    pages.stop()


def test_an_empty_mailbox_says_what_will_come(pages: _Pages) -> None:
    reply = pages.http.get("")
    assert reply.status_code == 200
    assert "No mail yet" in reply.text
    assert "<strong>dev</strong>" in reply.text


def test_the_newest_mail_stands_first(pages: _Pages) -> None:
    for subject in ("mail one", "mail two", "mail three"):
        pages.keep(subject=subject)

    text = pages.http.get("").text

    assert "3 mails" in text
    assert text.index("mail three") < text.index("mail two") < text.index("mail one")


def test_a_mail_is_shown_with_its_text_and_its_links_open_elsewhere(pages: _Pages) -> None:
    path = pages.keep(text="Your tickets: https://tickets.example/tickets?a=1&b=2. <b>Bye</b>")

    text = pages.http.get(path).text

    link = "https://tickets.example/tickets?a=1&amp;b=2"
    assert f'<a href="{link}" target="_blank" rel="noopener">{link}</a>. &lt;b&gt;Bye&lt;/b&gt;' in text
    assert "tickets@example.org" in text
    assert "ada@example.org" in text


def test_nothing_of_a_hostile_mail_becomes_part_of_the_page(pages: _Pages) -> None:
    attachment = {"FileName": HOSTILE, "ContentType": "text/html", "RawContent": base64.b64encode(HOSTILE.encode())}
    path = pages.keep(
        to=f"{HOSTILE}@example.org",
        subject=HOSTILE,
        text=HOSTILE,
        html=HOSTILE,
        Headers=[{"Name": HOSTILE, "Value": HOSTILE}],
        Attachments=[{**attachment, "RawContent": attachment["RawContent"].decode()}],  # type: ignore[attr-defined]  # it is bytes here
    )

    for page in ("", path, f"?q={HOSTILE}"):
        reply = pages.http.get(page)
        assert reply.status_code == 200
        assert "<script>alert" not in reply.text
        assert "<img" not in reply.text
        assert "script-src 'self';" in reply.headers["content-security-policy"]
        assert "unsafe" not in reply.headers["content-security-policy"]


def test_a_mails_html_may_look_as_it_likes_and_run_load_and_send_nothing(pages: _Pages) -> None:
    path = pages.keep(
        html="<!doctype html><html><head><title>x</title></head><body style='color: red'>Hi</body></html>"
    )

    frame = pages.http.get(f"{path}/html")

    policy = frame.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", "form-action 'none'"} <= set(policy)
    assert "sandbox allow-popups allow-popups-to-escape-sandbox" in policy
    assert "script-src" not in frame.headers["content-security-policy"]
    assert frame.text.startswith('<!doctype html><html><head><base target="_blank">')
    shown = pages.http.get(path).text
    assert f'<iframe src="/the-key/{path}/html"' in shown
    assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in shown


def test_an_attachment_is_downloaded_byte_for_byte_and_never_shown_as_a_page(pages: _Pages) -> None:
    data = b"<script>alert(1)</script>\x00\xff"
    path = pages.keep(
        Attachments=[
            {
                "FileName": 'Zoë".ics\r\nX-Evil: 1',
                "ContentType": "text/html",
                "RawContent": base64.b64encode(data).decode(),
            }
        ]
    )

    got = pages.http.get(f"{path}/attachments/0")

    assert (got.content, got.headers["content-type"]) == (data, "application/octet-stream")
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''Zo%C3%AB%22.ics%0D%0AX-Evil%3A%201"
    assert "x-evil" not in got.headers
    assert got.headers["x-content-type-options"] == "nosniff"
    assert pages.http.get(f"{path}/attachments/1").status_code == 404


def test_a_calendar_file_can_be_read_on_the_page(pages: _Pages) -> None:
    content = base64.b64encode(b"BEGIN:VCALENDAR\r\nSUMMARY:Night <of> Engines\r\n").decode()
    path = pages.keep(
        Attachments=[
            {"FileName": "event.ics", "ContentType": "text/calendar; method=REQUEST", "RawContent": content},
            {"FileName": "plan.png", "ContentType": "image/png", "RawContent": "iVBORw0KGgo="},
        ]
    )

    text = pages.http.get(path).text

    assert "SUMMARY:Night &lt;of&gt; Engines" in text
    assert "plan.png" in text
    assert text.count("<details>") == 1


def test_a_mail_that_was_sent_as_mime_is_shown_the_same_way(pages: _Pages) -> None:
    message = EmailMessage()
    message["Subject"], message["X-Kind"] = "Grüße ✓", "test"
    message.set_content("plain twin")
    message.add_alternative("<p>rich twin</p>", subtype="html")
    message.add_attachment(b"BEGIN:VCALENDAR", maintype="text", subtype="calendar", filename="event.ics")
    raw = {"Raw": {"Data": base64.b64encode(message.as_bytes()).decode()}}
    pages.mailbox.keep({**request(), "Content": raw}, message_id="m-2")
    path = f"mails/{pages.mailbox.names()[0]}"

    text = pages.http.get(path).text

    assert all(part in text for part in ("Grüße ✓", "plain twin", "X-Kind", "event.ics"))
    assert "<p>rich twin</p>" in pages.http.get(f"{path}/html").text
    assert pages.http.get(f"{path}/attachments/0").content == b"BEGIN:VCALENDAR"


def test_the_search_looks_into_recipients_and_subjects_in_any_case(pages: _Pages) -> None:
    pages.keep(to="ada@example.org", subject="Your booking: Größe")
    pages.keep(to="bob@example.org", subject="Your password")

    assert "bob@" not in pages.http.get("", params={"q": "GRÖSSE"}).text
    assert "ada@" not in pages.http.get("", params={"q": "Bob@"}).text
    assert "No mail to “carol”" in pages.http.get("", params={"q": "carol"}).text


def test_older_mails_are_on_further_pages_each_once(pages: _Pages) -> None:
    for number in range(PER_PAGE + 3):
        pages.keep(subject=f"mail-{number:03}-")

    first = pages.http.get("").text
    older = first.partition('<a href="/the-key/?')[2].partition('"')[0].replace("&amp;", "&")
    second = pages.http.get(f"?{older}").text

    for number in range(PER_PAGE + 3):
        assert (first + second).count(f"mail-{number:03}-") == 1
    assert "Older mails" in first
    assert "Older mails" not in second


def test_a_poll_without_news_costs_no_page_and_a_new_mail_ends_that(pages: _Pages) -> None:
    pages.keep()
    tag = pages.http.get("").headers["etag"]
    assert pages.http.get("", headers={"If-None-Match": tag}).status_code == 304

    pages.keep(subject="news")

    assert "news" in pages.http.get("", headers={"If-None-Match": tag}).text


def test_its_script_and_style_come_from_itself(pages: _Pages) -> None:
    text = pages.http.get("").text
    for name, kind in (("mailbox.js", "text/javascript"), ("mailbox.css", "text/css")):
        assert f"/the-key/{name}" in text
        assert pages.http.get(name).headers["content-type"].startswith(kind)


@pytest.mark.parametrize("path", ["/", "/other-key/", "/the-ke", "/the-key2/", "/mailbox.css", "/%E2%82%AC/"])
def test_without_its_key_nothing_is_told(pages: _Pages, path: str) -> None:
    pages.keep(subject="secret subject")
    reply = pages.http.get(f"http://127.0.0.1:{pages.http.base_url.port}{path}")

    assert reply.status_code == 404
    assert "secret subject" not in reply.text


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example:80", "localhost:80x", ""])
def test_a_site_whose_name_points_here_is_refused_even_with_the_key(pages: _Pages, host: str) -> None:
    pages.keep(subject="secret subject")
    reply = pages.http.get("", headers={"Host": host})

    assert reply.status_code == 403
    assert "secret subject" not in reply.text


def test_the_mailbox_opens_under_both_names_of_this_machine(pages: _Pages) -> None:
    for host in ("localhost:8000", "127.0.0.1", "LOCALHOST"):
        assert pages.http.get("", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "path", ["mails/x", "mails/..%2f..%2fmailbox-key", "mails/../../mailbox-key", "nothing", "pages.py", "../pages.py"]
)
def test_what_is_not_there_is_said_and_no_file_beside_the_mails_is_read(pages: _Pages, path: str) -> None:
    reply = pages.http.get(path)
    assert reply.status_code == 404


def test_a_mail_without_html_has_no_frame_and_no_page_of_it(pages: _Pages) -> None:
    path = pages.keep(text="plain")
    assert "<iframe" not in pages.http.get(path).text
    assert pages.http.get(f"{path}/html").status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed_through_the_pages(pages: _Pages, method: str) -> None:
    path = pages.keep()
    assert pages.http.request(method, path).status_code == 405
    assert len(pages.mailbox) == 1
