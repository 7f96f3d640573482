"""Pages of bookings and tickets: whose they are, how far they have come, what is shown at the door."""

from uuid import uuid4

import pytest

from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import ASSETS_BUCKET, TICKETS_TABLE, Person, RunningApi
from tests.fixtures.web_pages import WebPage, follow, see, send

pytestmark = pytest.mark.integration
_PNG = b"\x89PNG\r\n\x1a\n and so on"


def _booking(person: Person, event_id: str, *seats: str) -> str:
    return str(person.book(event_id, *seats).json()["result"]["data"]["bookingId"])


def _issue(emulator: RunningEmulator, person: Person, event_id: str, booking_id: str, *seats: str) -> None:
    """What the tickets function leaves behind."""
    for seat in seats:
        key = f"tickets/{event_id}/{booking_id}/{seat}.png"
        emulator.aws("s3").put_object(Bucket=ASSETS_BUCKET, Key=key, Body=_PNG)
        emulator.aws("dynamodb").put_item(
            TableName=TICKETS_TABLE,
            Item={
                "userId": {"S": person.user_id},
                "ticketId": {"S": f"{booking_id}:{seat}"},
                "status": {"S": "ready"},
                "qrToken": {"S": "mt1.a.b"},
            },
        )


def test_nobody_sees_or_changes_anothers_booking_by_any_page(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    booking_id = _booking(api.customer(), event_id, "A-1")
    mallory = api.customer().http
    before = api.footprint()

    for path in (
        f"/bookings/{booking_id}",
        f"/bookings/{booking_id}/cancel",
        f"/tickets/{booking_id}/A-1.png",
        f"/tickets/{booking_id}.pdf",
    ):
        assert mallory.get(path).status_code == 404, path
    for path in (f"/bookings/{booking_id}/cancel", f"/bookings/{booking_id}/mail"):
        assert mallory.post(path, data={"idempotencyKey": "mine"}).status_code == 404, path

    assert api.footprint() == before
    [row] = api.sql("select cancelled_at from bookings")
    assert row["cancelled_at"] is None


def test_a_booking_says_what_is_done_and_what_is_still_to_come_and_not_what_it_cannot_see(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer("ada@example.org")
    path = f"/bookings/{_booking(ada, event_id, 'A-1', 'A-2')}"

    # AWS is down: nothing has left yet, and the tickets cannot be asked for.
    waiting = see(ada.http, path)
    assert "Handing over" in waiting.text
    assert "A mail is on its way" not in waiting.text
    assert "They cannot be looked up just now" in waiting.text
    # Without a script the page comes again by itself.
    assert waiting.all("meta", http_equiv="refresh")

    api.sql("update outbox set parked_at = now(), last_error = 'refused'")
    parked = see(ada.http, path)
    assert "Something is in the way on our side. Your seats are safe" in parked.text
    assert not parked.all("meta", http_equiv="refresh")

    api.sql("delete from outbox")
    handed = see(ada.http, path)
    assert "A mail is on its way to ada@example.org. This page cannot see your inbox." in handed.text


def test_the_mail_is_asked_for_again_by_a_form(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer()
    path = f"/bookings/{_booking(ada, event_id, 'A-1')}"

    page = follow(ada.http, send(ada.http, see(ada.http, path).form(f"{path}/mail")))

    assert "The mail is sent once more." in page.text
    types = {row["type"] for row in api.sql("select body::jsonb ->> 'type' as type from outbox")}
    assert types == {"booking.confirmed", "booking.mail-requested"}


def test_bookings_come_a_page_at_a_time_the_newest_first(api: RunningApi) -> None:
    event_id = api.event(api.organiser(), seats=25)
    ada = api.customer()
    booked = [_booking(ada, event_id, f"A-{n}") for n in range(1, 23)]

    first = see(ada.http, "/bookings")
    [older] = [link for link in first.links if "cursor=" in link]
    rest = see(ada.http, older)

    shown = [link.removeprefix("/bookings/") for page in (first, rest) for link in page.links if link[10:] in booked]
    assert list(dict.fromkeys(shown)) == booked[::-1]
    assert see(api.customer().http, "/bookings").text.count("No bookings yet") == 1


def test_an_event_that_has_begun_can_no_longer_be_cancelled_and_says_so(api: RunningApi) -> None:
    event_id = api.event(api.organiser())
    ada = api.customer()
    path = f"/bookings/{_booking(ada, event_id, 'A-1')}/cancel"
    form = see(ada.http, path).form(path)
    api.sql("update events set starts_at = now() - interval '1 minute'")

    page = WebPage(send(ada.http, form))

    assert (page.status, page.title) == (400, "Error: Cancel the booking · MiniTickets")
    assert "begun" in page.text


def test_tickets_are_shown_by_event_and_those_still_being_made_say_so(
    api_on_aws: RunningApi, emulator: RunningEmulator
) -> None:
    api = api_on_aws
    organiser = api.organiser()
    soon, later, past = (api.event(organiser, starts=start) for start in ("2 days", "9 days", "1 hour"))
    ada = api.customer()
    second, first = _booking(ada, later, "A-1"), _booking(ada, soon, "A-10", "A-2")
    over, gone = _booking(ada, past, "A-1"), _booking(ada, soon, "A-4")
    for event_id, booking_id, seat in ((soon, first, "A-2"), (past, over, "A-1"), (soon, gone, "A-4")):
        _issue(emulator, ada, event_id, booking_id, seat)
    ada.mutate("bookings.cancel", {"bookingId": gone, "idempotencyKey": str(uuid4())})
    api.sql("update events set starts_at = now() - interval '2 days' where event_id = $1", past)

    page = see(ada.http, "/tickets")

    assert [image["src"] for image in page.all("img") if image.get("src")] == [
        f"/tickets/{first}/A-2.png",
        f"/tickets/{over}/A-1.png",
    ]
    places = [(place["data-booking"], place["data-seat"]) for place in page.all("li") if "data-seat" in place]
    assert places == [(first, "A-10"), (first, "A-2"), (second, "A-1"), (over, "A-1")]
    assert page.text.count("Still being made") == 2
    assert "Events that are over (1)" in page.text
    # What is not whole yet is not printed.
    assert [link for link in page.links if link.endswith(".pdf")] == [f"/tickets/{over}.pdf"]


def test_a_qr_code_comes_from_the_site_itself_to_its_owner_alone(
    api_on_aws: RunningApi, emulator: RunningEmulator
) -> None:
    api = api_on_aws
    event_id = api.event(api.organiser())
    ada = api.customer()
    booking_id = _booking(ada, event_id, "A-1", "A-2")
    _issue(emulator, ada, event_id, booking_id, "A-1")
    path = f"/tickets/{booking_id}/A-1.png"

    image = ada.http.get(path)

    assert (image.content, image.headers["content-type"]) == (_PNG, "image/png")
    assert image.headers["cache-control"] == "private, no-cache"
    again = ada.http.get(path, headers={"if-none-match": image.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    # Its owner's alone, however well its name is known.
    for other in (api.stranger(), api.customer(), api.organiser()):
        refused = other.http.get(path, headers={"if-none-match": image.headers["etag"]})
        assert refused.status_code in (303, 404)
        assert refused.content != _PNG
    assert ada.http.get(f"/tickets/{booking_id}/A-2.png").status_code == 404
    for seat in ("A-3", "..%2Fx", "a-1", "A-1%00"):
        assert ada.http.get(f"/tickets/{booking_id}/{seat}.png").status_code == 404, seat
    ada.mutate("bookings.cancel", {"bookingId": booking_id, "idempotencyKey": str(uuid4())})
    for headers in ({}, {"if-none-match": image.headers["etag"]}):
        assert ada.http.get(path, headers=headers).status_code == 404


def test_while_tickets_cannot_be_reached_the_page_says_that_they_are_safe(api: RunningApi) -> None:
    reply = api.customer().http.get("/tickets")

    assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert "they are safe" in WebPage(reply).text
