"""Each page on a phone and on a desk, in both colour schemes: pictured, audited, weighed."""

import re
import secrets
from datetime import date, timedelta

import pytest
from playwright.sync_api import Page, Response, expect

from tests.browser.people import book, describe_event, ready_booking, register, somebody
from tests.fixtures.browser import Screen, Window, Windows, look_at
from tests.fixtures.platform import RunningPlatform

pytestmark = pytest.mark.browser

MOST_BYTES = 150_000
_SCREENS: tuple[Screen, ...] = ("phone", "desktop")


@pytest.fixture(scope="module")
def event_id(platform: RunningPlatform) -> str:
    return platform.make_event(rows=tuple((row, 14) for row in "ABCDEFGH"))


class Scale:
    """What a page of ours weighs when it is opened for the first time: all that comes from our own origin."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._replies: list[Response] = []
        window.context.on("response", lambda reply: self._replies.append(reply))  # it takes no builtin

    def of(self, path: str) -> int:
        """Bytes on the wire of a page and what it loads, but for pictures that people uploaded."""
        self._replies.clear()
        page = self._window.open(path)
        page.wait_for_load_state("load")
        ours = [reply for reply in self._replies if reply.url.startswith(self._window.origin)]
        total = sum(reply.request.sizes()["responseBodySize"] for reply in ours)
        page.close()
        return total


@pytest.mark.parametrize("screen", _SCREENS)
def test_pages_for_everybody_are_pictured_and_accessible(windows: Windows, event_id: str, screen: Screen) -> None:
    window = windows.window(screen)
    for name, path in {
        "events": "/",
        "event": f"/events/{event_id}",
        "event-list": f"/events/{event_id}?view=list",
        "login": "/login",
        "register": "/register",
        "forgot-password": "/forgot-password",
        "reset-password": "/reset-password?token=made-up",
        "not-found": "/events/00000000-0000-4000-8000-000000000000",
    }.items():
        page = window.open(path)
        look_at(page, name, screen=screen)
        _fits(page, name)
        page.close()
    page = window.open("/login")
    page.get_by_label("Mail address").fill("nobody@example.org")
    page.get_by_label("Password").fill("nobody has this one")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    look_at(page, "login-refused", screen=screen)


@pytest.mark.parametrize("screen", _SCREENS)
def test_pages_of_a_customer_are_pictured_and_accessible(windows: Windows, event_id: str, screen: Screen) -> None:
    window = windows.window(screen)
    page = window.open("/register")
    register(page, somebody())
    for name, path in {"no-tickets": "/tickets", "no-bookings": "/bookings"}.items():
        page.goto(window.address(path))
        look_at(page, name, screen=screen)
    row = "A" if screen == "phone" else "B"
    page.goto(window.address(f"/events/{event_id}"))
    book(page, [f"{row}-1", f"{row}-2"])
    look_at(page, "booked", screen=screen)
    booking = ready_booking(page)
    look_at(page, "booking", screen=screen)
    page.get_by_role("link", name="Cancel the booking").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    look_at(page, "cancel-dialog", screen=screen)
    for name, path in {
        "tickets": window.address("/tickets"),
        "bookings": window.address("/bookings"),
        "cancel": f"{booking}/cancel",
    }.items():
        page.goto(path)
        look_at(page, name, screen=screen)
        _fits(page, name)
    page.goto(window.address("/tickets"))
    page.get_by_role("link", name=re.compile(f"QR code for seat {row}-1")).click()
    look_at(page, "ticket-bright", screen=screen)


@pytest.mark.parametrize("screen", _SCREENS)
def test_pages_of_an_organiser_are_pictured_and_accessible(
    windows: Windows, platform: RunningPlatform, screen: Screen
) -> None:
    window = windows.window(screen)
    page = window.open("/register")
    person = somebody("Grace Hopper")
    register(page, person)
    page.goto(window.address("/organiser"))
    look_at(page, "organiser-refused", screen=screen)
    platform.session.run_task(["python", "-m", "minitickets_api.grant", person.email, "organiser"], environment={})
    for name, path in {"organiser-empty": "/organiser", "organiser-new": "/organiser/events/new"}.items():
        page.goto(window.address(path))
        look_at(page, name, screen=screen)
        _fits(page, name)
    describe_event(page, title=f"Recital {secrets.token_hex(3)}", day=date.today() + timedelta(days=40))
    page.get_by_role("button", name="Make the draft").click()
    expect(page.get_by_role("link", name="Publish")).to_be_visible()
    own = page.url.partition("?")[0]
    look_at(page, "organiser-draft", screen=screen)
    page.goto(f"{own}/publish")
    look_at(page, "organiser-publish", screen=screen)
    page.get_by_role("button", name="Publish").click()
    customer = platform.register()
    customer.visitor.book(event_id=own.rpartition("/")[2], seats=["A-1", "A-2", "B-7"])
    for name, path in {
        "organiser-events": window.address("/organiser"),
        "organiser-event": own,
        "organiser-edit": f"{own}/edit",
        "organiser-poster": f"{own}/poster",
        "organiser-bookings": f"{own}/bookings",
    }.items():
        page.goto(path)
        look_at(page, name, screen=screen)
        _fits(page, name)


@pytest.mark.parametrize("screen", _SCREENS)
def test_the_mailbox_is_pictured_and_accessible(
    windows: Windows, platform: RunningPlatform, event_id: str, screen: Screen
) -> None:
    customer = platform.register()
    customer.visitor.book(event_id=event_id, seats=["H-1" if screen == "phone" else "H-2"])
    platform.wait_for_mails(to=customer.email)
    window = windows.window(screen)
    page = window.open("/")
    page.get_by_role("link", name="open the mailbox").click()
    look_at(page, "mailbox", screen=screen)
    page.get_by_role("link", name=re.compile("Test night")).first.click()
    look_at(page, "mail", screen=screen)


def test_no_page_weighs_more_than_150_kb_when_it_is_opened_for_the_first_time(windows: Windows, event_id: str) -> None:
    weights = {}
    for path in ("/", f"/events/{event_id}", f"/events/{event_id}?view=list", "/login", "/register"):
        weights[path] = Scale(windows.window()).of(path)  # a new window has nothing in its cache
    assert max(weights.values()) <= MOST_BYTES, weights


def _fits(page: Page, name: str) -> None:
    """Nothing makes the whole page scroll sideways."""
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"{name} is {wider} pixels wider than the screen"
