"""With script switched off: events can be read, booked, cancelled and run by plain forms."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.people import choose, register, somebody
from tests.fixtures.browser import Windows
from tests.fixtures.platform import RunningPlatform

pytestmark = pytest.mark.browser


def _booked(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Book")).click()
    expect(page.get_by_role("heading", level=1, name="Your seats are booked")).to_be_visible()


def test_an_event_is_read_and_booked_and_its_ticket_shown_by_plain_forms(
    windows: Windows, platform: RunningPlatform
) -> None:
    event_id = platform.make_event(rows=(("A", 6),))
    window = windows.window("phone", script=False)
    page = window.open(f"/events/{event_id}")
    expect(page.get_by_role("heading", level=1, name="Test night")).to_be_visible()
    choose(page, ["A-1", "A-2"])
    page.get_by_role("button", name=re.compile("^Book")).click()
    page.get_by_role("main").get_by_role("link", name="Register").click()
    person = somebody()
    register(page, person)
    expect(page.get_by_label("Seat A-1", exact=True)).to_be_checked()
    _booked(page)
    assert platform.wait_for_mails(to=person.email)
    page.get_by_role("link", name="My tickets").click()
    code = page.get_by_role("img", name=re.compile("QR code for seat A-1"))
    for _ in range(20):
        if code.count():
            break
        page.reload()
    expect(code).to_be_visible()


def test_a_seat_that_went_is_named_and_the_rest_stays_chosen(windows: Windows, platform: RunningPlatform) -> None:
    event_id = platform.make_event(rows=(("A", 6),))
    window = windows.window(script=False)
    page = window.open("/register")
    register(page, somebody())
    page.goto(window.address(f"/events/{event_id}"))
    choose(page, ["A-1", "A-2"])
    platform.register().visitor.book(event_id=event_id, seats=["A-1"])

    page.get_by_role("button", name=re.compile("^Book")).click()

    expect(page.get_by_role("alert")).to_contain_text("A-1")
    expect(page.get_by_label("Seat A-1, sold")).to_be_disabled()
    expect(page.get_by_label("Seat A-2", exact=True)).to_be_checked()
    _booked(page)


def test_a_booking_is_cancelled_after_a_question_on_a_page_of_its_own(
    windows: Windows, platform: RunningPlatform
) -> None:
    event_id = platform.make_event(rows=(("A", 6),))
    window = windows.window(script=False)
    page = window.open("/register")
    register(page, somebody())
    page.goto(window.address(f"/events/{event_id}"))
    choose(page, ["A-3"])
    _booked(page)
    page.get_by_role("link", name=re.compile("^Cancel")).click()
    expect(page.get_by_role("heading", level=1, name="Cancel the booking?")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Cancel")).click()
    expect(page.get_by_text("Cancelled. The seats are on sale again.")).to_be_visible()
