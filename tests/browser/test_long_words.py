"""Names, titles and places of one word that does not end: every page still fits its screen."""

from datetime import date, timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.people import book, describe_event, register, somebody
from tests.fixtures.browser import Screen, Windows
from tests.fixtures.platform import RunningPlatform

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("screen", ["phone", "desktop"])
def test_no_page_grows_wider_than_its_screen_by_what_people_are_called(
    windows: Windows, platform: RunningPlatform, screen: Screen
) -> None:
    window = windows.window(screen)
    page = window.open("/register")
    person = somebody("N" * 200)
    register(page, person)
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    platform.session.run_task(["python", "-m", "minitickets_api.grant", person.email, "organiser"], environment={})
    page.goto(window.address("/organiser/events/new"))
    describe_event(page, title="W" * 200, day=date.today() + timedelta(days=40))
    page.get_by_label("Venue", exact=True).fill("M" * 200)
    page.get_by_label("Time zone of the venue").fill("America/Argentina/ComodRivadavia")
    page.get_by_role("button", name="Make the draft").click()
    own = page.url.partition("?")[0]
    page.goto(f"{own}/publish")
    page.get_by_role("button", name="Publish").click()
    event = window.address(f"/events/{own.rpartition('/')[2]}")
    page.goto(event)
    book(page, [f"A-{number}" for number in range(1, 11)])
    expect(page.get_by_role("heading", name="Your seats are booked")).to_be_visible()
    booking = page.url.partition("?")[0]

    wider = {}
    for address in (
        window.address("/"), event, f"{event}?view=list", booking, f"{booking}/cancel", window.address("/bookings"),
        window.address("/tickets"), window.address("/organiser"), own, f"{own}/edit", f"{own}/poster",
        f"{own}/bookings", f"{own}/bookings?search={'z' * 200}",
    ):  # fmt: skip
        page.goto(address)
        width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wider[address.removeprefix(window.address(""))] = width

    assert len(wider) == 13
    assert not {path: width for path, width in wider.items() if width > 0}
