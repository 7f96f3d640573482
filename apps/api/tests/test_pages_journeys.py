"""What a customer does on the pages, without any script: plain forms over real HTTP."""

from uuid import uuid4

import pytest

from tests.fixtures.running_api import PASSWORD, RunningApi
from tests.fixtures.web_pages import WebPage, follow, see, send

pytestmark = pytest.mark.integration


def test_somebody_new_registers_books_and_cancels_with_forms_alone(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=3)
    http = api.stranger().http
    front = see(http, "/")
    assert f"/events/{event_id}" in front.links

    event = see(http, f"/events/{event_id}")
    form = event.form(f"/events/{event_id}/book")
    assert form.choices["seat"] == ["A-1", "A-2", "A-3"]
    login = follow(http, send(http, form, seat=["A-1", "A-3"]))
    assert "with your seats still chosen" in login.text
    # The header's link and the form's lead back to the same place.
    [to_register] = {link for link in login.links if link.startswith("/register")}
    registration = see(http, to_register).form("/register")
    email = f"{uuid4().hex}@example.org"
    back = follow(http, send(http, registration, name="Ada", email=email, password=PASSWORD))

    form = back.form(f"/events/{event_id}/book")
    assert form.values("seat") == ["A-1", "A-3"]
    booked = follow(http, send(http, form))
    assert booked.text.count("A-1, A-3") == 2  # the facts, and the question whether to cancel
    assert "USD 50.00" in booked.text

    [booking] = api.sql("select booking_id from bookings")
    path = f"/bookings/{booking['booking_id']}"
    assert path in see(http, "/bookings").links
    cancelled = follow(http, send(http, see(http, f"{path}/cancel").form(f"{path}/cancel")))
    assert "The seats are on sale again" in cancelled.text
    assert "Cancelled" in see(http, "/bookings").text
    assert see(http, f"/events/{event_id}").form(f"/events/{event_id}/book").choices["seat"] == ["A-1", "A-2", "A-3"]
    # There is nothing left to ask.
    assert "was cancelled" in see(http, f"{path}/cancel").text


def test_seats_that_somebody_else_was_faster_with_are_named_and_the_rest_stays_chosen(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=4)
    ada, path = api.customer().http, f"/events/{event_id}/book"
    form = see(ada, f"/events/{event_id}").form(path)
    api.customer().book(event_id, "A-2", "A-3")

    reply = send(ada, form, seat=["A-1", "A-2", "A-3"])

    page = WebPage(reply)
    assert page.status == 409
    assert "A-2, A-3 were booked by somebody else a moment ago. The rest of your choice is still here" in page.text
    assert page.form(path).values("seat") == ["A-1"]
    assert [seat["value"] for seat in page.all("input", name="seat", disabled="")] == ["A-2", "A-3"]
    assert "Seat A-1" in follow(ada, send(ada, page.form(path))).text


def test_who_loses_the_whole_choice_is_told_to_choose_others(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=2)
    ada, path = api.customer().http, f"/events/{event_id}/book"
    form = see(ada, f"/events/{event_id}").form(path)
    api.customer().book(event_id, "A-1")

    page = WebPage(send(ada, form, seat="A-1"))

    assert "A-1 was booked by somebody else a moment ago. Choose others." in page.text
    assert page.form(path).values("seat") == []


def test_a_seat_that_is_sold_during_the_login_is_named(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=3)
    http, path = api.stranger().http, f"/events/{event_id}/book"
    ada = f"{uuid4().hex}@example.org"
    api.customer(ada)
    login = follow(http, send(http, see(http, f"/events/{event_id}").form(path), seat=["A-1", "A-2"]))
    api.customer().book(event_id, "A-2")

    page = follow(http, send(http, login.form("/login"), email=ada, password=PASSWORD))

    assert "A-2 is sold by now. The rest of your choice is still here." in page.text
    assert page.form(path).values("seat") == ["A-1"]


@pytest.mark.parametrize(
    ("seats", "advice"), [([], "Choose at least 1."), ([f"A-{n}" for n in range(1, 12)], "Choose at most 10.")]
)
def test_no_seat_and_eleven_are_refused_beside_the_map(api: RunningApi, seats: list[str], advice: str) -> None:
    event_id = api.event(api.organiser(), seats=12)
    ada, path = api.customer().http, f"/events/{event_id}/book"

    page = WebPage(send(ada, see(ada, f"/events/{event_id}").form(path), seat=seats))

    assert (page.status, page.form(path).values("seat")) == (400, seats)
    assert advice in page.text
    assert "#seats" in page.links
    assert page.title.startswith("Not booked")
    assert api.footprint()["bookings"] == 0


