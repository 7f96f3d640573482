"""An organiser makes an event, publishes it, gives it a poster, and sees what is sold."""

import io
import re
import secrets
from datetime import date, timedelta

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.people import Person, describe_event, log_in, register, somebody
from tests.fixtures.browser import Window, Windows
from tests.fixtures.platform import RunningPlatform

pytestmark = pytest.mark.browser


def organiser(windows: Windows, platform: RunningPlatform, window: Window) -> Person:
    """Somebody who has registered in this window, and was made an organiser by the command."""
    person = somebody("Grace Hopper")
    page = window.open("/register")
    register(page, person)
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    platform.session.run_task(["python", "-m", "minitickets_api.grant", person.email, "organiser"], environment={})
    page.close()
    return person


def _published(page: Page, *, title: str) -> str:
    """Make an event and publish it; the path of its page for the organiser."""
    page.get_by_role("link", name=re.compile("New event|Make your first event")).first.click()
    describe_event(page, title=title, day=date.today() + timedelta(days=40))
    page.get_by_role("button", name="Make the draft").click()
    expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
    path = page.url.partition("?")[0]
    page.get_by_role("link", name="Publish").click()
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("It is published")).to_be_visible()
    return path


def test_an_event_is_made_published_sold_moved_and_everybody_who_booked_is_told(
    windows: Windows, platform: RunningPlatform
) -> None:
    window = windows.window()
    organiser(windows, platform, window)
    title = f"Matinee {secrets.token_hex(3)}"
    page = window.open("/organiser")
    path = _published(page, title=title)
    event_id = path.rpartition("/")[2]
    guest = platform.register()
    guest.visitor.book(event_id=event_id, seats=["A-1", "D-12"])
    platform.wait_for_tickets(guest.visitor, count=2)
    platform.wait_for_mails(to=guest.email)

    page.goto(path)
    expect(page.get_by_text("Sold", exact=True).locator("xpath=following-sibling::dd")).to_have_text("2")
    expect(page.get_by_text("Revenue", exact=True).locator("xpath=following-sibling::dd")).to_contain_text("50.00")
    plot = page.get_by_role("img", name=re.compile("seat"))
    assert plot.first.evaluate("(image) => image.decode().then(() => image.naturalWidth > 0)")

    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_role("status").or_(page.get_by_text("2 seats are sold")).first).to_be_visible()
    moved = date.today() + timedelta(days=47)
    page.get_by_label("Start").fill(f"{moved}T18:30")
    page.get_by_role("button", name="Keep the changes").click()
    expect(page.get_by_text("mailed the new time and place")).to_be_visible()

    mails = platform.wait_for_mails(to=guest.email, count=2)
    assert any(f"{moved:%-d %B %Y}, 18:30" in mail["text"] for mail in mails)
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Rows and seats").fill("B-C 10\nD 12")
    page.get_by_role("button", name="Keep the changes").click()
    expect(page.get_by_role("alert")).to_contain_text("A-1")


def test_the_bookings_of_an_event_are_found_mailed_again_and_exported(
    windows: Windows, platform: RunningPlatform
) -> None:
    window = windows.window()
    organiser(windows, platform, window)
    page = window.open("/organiser")
    path = _published(page, title=f"Recital {secrets.token_hex(3)}")
    guest, other = platform.register(), platform.register()
    guest.visitor.book(event_id=path.rpartition("/")[2], seats=["A-1", "A-2"])
    other.visitor.book(event_id=path.rpartition("/")[2], seats=["B-1"])
    platform.wait_for_mails(to=guest.email)
    page.goto(f"{path}/bookings")
    expect(page.get_by_text(guest.email)).to_be_visible()
    expect(page.get_by_text(other.email)).to_be_visible()
    page.get_by_role("searchbox").fill(guest.email)
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text(other.email)).to_be_hidden()

    page.get_by_role("button", name=re.compile("^Send the mail again to Ada Lovelace")).click()
    expect(page.get_by_text("on its way once more")).to_be_visible()
    assert len(platform.wait_for_mails(to=guest.email, count=2)) == 2

    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download as CSV").click()
    exported = downloading.value.path().read_text(encoding="utf-8-sig")
    assert guest.email in exported
    assert "A-1" in exported


@pytest.mark.parametrize("script", [True, False])
def test_a_poster_goes_straight_to_the_bucket_and_is_checked_before_anybody_sees_it(
    windows: Windows, platform: RunningPlatform, script: bool
) -> None:
    window = windows.window(script=script)
    organiser(windows, platform, window)
    page = window.open("/organiser")
    path = _published(page, title=f"Gala {secrets.token_hex(3)}")
    page.goto(f"{path}/poster")
    page.get_by_label("Picture").set_input_files(_picture(b"this is no picture"))
    page.get_by_role("button", name="Upload").click()
    if not script:
        page.get_by_role("button", name="Check and publish").click()
    expect(page.get_by_role("alert")).to_contain_text("neither a PNG nor a JPEG nor a WebP")

    page.goto(f"{path}/poster")
    page.get_by_label("Picture").set_input_files(_picture(_poster()))
    page.get_by_role("button", name="Upload").click()
    if not script:
        page.get_by_role("button", name="Check and publish").click()
    expect(page.get_by_text("The poster is published")).to_be_visible()
    shown = page.get_by_role("img", name="Its poster")
    assert shown.evaluate("(image) => image.decode().then(() => image.naturalWidth > 0)") if script else True


def test_a_customer_is_told_that_organising_takes_a_role_and_no_form_grants_it(
    windows: Windows, platform: RunningPlatform
) -> None:
    window = windows.window()
    page = window.open("/register")
    person = somebody()
    register(page, person)
    page.goto(window.address("/organiser"))
    expect(page.get_by_role("main")).to_contain_text("organiser")
    expect(page.get_by_role("link", name="New event")).to_have_count(0)


def test_an_organiser_does_not_see_the_event_of_another(windows: Windows, platform: RunningPlatform) -> None:
    hers, his = windows.window(), windows.window()
    organiser(windows, platform, hers)
    him = organiser(windows, platform, his)
    path = _published(hers.open("/organiser"), title=f"Hers {secrets.token_hex(3)}")
    page = his.open("/organiser")
    if page.get_by_role("heading", level=1, name="Log in").count():
        log_in(page, him)
    for place in (path, f"{path}/edit", f"{path}/bookings", f"{path}/poster"):
        reply = page.goto(place)
        assert reply is not None
        assert reply.status == 404, place


def _picture(content: bytes) -> FilePayload:
    return {"name": "poster.png", "mimeType": "image/png", "buffer": content}


def _poster() -> bytes:
    picture = Image.new("RGB", (900, 600), (20, 60, 90))
    ImageDraw.Draw(picture).ellipse((300, 150, 600, 450), fill=(240, 180, 60))
    written = io.BytesIO()
    picture.save(written, "PNG")
    return written.getvalue()
