"""Answers the mailbox's requests, on a port of its own: nothing of the control API can be reached from a page here.

Every address begins with a key, because other users of this machine reach its ports too; and no page of another site
gets in by a name of its own that it lets point here (DNS rebinding), because Host must be loopback's.
"""

import hashlib
import hmac
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from local.loopback import Reply, Request, json_reply, names_loopback
from local.mailbox import Attachment, Mail, Mailbox
from local.mailbox_pages.shown import clock_time, linked, size, whole_day

if TYPE_CHECKING:
    from jinja2 import Environment

PER_PAGE = 50
_HERE = Path(__file__).parent
_STATIC = {"mailbox.css": "text/css; charset=utf-8", "mailbox.js": "text/javascript; charset=utf-8"}
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A stranger's HTML: it may look as it likes, but runs, loads and sends nothing. Its links open in a tab of their own.
_MAIL_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox"
)
_FILE_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)
_HEAD = re.compile(r"<head[^>]*>", re.IGNORECASE)
_TEXT = re.compile(r"text/[a-z0-9.+-]+", re.IGNORECASE)


class MailboxPages:
    """Pages over ``mailbox`` below ``/<key>/``, for the stage of that name."""

    def __init__(self, *, mailbox: Mailbox, key: str, stage: str) -> None:
        self._mailbox = mailbox
        self._key = key
        self._stage = stage

    def answer(self, request: Request) -> Reply:
        """The reply to a request."""
        if not names_loopback(request):
            return _plain(403, "The mailbox answers to 127.0.0.1 and localhost only.")
        if request.method not in ("GET", "HEAD"):
            return _plain(405, "The mailbox is read, and nothing else.", ("Allow", "GET, HEAD"))
        address = urllib.parse.urlsplit(request.path)
        key, _, path = address.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(key.encode(), self._key.encode()):
            return _plain(404, "Open the mailbox by the address that `make local` prints.")
        query = dict(urllib.parse.parse_qsl(address.query))
        return self._find(path, query, request) or self._page("missing.html", status=404)

    def _find(self, path: str, query: dict[str, str], request: Request) -> Reply | None:
        match path.split("/"):
            case [""]:
                return self._list(query, request)
            case [name] if name in _STATIC:
                headers = (("Content-Type", _STATIC[name]), *_HEADERS)
                return Reply(body=(_HERE / "static" / name).read_bytes(), headers=headers)
            case ["mails.json"]:
                return json_reply([mail.to_json() for mail in self._mailbox.newest_first()])
            case ["mails", name, *part]:
                mail = self._mailbox.mail(name)
                return None if mail is None else self._part(mail, part)
        return None

    def _part(self, mail: Mail, part: list[str]) -> Reply | None:
        match part:
            case []:
                return self._page("mail.html", mail=mail, attachments=list(map(_shown, mail.attachments)))
            case ["html"] if mail.html:
                return _reply(_opening_links_outside(mail.html).encode(), "text/html; charset=utf-8", _MAIL_POLICY)
            case ["request.json"]:
                body = json.dumps(dict(mail.request), indent=2, ensure_ascii=False).encode()
                return _reply(body, "application/json", _FILE_POLICY)
            case ["attachments", number] if re.fullmatch(r"[0-9]{1,4}", number):
                attachment = next(islice(mail.attachments, int(number), None), None)
                return None if attachment is None else _download(attachment)
        return None

    def _list(self, query: dict[str, str], request: Request) -> Reply:
        names = self._mailbox.names()
        # What the page shows follows from these alone, so that a poll without news reads no mail.
        seen = json.dumps([names[-1:], len(names), query, f"{whole_day()}"]).encode()
        tag = f'"{hashlib.sha256(seen).hexdigest()[:32]}"'
        if request.header("If-None-Match") == tag:
            return Reply(status=304, headers=(("ETag", tag), *_HEADERS))
        searched, before = query.get("q", "").strip(), query.get("before", "")
        found = list(islice(self._matching(searched, before), PER_PAGE + 1))
        reply = self._page(
            "list.html",
            mails=found[:PER_PAGE],
            total=len(names),
            searched=searched,
            is_first=not before,
            older=urllib.parse.urlencode({"q": searched, "before": found[PER_PAGE - 1].name})
            if len(found) > PER_PAGE
            else None,
        )
        return Reply(status=reply.status, body=reply.body, headers=(*reply.headers, ("ETag", tag)))

    def _matching(self, searched: str, before: str) -> Iterator[Mail]:
        for mail in self._mailbox.newest_first():
            if before and mail.name >= before:
                continue
            if searched.casefold() in "\n".join([mail.subject, *mail.recipients]).casefold():
                yield mail

    def _page(self, template: str, *, status: int = 200, **values: object) -> Reply:
        text = _environment().get_template(template).render(stage=self._stage, root=f"/{self._key}/", **values)
        return _reply(text.encode(), "text/html; charset=utf-8", _PAGE_POLICY, status=status)


@cache
def _environment() -> "Environment":
    # Nobody may ever look: the platform's start does not wait for it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    found = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown: dict[str, Callable[..., object]] = {"clock_time": clock_time, "linked": linked, "size": size}
    found.filters.update(shown)
    return found


def _shown(attachment: Attachment) -> tuple[Attachment, str | None]:
    """With its text, if it is one."""
    if not _TEXT.match(attachment.content_type):
        return attachment, None
    return attachment, attachment.data.decode(errors="replace")


def _opening_links_outside(html: str) -> str:
    """A frame that may show nothing else must not be navigated by the mail's links."""
    base = '<base target="_blank">'
    found = _HEAD.search(html)
    return f"{html[: found.end()]}{base}{html[found.end() :]}" if found else f"{base}{html}"


def _download(attachment: Attachment) -> Reply:
    name = urllib.parse.quote(attachment.file_name, safe="")
    # Not its own type: it is a file to keep, never a page of this origin.
    reply = _reply(attachment.data, "application/octet-stream", _FILE_POLICY)
    disposition = ("Content-Disposition", f"attachment; filename*=UTF-8''{name}")
    return Reply(body=reply.body, headers=(*reply.headers, disposition))


def _reply(body: bytes, content_type: str, policy: str, *, status: int = 200) -> Reply:
    headers = (("Content-Type", content_type), ("Content-Security-Policy", policy), *_HEADERS)
    return Reply(status=status, body=body, headers=headers)


def _plain(status: int, text: str, *more: tuple[str, str]) -> Reply:
    reply = _reply(f"{text}\n".encode(), "text/plain; charset=utf-8", _FILE_POLICY, status=status)
    return Reply(status=status, body=reply.body, headers=(*reply.headers, *more))
