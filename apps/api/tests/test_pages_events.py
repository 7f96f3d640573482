"""The list of events and one event's page."""

from uuid import uuid4

import pytest

from tests.fixtures.running_api import RunningApi
from tests.fixtures.web_pages import MAX_FIRST_LOAD_BYTES, WebPage, first_load_bytes, see, send

pytestmark = pytest.mark.integration


def test_an_empty_list_says_so(api: RunningApi) -> None:
    assert "Nothing is on sale just now" in see(api.stranger().http, "/").text


def test_an_event_is_listed_with_its_own_date_zone_place_price_and_what_is_left(api: RunningApi) -> None:
    organiser = api.organiser()
    event_id, sold = api.event(organiser, seats=12), api.event(organiser, seats=1, starts="31 days")
    draft, begun = api.event(organiser, published=False), api.event(organiser, starts="-1 hour")
    api.sql("update events set starts_at = '2099-01-01T07:30:00Z' where event_id = $1", event_id)
    api.customer().book(sold, "A-1")

    page = see(api.stranger().http, "/")

    # New Year's Eve at the venue, although it is the first of January in UTC.
    assert "Wednesday, 31 December 2098, 23:30 (America/Los_Angeles, UTC-08:00)" in page.text
    for words in ("Night of Engines", "Old Mill", "USD 25.00", "12 seats left", "Sold out"):
        assert words in page.text
    assert [link for link in page.links if link.startswith("/events/")] == [f"/events/{sold}", f"/events/{event_id}"]
    assert draft not in page.text
    assert begun not in page.text


def test_later_events_are_a_page_further(api: RunningApi) -> None:
    organiser = api.organiser()
    listed = [api.event(organiser, seats=1, starts=f"{day} days") for day in range(1, 27)]
    http = api.stranger().http

    first = see(http, "/")
    [later] = [link for link in first.links if "cursor=" in link]
    rest = see(http, later)

    shown = [link.removeprefix("/events/") for page in (first, rest) for link in page.links if "/events/" in link]
    assert shown == listed
    assert http.get("/?cursor=nonsense").status_code == 400


def test_a_draft_is_shown_to_its_organiser_alone(api: RunningApi) -> None:
    organiser = api.organiser()
    path = f"/events/{api.event(organiser, published=False)}"

    assert "This is a draft" in see(organiser.http, path).text
    for other in (api.stranger(), api.customer(), api.organiser()):
        assert other.http.get(path).status_code == 404


def test_a_draft_says_that_it_cannot_be_booked_yet_to_who_tries_and_is_nothing_to_others(api: RunningApi) -> None:
    organiser = api.organiser()
    path = f"/events/{api.event(organiser, published=False)}"
    form = see(organiser.http, path).form(f"{path}/book")

    refused = WebPage(send(organiser.http, form, seat="A-1"))

    assert refused.status == 404
    assert "Its seats can be booked once you have published it" in refused.text
    assert refused.form(f"{path}/book").values("seat") == ["A-1"]
    for other in (api.customer(), api.organiser()):
        told = WebPage(send(other.http, form, seat="A-1"))
        assert (told.status, told.title.partition(" · ")[0]) == (404, "There is no such page")
    assert api.footprint()["bookings"] == 0


def test_a_seat_that_its_organiser_took_away_is_named_and_the_rest_of_the_choice_stays(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=3)
    ada = api.customer().http
    form = see(ada, f"/events/{event_id}").form(f"/events/{event_id}/book")
    api.sql("delete from seats where seat = 'A-3'")

    refused = WebPage(send(ada, form, seat=["A-2", "A-3"]))

    assert refused.status == 400
    assert "There is no seat A-3 any more. The rest of your choice is still here." in refused.text
    assert refused.form(f"/events/{event_id}/book").values("seat") == ["A-2"]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("price_minor = 9900", "USD 99.00 a seat"),
        ("currency = 'EUR'", "EUR 25.00 a seat"),
        ("starts_at = '2099-01-01T07:30:00Z'", "Wednesday, 31 December 2098, 23:30"),
        ("venue = 'New Mill'", "New Mill"),
    ],
)
def test_nobody_books_on_other_terms_than_their_page_had_shown(api: RunningApi, change: str, shown: str) -> None:
    event_id = api.event(api.organiser(), seats=3)
    path = f"/events/{event_id}"
    ada = api.customer().http
    form = see(ada, path).form(f"{path}/book")
    api.sql(f"update events set {change} where event_id = $1", event_id)  # noqa: S608 - of the cases above

    refused = WebPage(send(ada, form, seat=["A-1", "A-2"]))

    assert refused.status == 409
    assert "changed while you were choosing" in refused.text
    assert shown in refused.text
    again = refused.form(f"{path}/book")
    assert again.values("seat") == ["A-1", "A-2"]
    assert api.footprint()["bookings"] == 0
    # Whoever agrees to what they see now gets the seats; whoever sends that form twice, the same booking.
    booked = [send(ada, again).headers["location"] for _ in range(2)]
    api.sql("update events set price_minor = 100 where event_id = $1", event_id)
    assert {*booked, send(ada, again).headers["location"]} == {booked[0]}
    assert api.footprint()["bookings"] == 1


