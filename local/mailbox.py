"""The mailbox: every mail that SES accepted, whole, a file each."""

import base64
import contextlib
import email
import email.policy
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from local.stage_folder import read_json, write_json

_NAME = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}-[0-9a-f]{6}")


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """A file in a mail. ``content_type`` is as the sender wrote it, with its parameters."""

    file_name: str
    content_type: str
    data: bytes

    def to_json(self) -> dict[str, str]:
        """With the bytes in base64."""
        return {
            "fileName": self.file_name,
            "contentType": self.content_type,
            "base64": base64.b64encode(self.data).decode(),
        }


@dataclass(frozen=True, kw_only=True)
class Mail:
    """An accepted mail. ``request`` is SES v2's SendEmail as the worker sent it; ``name`` is unique in the mailbox."""

    name: str
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

    @property
    def headers(self) -> list[tuple[str, str]]:
        """What the sender set beside sender, recipients and subject, in its order."""
        message = self._raw()
        if message is not None:
            return [(name, str(value)) for name, value in message.items()]
        replies = self.request.get("ReplyToAddresses") or []
        return [
            *(("Reply-To", str(address)) for address in replies),
            *((str(header.get("Name", "")), str(header.get("Value", ""))) for header in self._list("Headers")),
        ]

    @property
    def attachments(self) -> list[Attachment]:
        """Its files, in their order."""
        message = self._raw()
        if message is not None:
            return [
                Attachment(
                    file_name=part.get_filename() or "attachment",
                    content_type=str(part.get("Content-Type", part.get_content_type())),
                    data=_bytes(part.get_payload(decode=True)),
                )
                for part in message.iter_attachments()
            ]
        return [
            Attachment(
                file_name=str(attachment.get("FileName") or "attachment"),
                content_type=str(attachment.get("ContentType") or "application/octet-stream"),
                data=_decoded(attachment.get("RawContent")),
            )
            for attachment in self._list("Attachments")
        ]

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
            "attachments": [attachment.to_json() for attachment in self.attachments],
            "request": dict(self.request),
        }

    def _content(self, kind: str) -> dict[str, Any]:
        content = (self.request.get("Content") or {}).get(kind)
        return content if isinstance(content, dict) else {}

    def _simple(self, *path: str) -> str:
        part: Any = self._content("Simple")
        for key in (*path, "Data"):
            part = part.get(key) if isinstance(part, dict) else None
        return part if isinstance(part, str) else ""

    def _list(self, key: str) -> list[dict[str, Any]]:
        found = self._content("Simple").get(key)
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []

    def _raw(self) -> EmailMessage | None:
        data = self._content("Raw").get("Data")
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
        with self._lock:
            accepted_at = datetime.now(UTC)
            document = {"messageId": message_id, "acceptedAt": accepted_at.isoformat(), "request": dict(request)}
            write_json(self._folder / f"{accepted_at:%Y%m%dT%H%M%S.%f}-{secrets.token_hex(3)}.json", document)

    def names(self) -> list[str]:
        """The names of all mails, oldest first; reads none of them."""
        return sorted(path.stem for path in self._folder.glob("*.json"))

    def mail(self, name: str) -> Mail | None:
        """The mail of that name, None if there is none."""
        if not _NAME.fullmatch(name):  # else it would be a path
            return None
        document = read_json(self._folder / f"{name}.json")
        if document is None:
            return None
        return Mail(
            name=name,
            message_id=document["messageId"],
            accepted_at=document["acceptedAt"],
            request=document["request"],
        )

    def newest_first(self) -> Iterator[Mail]:
        """The mails one after another, each read when it is reached."""
        for name in reversed(self.names()):
            if (mail := self.mail(name)) is not None:
                yield mail

    def mails(self, *, to: str | None = None) -> list[Mail]:
        """All mails, oldest first; only those to one address if ``to`` is given."""
        found = list(self.newest_first())
        return [mail for mail in reversed(found) if to is None or to in mail.recipients]

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.glob("*.json"))


def _decoded(data: object) -> bytes:
    with contextlib.suppress(ValueError, TypeError):
        return base64.b64decode(data if isinstance(data, str) else "")
    return b""


def _bytes(payload: object) -> bytes:
    return payload if isinstance(payload, bytes) else b""