def test_a_form_that_is_sent_twice_books_once_and_leads_to_the_same_booking(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer().http
    form = see(ada, f"/events/{event_id}").form(f"/events/{event_id}/book")

    first, second = send(ada, form, seat="A-1"), send(ada, form, seat="A-1")

    assert first.headers["location"] == second.headers["location"]
    assert api.footprint()["bookings"] == 1


def test_going_back_and_choosing_other_seats_in_a_form_that_was_sent_is_told_and_can_go_on(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada, path = api.customer().http, f"/events/{event_id}/book"
    form = see(ada, f"/events/{event_id}").form(path)
    send(ada, form, seat="A-1")

    page = WebPage(send(ada, form, seat="A-2"))

    assert (page.status, page.form(path).values("seat")) == (409, ["A-2"])
    assert "had been sent before" in page.text
    assert follow(ada, send(ada, page.form(path))).status == 200
    assert api.footprint()["bookings"] == 2


def test_map_and_list_offer_the_same_seats_and_keep_the_choice(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=5)
    api.customer().book(event_id, "A-4")
    http, path = api.stranger().http, f"/events/{event_id}/book"

    in_map = see(http, f"/events/{event_id}?seat=A-2&view=map")
    in_list = see(http, f"/events/{event_id}?seat=A-2&view=list")

    assert in_map.form(path).choices == in_list.form(path).choices == {"seat": ["A-1", "A-2", "A-3", "A-5"]}
    assert in_map.form(path).values("seat") == in_list.form(path).values("seat") == ["A-2"]
    # A list stays one after a refusal, and through the login.
    [switch] = [form for form in in_list.forms if "Show as a map" in form.buttons]
    assert switch.values("view") == ["list"]
    assert send(http, in_list.form(path)).headers["location"].endswith("%3Fseat%3DA-2%26view%3Dlist")
    # In words what the map shows by its marks.
    assert "Seat A-4, sold" in in_list.text
    assert [seat["aria-label"] for seat in in_map.all("input", name="seat")][3:] == ["Seat A-4, sold", "Seat A-5"]


def test_what_is_wrong_with_a_registration_stands_beside_its_field_and_passwords_are_not_sent_back(
    api: RunningApi,
) -> None:
    http = api.stranger().http
    form = see(http, "/register?next=/tickets").form("/register")

    reply = send(http, form, name="Ada", email="nobody", password="shorty")

    page = WebPage(reply)
    assert (page.status, page.title) == (400, "Error: Register · MiniTickets")
    [email] = page.all("input", id="email")
    assert (email["value"], email["aria-invalid"]) == ("nobody", "true")
    assert "email-problem" in email["aria-describedby"]
    assert page.all("p", id="email-problem")
    assert page.all("p", id="password-problem")
    assert {"#email", "#password"} <= set(page.links)
    assert page.all("div", id="problems", role="alert", autofocus="")
    assert page.form("/register").values("next") == ["/tickets"]
    assert "shorty" not in reply.text


def test_an_address_with_an_account_is_told_to_log_in(api: RunningApi) -> None:
    api.customer("ada@example.org")
    http = api.stranger().http

    page = WebPage(
        send(http, see(http, "/register").form("/register"), name="A", email="Ada@Example.org", password=PASSWORD)
    )

    assert page.status == 409
    assert "Log in instead" in page.text


def test_a_wrong_password_keeps_the_address_and_the_way_back(api: RunningApi) -> None:
    api.customer("ada@example.org")
    http = api.stranger().http
    form = see(http, "/login?next=/bookings").form("/login")

    page = WebPage(send(http, form, email="ada@example.org", password="something else"))

    assert page.status == 401
    assert "The address or the password is wrong." in page.text
    again = page.form("/login")
    assert (again.values("email"), again.values("next"), again.values("password")) == (
        ["ada@example.org"],
        ["/bookings"],
        [""],
    )
    assert follow(http, send(http, again, password=PASSWORD)).title.startswith("Bookings")


def test_logging_out_ends_the_session_and_tells_the_browser_to_forget(api: RunningApi) -> None:
    ada = api.customer().http
    session = ada.cookies["session"]

    reply = send(ada, see(ada, "/logout").forms[-1])

    assert reply.headers["clear-site-data"] == '"storage"'
    assert "logged out" in follow(ada, reply).text
    assert "session" not in ada.cookies
    again = api.stranger().http.get("/bookings", headers={"cookie": f"session={session}"})
    assert again.headers["location"] == "/login?next=/bookings"


def test_a_forgotten_password_is_answered_alike_for_every_address(api: RunningApi) -> None:
    api.customer("ada@example.org")
    http = api.stranger().http
    form = see(http, "/forgot-password").form("/forgot-password")

    known, unknown = send(http, form, email="ada@example.org"), send(http, form, email="nobody@example.org")

    assert known.headers["location"] == unknown.headers["location"]
    assert "If that address has an account" in follow(http, known).text
    assert "Mail address" in WebPage(send(http, form, email="nobody")).text


def test_a_mailed_token_sets_a_new_password_once(api: RunningApi) -> None:
    ada = api.customer("ada@example.org")
    http = api.stranger().http
    send(http, see(http, "/forgot-password").form("/forgot-password"), email="ada@example.org")
    [row] = api.sql("select body::jsonb ->> 'token' as token from outbox where body like '%password.reset-requested%'")
    form = see(http, f"/reset-password?token={row['token']}").form("/reset-password")

    too_short = WebPage(send(http, form, password="short"))
    reply = send(http, too_short.form("/reset-password"), password="a new and longer one")

    assert "Your new password is set" in follow(http, reply).text
    assert ada.http.get("/bookings").status_code == 303
    login = see(http, "/login").form("/login")
    assert send(http, login, email="ada@example.org", password="a new and longer one").status_code == 303
    stranger = api.stranger().http
    page = WebPage(send(stranger, form, password="yet another one of mine"))
    assert page.status in (400, 409)
    assert page.form("/reset-password").values("token")