def test_an_offer_that_is_none_books_nothing(api: RunningApi) -> None:
    path = f"/events/{api.event(api.organiser())}"
    ada = api.customer().http
    form = see(ada, path).form(f"{path}/book")
    for wrong in ({"priceMinor": "a lot"}, {"currency": ""}, {"startsAt": "soon"}, {"venue": "x" * 300}):
        assert WebPage(send(ada, form, seat="A-1", **wrong)).status in (400, 409), wrong
    assert api.footprint()["bookings"] == 0


def test_an_event_that_has_begun_offers_no_seats(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer().http
    form = see(ada, f"/events/{event_id}").form(f"/events/{event_id}/book")
    api.sql("update events set starts_at = now() - interval '1 minute'")

    page = see(ada, f"/events/{event_id}")

    assert "This event has begun" in page.text
    assert not page.all("input", name="seat")
    refused = WebPage(send(ada, form, seat="A-1"))
    assert refused.status == 400
    assert "begun" in refused.text


def test_seats_stand_in_their_rows_with_aisles_between(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=3)
    api.sql(
        "insert into seats (event_id, seat, position, aisle_after)"
        " values ($1, 'B-1', 10, true), ($1, 'B-2', 11, false)",
        event_id,
    )

    page = see(api.stranger().http, f"/events/{event_id}")

    assert len(page.all("fieldset", class_="seats")) == 2
    assert page.text.count("Row") == 2
    # Between B-1 and B-2, and nowhere else.
    assert [label["class"] for label in page.all("label")] == ["seat", "seat", "seat", "seat aisle", "seat"]


def test_what_people_write_is_shown_and_never_obeyed(api: RunningApi) -> None:
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> {{ 7*7 }} ${7*7}"
    organiser = api.organiser()
    event_id = api.event(organiser, seats=2)
    api.sql("update events set title = $1, venue = $1", hostile)
    api.sql("update users set name = $1", hostile)
    ada = api.customer("o'hara+x@example.org")
    api.sql("update users set name = $1", hostile)
    booking = ada.book(event_id, "A-1").json()["result"]["data"]["bookingId"]

    for path in ("/", f"/events/{event_id}", f"/bookings/{booking}", f"/bookings/{booking}/cancel", "/bookings"):
        reply = ada.http.get(path)
        page = WebPage(reply)

        assert hostile in page.text, path
        assert {script["src"].partition("/static/")[0] for script in page.all("script")} == {""}, path
        assert not page.all("img"), path
        assert "49" not in page.text.replace(booking, "").replace(event_id, ""), path


@pytest.mark.parametrize("value", ["<script>", '" onfocus="alert(1)', "'><img src=x>", "\x00"])
def test_what_an_address_says_is_never_obeyed(api: RunningApi, value: str) -> None:
    event_id = api.event(api.organiser(), seats=1)
    http = api.stranger().http

    for path in ("/", f"/events/{event_id}", "/login", "/register", "/reset-password", "/forgot-password", "/nowhere"):
        names = ("seat", "view", "next", "token", "notice")
        reply = http.get(path, params=dict.fromkeys(names, value))

        assert reply.status_code in (200, 404), path
        assert value not in reply.text, path


def test_the_largest_hall_loads_in_150_kilobytes(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=0)
    api.sql(
        "insert into seats (event_id, seat, position) select $1, 'R' || r || '-' || n, r * 100 + n"
        " from generate_series(1, 50) r, generate_series(1, 100) n",
        event_id,
    )
    http = api.customer().http

    for view in ("map", "list"):
        path = f"/events/{event_id}?view={view}"
        assert http.get(path).text.count("checkbox") == 5000
        assert first_load_bytes(http, path) < MAX_FIRST_LOAD_BYTES


def test_unknown_events_are_not_found(api: RunningApi) -> None:
    http = api.customer().http
    for event_id in (str(uuid4()), "nonsense", str(uuid4()).upper(), "%00"):
        assert http.get(f"/events/{event_id}").status_code == 404
        assert http.post(f"/events/{event_id}/book", data={"seat": "A-1", "idempotencyKey": "k"}).status_code == 404
