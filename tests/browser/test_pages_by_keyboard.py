"""Everything with the keyboard alone, and one can always see where one is."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.people import customer
from tests.fixtures.browser import Windows
from tests.fixtures.platform import RunningPlatform

pytestmark = pytest.mark.browser

_MOST_TABS = 60


def _tab_to(page: Page, what: str) -> None:
    """Press Tab until the focus is on something whose name begins so."""
    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        name: str = page.evaluate(
            "() => { const e = document.activeElement;"
            " return (e.getAttribute('aria-label') || (e.labels && e.labels[0] && e.labels[0].innerText)"
            " || e.innerText || '').trim(); }"
        )
        if name.startswith(what):
            assert _is_marked(page), f"nothing shows that {what} has the focus"
            return
    raise AssertionError(f"Tab does not reach {what}")


def _is_marked(page: Page) -> bool:
    """Whether the focused element, or what stands for it, has an outline or a shadow."""
    marked: bool = page.evaluate(
        "() => { const e = document.activeElement; const all = [e, e.nextElementSibling, e.parentElement];"
        " return all.some((one) => { if (!one) return false; const style = getComputedStyle(one);"
        " return (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none';"
        " }); }"
    )
    return marked


def test_somebody_registers_books_and_cancels_with_the_keyboard_alone(
    windows: Windows, platform: RunningPlatform
) -> None:
    event_id = platform.make_event(rows=(("A", 5), ("B", 5)))
    page = windows.window().open(f"/events/{event_id}")
    _tab_to(page, "Seat A-1")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    for seat in ("A-1", "A-2", "B-2"):
        expect(page.get_by_label(f"Seat {seat}", exact=True)).to_be_checked()
    _tab_to(page, "Book 3 seats")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Log in")).to_be_visible()
    _tab_to(page, "Register")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/register"))
    for label, text in (
        ("Name", "Ada Lovelace"),
        ("Mail address", f"keys-{event_id[:8]}@example.org"),
        ("Password", "keys and nothing but keys"),
    ):
        _tab_to(page, label)
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Seat B-2", exact=True)).to_be_checked()
    _tab_to(page, "Book 3 seats")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Your seats are booked")).to_be_visible()

    _tab_to(page, "Cancel the booking")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    _tab_to(page, "Cancel the booking")
    page.keyboard.press("Enter")
    _tab_to(page, "Cancel")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Cancelled. The seats are on sale again.")).to_be_visible()


def test_the_first_stop_leads_past_the_navigation(windows: Windows) -> None:
    page = windows.window().open("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")


def test_a_wrong_form_moves_the_focus_to_what_is_wrong(windows: Windows) -> None:
    window = windows.window()
    customer(windows, window)
    page = window.open("/")
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Mail address").fill("nobody@example.org")
    page.get_by_label("Password").fill("nobody has this password")
    page.keyboard.press("Enter")
    problems = page.get_by_role("alert")
    expect(problems).to_be_visible()
    expect(problems).to_be_focused()
    expect(page).to_have_title(re.compile("^Error"))
