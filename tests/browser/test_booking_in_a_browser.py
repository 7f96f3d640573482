"""A customer books, sees what happens next, and holds tickets."""

import base64
import io
import json
import re

import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Page, expect

from local.processes import wait_until
from tests.browser.people import book, choose, customer, log_in, ready_booking, register, somebody
from tests.fixtures.browser import Windows
from tests.fixtures.platform import RunningPlatform

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def event_id(platform: RunningPlatform) -> str:
    return platform.make_event(rows=(("A", 12), ("B", 12), ("C", 12), ("D", 12)))


def test_a_customer_books_two_seats_and_sees_without_a_reload_how_their_tickets_come(
    windows: Windows, event_id: str, platform: RunningPlatform
) -> None:
    window = windows.window("phone")
    person = customer(windows, window)
    page = window.open("/")
    page.get_by_role("link", name="Test night").first.wait_for()
    page.goto(window.address(f"/events/{event_id}"))
    choose(page, ["A-1", "A-2"])
    expect(page.get_by_role("status").filter(has_text="A-1, A-2")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Book")).click()
    expect(page.get_by_role("heading", level=1, name="Your seats are booked")).to_be_visible()
    loaded = page.evaluate("performance.timeOrigin")

    ready_booking(page)

    assert page.evaluate("performance.timeOrigin") == loaded, "the page followed it by itself"
    expect(page.get_by_text(f"A mail is on its way to {person.email}").first).to_be_visible()
    expect(page.get_by_text("cannot see your inbox").first).to_be_visible()
    assert len(platform.wait_for_mails(to=person.email)) == 1


def test_every_code_on_the_page_of_tickets_can_be_scanned_from_the_screen(
    windows: Windows, event_id: str, platform: RunningPlatform
) -> None:
    window = windows.window("phone")
    customer(windows, window)
    page = window.open(f"/events/{event_id}")
    book(page, ["A-3", "A-4"])
    ready_booking(page)
    page.get_by_role("link", name="Show my tickets").click()

    codes = page.get_by_role("img", name=re.compile("^QR code for seat"))
    expect(codes).to_have_count(2)
    assert {_scanned(page, name) for name in ("A-3", "A-4")} == {"A-3", "A-4"}

    page.get_by_role("link", name=re.compile("QR code for seat A-3")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    box = dialog.get_by_role("img").bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 300, "large enough for a scanner at the door"
    page.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def _kept(page: Page) -> set[str]:
    """What the service worker keeps: paths, and the file names of QR codes."""
    paths: list[str] = page.evaluate(
        "caches.open('tickets').then((c) => c.keys()).then((keys) => keys.map((key) => new URL(key.url).pathname))"
    )
    return {path.rsplit("/", 1)[-1] if path.endswith(".png") else path for path in paths}


def test_tickets_once_opened_are_there_without_a_network_until_their_owner_logs_out(
    windows: Windows, event_id: str
) -> None:
    window = windows.window("phone")
    customer(windows, window)
    page = window.open(f"/events/{event_id}")
    book(page, ["A-5"])
    ready_booking(page)
    page.get_by_role("link", name="Show my tickets").click()
    expect(page.get_by_role("heading", level=1, name="My tickets")).to_be_visible()
    # Playwright's own wait_for_function takes a promise for a yes, whatever it comes to.
    wait_until("the page and its QR code are kept", lambda: _kept(page) >= {"/tickets", "A-5.png"}, seconds=20)

    window.context.set_offline(True)
    page.reload()
    expect(page.get_by_text("There is no connection")).to_be_visible()
    assert _scanned(page, "A-5") == "A-5"

    window.context.set_offline(False)
    page.reload()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_text("You are logged out")).to_be_visible()
    assert page.evaluate("caches.match('/tickets').then((kept) => kept === undefined)"), "nothing stays behind"


def test_the_choice_outlives_the_login_and_the_registration(windows: Windows, event_id: str) -> None:
    window = windows.window()
    page = window.open(f"/events/{event_id}")
    book(page, ["A-6", "A-7"])
    expect(page.get_by_role("heading", level=1, name="Log in")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="Register").click()
    register(page, somebody())

    expect(page.get_by_label("Seat A-6", exact=True)).to_be_checked()
    expect(page.get_by_label("Seat A-7", exact=True)).to_be_checked()
    page.get_by_role("button", name=re.compile("^Book")).click()
    expect(page.get_by_role("heading", level=1, name="Your seats are booked")).to_be_visible()


def test_of_two_browsers_that_choose_the_same_seat_one_books_and_the_other_sees_which_seat_went_and_goes_on(
    windows: Windows, event_id: str
) -> None:
    quick, slow = windows.window(), windows.window("phone")
    customer(windows, quick)
    customer(windows, slow)
    # His page does not see it coming: it cannot look while he chooses.
    slow.context.route("**/trpc/events.byId*", lambda route: route.abort())
    hers, his = quick.open(f"/events/{event_id}"), slow.open(f"/events/{event_id}")
    choose(hers, ["B-1"])
    choose(his, ["B-1", "B-2"])

    hers.get_by_role("button", name=re.compile("^Book")).click()
    expect(hers.get_by_role("heading", level=1, name="Your seats are booked")).to_be_visible()
    his.get_by_role("button", name=re.compile("^Book")).click()

    expect(his.get_by_text(re.compile(r"B-1\b.*(taken|sold|booked by somebody else)")).first).to_be_visible()
    expect(his.get_by_label("Seat B-1, sold")).to_be_disabled()
    expect(his.get_by_label("Seat B-2", exact=True)).to_be_checked()
    his.get_by_role("button", name=re.compile("^Book")).click()
    expect(his.get_by_role("heading", level=1, name="Your seats are booked")).to_be_visible()
    expect(his.get_by_text("B-2").first).to_be_visible()


def test_a_seat_that_somebody_else_books_meanwhile_is_named_on_the_map_without_a_reload_and_the_rest_is_kept(
    windows: Windows, event_id: str, platform: RunningPlatform
) -> None:
    window = windows.window()
    page = window.open(f"/events/{event_id}")
    choose(page, ["B-3", "B-4"])

    platform.register().visitor.book(event_id=event_id, seats=["B-3"])

    expect(page.get_by_text("B-3 was booked by somebody else a moment ago").first).to_be_attached(timeout=30_000)
    expect(page.get_by_label("Seat B-3, sold")).to_be_disabled()
    expect(page.get_by_label("Seat B-4", exact=True)).to_be_checked()


def test_the_list_is_as_good_as_the_map_and_keeps_the_choice(windows: Windows, event_id: str) -> None:
    window = windows.window("phone")
    customer(windows, window)
    page = window.open(f"/events/{event_id}")
    choose(page, ["C-1"])
    page.get_by_role("button", name="Show as a list").click()
    expect(page.get_by_label("Seat C-1", exact=True)).to_be_checked()
    book(page, ["C-2"])
    expect(page.get_by_role("heading", level=1, name="Your seats are booked")).to_be_visible()
    expect(page.get_by_text("C-1, C-2").first).to_be_visible()


def test_an_eleventh_seat_cannot_be_chosen_and_the_page_says_why(windows: Windows, event_id: str) -> None:
    page = windows.window().open(f"/events/{event_id}")
    choose(page, [f"D-{number}" for number in range(1, 11)])
    page.get_by_label("Seat D-11", exact=True).click()
    expect(page.get_by_label("Seat D-11", exact=True)).not_to_be_checked()
    expect(page.get_by_text(re.compile("10 seats")).first).to_be_visible()


def test_cancelling_asks_first_frees_the_seats_takes_the_tickets_away_and_is_mailed(
    windows: Windows, event_id: str, platform: RunningPlatform
) -> None:
    window = windows.window()
    person = customer(windows, window)
    page = window.open(f"/events/{event_id}")
    book(page, ["C-5"])
    ready_booking(page)
    page.get_by_role("link", name="Cancel the booking").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Keep it").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("link", name="Cancel the booking").click()
    dialog.get_by_role("button", name=re.compile("^Cancel")).click()

    expect(page.get_by_text("Cancelled. The seats are on sale again.")).to_be_visible()
    page.goto(window.address("/tickets"))
    expect(page.get_by_role("img", name=re.compile("C-5"))).to_have_count(0)
    page.goto(window.address(f"/events/{event_id}"))
    expect(page.get_by_label("Seat C-5", exact=True)).to_be_enabled()
    subjects = [mail["subject"] for mail in platform.wait_for_mails(to=person.email, count=2)]
    assert any("ancelled" in subject for subject in subjects), subjects


def test_a_forgotten_password_is_set_anew_by_the_mailed_link_once(windows: Windows, platform: RunningPlatform) -> None:
    window, other = windows.window(), windows.window()
    person = customer(windows, other)
    page = window.open("/login")
    page.get_by_role("link", name="Forgot your password?").click()
    page.get_by_label("Mail address").fill(person.email)
    page.get_by_role("button", name="Send the mail").click()
    expect(page.get_by_text("If that address has an account")).to_be_visible()
    [mail] = platform.wait_for_mails(to=person.email)
    link = re.search(r"https?://\S+/reset-password\?token=[\w-]+", mail["text"])
    code = re.search(r"^\s*([\w-]{40,})\s*$", mail["text"], re.MULTILINE)
    fresh = "another battery staple"
    if link is not None:
        page.goto(link[0])
    else:  # without a public address the mail has a code
        assert code is not None, mail["text"]
        page.goto(window.address("/reset-password"))
        page.get_by_label("Code from the mail").fill(code[1])
    used = page.url
    page.get_by_label("New password").fill(fresh)
    page.get_by_role("button", name="Set the password").click()
    expect(page.get_by_text("Your new password is set")).to_be_visible()
    page.get_by_label("Mail address").fill(person.email)
    page.get_by_label("Password").fill(fresh)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()

    elsewhere = other.open("/bookings")
    expect(elsewhere.get_by_role("heading", level=1, name="Log in")).to_be_visible()
    page.goto(used)
    if link is None:
        assert code is not None
        page.get_by_label("Code from the mail").fill(code[1])
    page.get_by_label("New password").fill("a third battery staple")
    page.get_by_role("button", name="Set the password").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("heading", level=1, name="Set a new password")).to_be_visible()


def test_logging_in_with_a_wrong_password_says_so_and_leads_nowhere(windows: Windows) -> None:
    window = windows.window("phone")
    person = customer(windows, window)
    page = window.open("/")
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Mail address").fill(person.email)
    page.get_by_label("Password").fill("not the right one at all")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    log_in(page, person)
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def _scanned(page: Page, seat: str) -> str:
    """The seat that a scanner reads from what the screen shows."""
    shown = page.get_by_role("img", name=re.compile(f"QR code for seat {seat}")).first
    shown.scroll_into_view_if_needed()
    shown.evaluate("(image) => image.decode()")
    frame = shown.locator("xpath=..").screenshot()
    [read] = zxingcpp.read_barcodes(Image.open(io.BytesIO(frame)))
    payload = read.text.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["seat"])
