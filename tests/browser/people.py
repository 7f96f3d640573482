"""What people do on the pages, as they would tell it: by what they read, never by how a page is built."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from playwright.sync_api import Page, expect

from tests.fixtures.browser import Window, Windows


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody with an account."""

    name: str
    email: str
    password: str


def somebody(name: str = "Ada Lovelace") -> Person:
    """A person whom the platform does not know yet."""
    return Person(
        name=name, email=f"person-{secrets.token_hex(6)}@example.org", password=f"correct horse {secrets.token_hex(6)}"
    )


def register(page: Page, person: Person) -> None:
    """Fill in the form of the page "Register"."""
    page.get_by_label("Name", exact=True).fill(person.name)
    page.get_by_label("Mail address").fill(person.email)
    page.get_by_label("Password").fill(person.password)
    page.get_by_role("main").get_by_role("button", name="Register").click()


def log_in(page: Page, person: Person) -> None:
    """Fill in the form of the page "Log in"."""
    page.get_by_label("Mail address").fill(person.email)
    page.get_by_label("Password").fill(person.password)
    page.get_by_role("main").get_by_role("button", name="Log in").click()


def customer(windows: Windows, window: Window) -> Person:
    """Somebody new who has registered in this window."""
    person = somebody()
    page = window.open("/register")
    register(page, person)
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.close()
    return person


def choose(page: Page, seats: Sequence[str]) -> None:
    """Choose seats on the map or in the list of an event."""
    for seat in seats:
        page.get_by_label(f"Seat {seat}", exact=True).check()


def book(page: Page, seats: Sequence[str]) -> None:
    """Choose seats of the event that is shown, and book them."""
    choose(page, seats)
    page.get_by_role("button", name=re.compile("^Book")).click()


def ready_booking(page: Page) -> str:
    """Wait until the booking that is shown has its tickets; its path."""
    expect(page.get_by_text("Tickets ready", exact=True)).to_be_visible(timeout=60_000)
    return page.url.partition("?")[0]


def describe_event(page: Page, *, title: str, day: date) -> None:
    """Fill in the form of a new event: 42 seats at EUR 25, at eight in the evening in Berlin."""
    page.get_by_label("Title").fill(title)
    page.get_by_label("Venue", exact=True).fill("Kulturhaus, Berlin")
    page.get_by_label("Start").fill(f"{day}T20:00")
    page.get_by_label("Time zone of the venue").fill("Europe/Berlin")
    page.get_by_label("Rows and seats").fill("A-C 10 | 5\nD 12")
    page.get_by_label("Price of a seat").fill("25.00")
    page.get_by_label("Currency").fill("EUR")
