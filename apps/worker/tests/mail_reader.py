"""A mail as its reader sees it: the page's visible text, and the calendar's entry."""

from datetime import datetime
from html.parser import HTMLParser

from icalendar import Calendar, Event

from minitickets_worker.mail import Mail


class Page(HTMLParser):
    """The tags, the links and the visible text of a mail's HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str | None] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


def twins(mail: Mail) -> tuple[str, str]:
    """What the mail says, in plain text and in HTML."""
    return mail.text, Page(mail.html).text


def calendar_bytes(mail: Mail) -> bytes:
    """The mail's one file."""
    [attachment] = mail.attachments
    return attachment.content


def calendar_of(mail: Mail) -> Calendar:
    """The mail's one file, parsed."""
    return Calendar.from_ical(calendar_bytes(mail))


def entry_of(mail: Mail) -> Event:
    """The one entry of the mail's file."""
    [entry] = calendar_of(mail).events
    return entry


def calendar_start(mail: Mail) -> datetime:
    """The entry's start, by the rules that the file itself carries."""
    start = entry_of(mail).DTSTART
    assert isinstance(start, datetime)
    return start


def shown_start(mail: Mail) -> str:
    """The date and time that the entry names, whatever the zone: ``20261231T200000``."""
    value = entry_of(mail)["DTSTART"].to_ical()
    assert isinstance(value, bytes)
    return value.decode("ascii").removesuffix("Z")
