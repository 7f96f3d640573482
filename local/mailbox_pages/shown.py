"""How a mail's parts are shown to people."""

import re
from datetime import date, datetime

from markupsafe import Markup, escape

_LINK = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)\]]")


def whole_day() -> date:
    """Today on this machine; ``clock_time`` depends on it."""
    return datetime.now().astimezone().date()


def clock_time(accepted_at: str) -> str:
    """A time (ISO 8601) in the zone of this machine, which is that of whoever reads it; with its date unless today."""
    moment = datetime.fromisoformat(accepted_at).astimezone()
    return f"{moment:%H:%M:%S}" if moment.date() == whole_day() else f"{moment:%Y-%m-%d %H:%M:%S}"


def linked(text: str) -> Markup:
    """A text with its addresses as links; everything else is escaped."""
    parts: list[str] = []
    end = 0
    for found in _LINK.finditer(text):
        address = escape(found.group())
        parts += [
            escape(text[end : found.start()]),
            f'<a href="{address}" target="_blank" rel="noopener">{address}</a>',
        ]
        end = found.end()
    return Markup("".join([*parts, escape(text[end:])]))  # noqa: S704 - each part is escaped


def size(data: bytes) -> str:
    """A size in the unit that keeps it short."""
    return f"{len(data)} bytes" if len(data) < 1024 else f"{len(data) / 1024:.1f} kB"
