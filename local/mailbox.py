"""The mailbox: every mail that SES accepted, whole, a file each."""

import base64
import contextlib
import email
import email.policy
import html
import json
import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local.stage_folder import read_json, write_json


@dataclass(frozen=True, kw_only=True)
class Mail:
    """An accepted mail. ``request`` is SES v2's SendEmail as the worker sent it."""

    message_id: str
    accepted_at: str  # ISO 8601, UTC
    request: Mapping[str, Any]

    @property
    def recipients(self) -> list[str]:
        destination = self.request.get("Destination") or {}
        return [
            address
            for kind in ("ToAddresses", "CcAddresses", "BccAddresses")
            for address in destination.get(kind) or []
        ]

    @property
    def sender(self) -> str:
        return str(self.request.get("FromEmailAddress", ""))

    @property
    def subject(self) -> str:
        return self._simple("Subject") or self._raw_header("Subject")

    @property
    def text(self) -> str:
        return self._simple("Body", "Text") or self._raw_body("plain")

    @property
    def html(self) -> str:
        return self._simple("Body", "Html") or self._raw_body("html")

    def to_json(self) -> dict[str, Any]:
        """All of it, with what a reader looks for first."""
        return {
            "messageId": self.message_id,
            "acceptedAt": self.accepted_at,
            "from": self.sender,
            "to": self.recipients,
            "subject": self.subject,
            "text": self.text,
            "html": self.html,
            "request": dict(self.request),
        }

    def _simple(self, *path: str) -> str:
        part: Any = (self.request.get("Content") or {}).get("Simple") or {}
        for key in (*path, "Data"):
            part = part.get(key) if isinstance(part, dict) else None
        return part if isinstance(part, str) else ""

    def _raw(self) -> email.message.EmailMessage | None:
        data = ((self.request.get("Content") or {}).get("Raw") or {}).get("Data")
        if not isinstance(data, str):
            return None
        with contextlib.suppress(ValueError):
            return email.message_from_bytes(base64.b64decode(data), policy=email.policy.default)
        return None

    def _raw_header(self, name: str) -> str:
        message = self._raw()
        return str(message[name] or "") if message is not None else ""

    def _raw_body(self, kind: str) -> str:
        message = self._raw()
        body = message.get_body((kind,)) if message is not None else None
        return str(body.get_content()) if body is not None else ""


class Mailbox:
    """Mails in the order of their acceptance, below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)

    def keep(self, request: Mapping[str, Any], *, message_id: str) -> None:
        """Put a mail on disk."""
        accepted_at = datetime.now(UTC)
        document = {"messageId": message_id, "acceptedAt": accepted_at.isoformat(), "request": dict(request)}
        with self._lock:
            write_json(self._folder / f"{accepted_at:%Y%m%dT%H%M%S.%f}-{secrets.token_hex(3)}.json", document)

    def mails(self, *, to: str | None = None) -> list[Mail]:
        """All mails, oldest first; only those to one address if ``to`` is given."""
        found = (_read(path) for path in sorted(self._folder.glob("*.json")))
        return [mail for mail in found if to is None or to in mail.recipients]

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.glob("*.json"))


def _read(path: Path) -> Mail:
    document = read_json(path)
    return Mail(message_id=document["messageId"], accepted_at=document["acceptedAt"], request=document["request"])


def mailbox_page(mails: list[Mail]) -> str:
    """The mails as a page, newest first. A mail's HTML is shown in a frame that may run and load nothing."""
    return "".join(_page(list(reversed(mails))))


def _page(mails: list[Mail]) -> Iterator[str]:
    yield (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Mailbox</title>"
        "<meta name=viewport content='width=device-width'><style>"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
        "details{border-top:1px solid #ccc;padding:.5rem 0}summary{cursor:pointer}"
        "pre{white-space:pre-wrap;background:#f6f6f6;padding:1rem}iframe{width:100%;height:24rem;border:1px solid #ccc}"
        "</style><h1>Mailbox</h1>"
    )
    count = {0: "No mail yet", 1: "One mail"}.get(len(mails), f"{len(mails)} mails, newest first")
    yield f"<p>{count}: what the local SES accepts comes here. Reload for more.</p>"
    for position, mail in enumerate(mails):
        recipients = html.escape(", ".join(mail.recipients))
        yield (
            f"<details{'' if position else ' open'}><summary><strong>{html.escape(mail.subject)}</strong> "
            f"to {recipients} "
            f"<time datetime='{html.escape(mail.accepted_at)}'>{_shown(mail.accepted_at)}</time></summary>"
            f"<p>From {html.escape(mail.sender)}</p><pre>{html.escape(mail.text)}</pre>"
        )
        if mail.html:
            yield f"<iframe sandbox srcdoc='{html.escape(mail.html, quote=True)}' title='The mail as HTML'></iframe>"
        yield "</details>"
    yield "</html>"


def _shown(accepted_at: str) -> str:
    """In the zone of this machine, which is that of whoever reads it."""
    return f"{datetime.fromisoformat(accepted_at).astimezone():%Y-%m-%d %H:%M:%S}"


def mails_as_json(mails: list[Mail]) -> bytes:
    """The mails as a JSON list."""
    return json.dumps([mail.to_json() for mail in mails]).encode()
