"""An organiser's events over HTTP: made, edited, published, and how they sell."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.fixtures.running_api import Person, RunningApi

pytestmark = pytest.mark.integration

ZONE = "America/Los_Angeles"
NEXT_YEAR = datetime.now(UTC).year + 1
# Clocks there go forward over the first, and back over the second.
GAP, TWICE = "2027-03-14T02:30", "2027-11-07T01:30"
NEW_YEARS_EVE = f"{NEXT_YEAR}-12-31T20:00"


def data(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["result"]["data"]
    return found


def refused(reply: httpx.Response) -> tuple[int, list[str]]:
    """The status, and the fields that are wrong."""
    issues = reply.json()["error"]["data"].get("issues", [])
    return reply.status_code, [issue["path"] for issue in issues]


def wish(**changes: object) -> dict[str, object]:
    given: dict[str, object] = {
        "title": "Night of Engines",
        "venue": "Old Mill",
        "startsAt": NEW_YEARS_EVE,
        "timeZone": ZONE,
        "rows": [{"label": "A", "seats": 3, "aisleAfter": [1]}, {"label": "B", "seats": 2}],
        "priceMinor": 2500,
        "currency": "USD",
        "idempotencyKey": str(uuid4()),
        **changes,
    }
    return {name: value for name, value in given.items() if value is not ...}


def created(organiser: Person, **changes: object) -> dict[str, Any]:
    return data(organiser.mutate("events.create", wish(**changes)))


def update(organiser: Person, event_id: str, *, key: str | None = None, **changes: Any) -> httpx.Response:
    return organiser.mutate("events.update", {"eventId": event_id, "idempotencyKey": key or str(uuid4()), **changes})


def publish(organiser: Person, event_id: str, *, key: str | None = None) -> httpx.Response:
    return organiser.mutate("events.publish", {"eventId": event_id, "idempotencyKey": key or str(uuid4())})


def published(organiser: Person, **changes: object) -> str:
    event_id: str = created(organiser, **changes)["eventId"]
    data(publish(organiser, event_id))
    return event_id


def starts_at(person: Person, event_id: str) -> str:
    found: str = data(person.query("events.byId", {"eventId": event_id}))["startsAt"]
    return found


def moves(api: RunningApi) -> int:
    count: int = api.sql('select count(*) from outbox where body like \'%"type":"event.moved"%\'')[0][0]
    return count


def test_an_organiser_makes_a_draft_publishes_it_and_customers_book_it(api: RunningApi) -> None:
    olga, ada = api.organiser(), api.customer()

    draft = created(olga)

    assert draft == {
        "eventId": draft["eventId"],
        "title": "Night of Engines",
        "venue": "Old Mill",
        "startsAt": f"{NEW_YEARS_EVE}:00-08:00",
        "timeZone": ZONE,
        "priceMinor": 2500,
        "currency": "USD",
        "isPublished": False,
        "hasBegun": False,
        "seatsTotal": 5,
        "seatsFree": 5,
        "posterUrl": None,
    }
    assert ada.query("events.byId", {"eventId": draft["eventId"]}).status_code == 404
    assert ada.book(draft["eventId"], "A-1").status_code == 404
    seats = data(olga.query("events.byId", {"eventId": draft["eventId"]}))["seats"]
    assert [(seat["name"], seat["row"], seat["number"], seat["aisleAfter"]) for seat in seats] == [
        ("A-1", "A", "1", True),
        ("A-2", "A", "2", False),
        ("A-3", "A", "3", False),
        ("B-1", "B", "1", False),
        ("B-2", "B", "2", False),
    ]

    assert data(publish(olga, draft["eventId"]))["isPublished"] is True

    assert data(ada.book(draft["eventId"], "A-1", "B-2"))["totalMinor"] == 5000


def test_the_same_key_makes_one_event_and_another_wish_under_it_is_a_conflict(api: RunningApi) -> None:
    olga = api.organiser()
    first = olga.mutate("events.create", wish(idempotencyKey="once"))

    assert data(olga.mutate("events.create", wish(idempotencyKey="once"))) == data(first)
    assert olga.mutate("events.create", wish(idempotencyKey="once", priceMinor=1)).status_code == 409
    assert (
        olga.mutate("events.create", wish(idempotencyKey="once", rows=[{"label": "A", "seats": 1}])).status_code == 409
    )
    assert api.footprint()["events"] == 1


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"title": " "}, "title"),
    ({"title": "a" * 201}, "title"),
    ({"title": "Night \u202egnp.exe"}, "title"),
    ({"title": "\u200b\u200d"}, "title"),
    ({"title": "\u3164 \u2800"}, "title"),
    ({"venue": "\u2067Old Mill"}, "venue"),
    ({"title": "Night\r\nBcc: eve@example.org"}, "title"),
    ({"venue": "\u2028"}, "venue"),
    ({"startsAt": "2027-02-29T20:00"}, "startsAt"),
    ({"startsAt": "2027-01-01"}, "startsAt"),
    ({"startsAt": "2027-01-01 20:00"}, "startsAt"),
    ({"startsAt": "2027-01-01T20:00Z"}, "startsAt"),
    ({"startsAt": "2027-01-01T24:00"}, "startsAt"),
    ({"startsAt": "2001-01-01T20:00"}, "startsAt"),
    ({"startsAt": "2127-01-01T20:00"}, "startsAt"),
    ({"startsAt": "0001-01-01T00:00"}, "startsAt"),
    ({"startsAt": "9999-12-31T23:59"}, "startsAt"),
    ({"startsAt": GAP}, "startsAt"),
    ({"startsAt": "2027-06-01T20:00+02:00"}, "startsAt"),
    ({"timeZone": "Mars/Olympus"}, "timeZone"),
    ({"timeZone": "../../etc/passwd"}, "timeZone"),
    ({"timeZone": "localtime"}, "timeZone"),
    ({"timeZone": "america/los_angeles"}, "timeZone"),
    ({"priceMinor": -1}, "priceMinor"),
    ({"priceMinor": 1_000_000_001}, "priceMinor"),
    ({"priceMinor": 2.5}, "priceMinor"),
    ({"currency": "usd"}, "currency"),
    ({"rows": []}, "rows"),
    ({"rows": [{"label": f"R{n}", "seats": 1} for n in range(101)]}, "rows"),
    ({"rows": [{"label": f"R{n}", "seats": 100} for n in range(50)] + [{"label": "X", "seats": 1}]}, "rows"),
    ({"rows": [{"label": "A", "seats": 1}, {"label": "A", "seats": 2}]}, "rows"),
    ({"rows": [{"label": "A", "seats": 0}]}, "rows.0.seats"),
    ({"rows": [{"label": "A", "seats": 101}]}, "rows.0.seats"),
    ({"rows": [{"label": "a", "seats": 1}]}, "rows.0.label"),
    ({"rows": [{"label": "A-B", "seats": 1}]}, "rows.0.label"),
    ({"rows": [{"label": "ABCDE", "seats": 1}]}, "rows.0.label"),
    ({"rows": [{"label": "A", "seats": 3, "aisleAfter": [3]}]}, "rows"),
    ({"rows": [{"label": "A", "seats": 3, "aisleAfter": [0]}]}, "rows"),
]


def test_what_cannot_be_is_refused_by_its_field_and_changes_nothing(api: RunningApi) -> None:
    olga = api.organiser()
    event_id = api.event(olga)
    before = api.sql("select * from events"), api.footprint()

    for changes, field in IMPOSSIBLE:
        assert refused(olga.mutate("events.create", wish(**changes))) == (400, [field]), changes
        assert refused(update(olga, event_id, **changes)) == (400, [field]), changes

    assert (api.sql("select * from events"), api.footprint()) == before


def test_the_largest_hall_that_may_be_is_made_in_a_moment(api: RunningApi) -> None:
    olga = api.organiser()

    hall = created(olga, rows=[{"label": f"R{n}", "seats": 100} for n in range(10, 60)])

    assert hall["seatsTotal"] == 5000
    names = [row["seat"] for row in api.sql("select seat from seats order by position")]
    assert (names[0], names[99], names[100], names[-1]) == ("R10-1", "R10-100", "R11-1", "R59-100")


def test_an_hour_that_comes_twice_means_the_first_unless_its_offset_says_the_second(api: RunningApi) -> None:
    olga = api.organiser()

    assert created(olga, startsAt=TWICE)["startsAt"] == f"{TWICE}:00-07:00"
    second = created(olga, startsAt=f"{TWICE}-08:00")
    assert second["startsAt"] == f"{TWICE}:00-08:00"

    # What a form shows has no offset: sent back, it moves nothing.
    assert data(update(olga, second["eventId"], startsAt=TWICE, timeZone=ZONE))["startsAt"] == f"{TWICE}:00-08:00"
    # What the API shows can be sent back, too.
    assert data(update(olga, second["eventId"], startsAt=second["startsAt"]))["startsAt"] == f"{TWICE}:00-08:00"
    assert data(update(olga, second["eventId"], startsAt=f"{TWICE}-07:00"))["startsAt"] == f"{TWICE}:00-07:00"


def test_another_zone_alone_keeps_the_time_on_the_door(api: RunningApi) -> None:
    olga = api.organiser()
    event_id = created(olga)["eventId"]

    moved = data(update(olga, event_id, timeZone="Asia/Kolkata"))

    assert moved["startsAt"] == f"{NEW_YEARS_EVE}:00+05:30"
    in_a_gap = update(olga, created(olga, startsAt="2027-03-14T02:30", timeZone="UTC")["eventId"], timeZone=ZONE)
    assert refused(in_a_gap) == (400, ["startsAt"])


def test_an_edit_changes_what_it_names_and_nothing_else(api: RunningApi) -> None:
    olga = api.organiser()
    draft = created(olga)

    renamed = data(update(olga, draft["eventId"], title="Night of Steam"))
    assert renamed == {**draft, "title": "Night of Steam", "toldBookings": 0}
    assert data(update(olga, draft["eventId"], priceMinor=0))["priceMinor"] == 0
    assert data(update(olga, draft["eventId"])) == {**renamed, "priceMinor": 0}


def test_a_moved_event_tells_each_live_booking_once_and_a_new_title_tells_nobody(api: RunningApi) -> None:
    olga, ada, bob = api.organiser(), api.customer(), api.customer()
    event_id = published(olga)
    data(ada.book(event_id, "A-1"))
    cancelled = data(ada.book(event_id, "A-3"))["bookingId"]
    data(ada.mutate("bookings.cancel", {"bookingId": cancelled, "idempotencyKey": "c"}))
    data(bob.book(event_id, "A-2", "B-1"))

    assert data(update(olga, event_id, title="Renamed"))["toldBookings"] == 0
    assert data(update(olga, event_id, startsAt=NEW_YEARS_EVE, venue="Old Mill"))["toldBookings"] == 0
    assert moves(api) == 0
    moved = update(olga, event_id, key="move", venue="New Mill")
    assert data(moved)["toldBookings"] == 2
    assert data(update(olga, event_id, key="move", venue="New Mill")) == data(moved)

    assert moves(api) == 2
    assert api.sql("select sequence from events")[0][0] == 1
    assert data(update(olga, event_id, startsAt=f"{NEXT_YEAR}-12-31T21:00"))["toldBookings"] == 2
    assert api.sql("select sequence from events")[0][0] == 2


def test_a_draft_moves_without_being_counted(api: RunningApi) -> None:
    olga = api.organiser()
    draft = created(olga)

    assert data(update(olga, draft["eventId"], venue="New Mill"))["toldBookings"] == 0

    assert api.sql("select sequence from events")[0][0] == 0


def test_a_seat_that_is_sold_stays_and_the_refusal_names_it(api: RunningApi) -> None:
    olga, ada = api.organiser(), api.customer()
    event_id = published(olga)
    booking = data(ada.book(event_id, "A-3", "B-2"))

    reply = update(olga, event_id, rows=[{"label": "A", "seats": 2}, {"label": "C", "seats": 9}], title="Other")

    assert refused(reply) == (409, ["rows"])
    assert reply.json()["error"]["data"]["seats"] == ["A-3", "B-2"]
    assert "A-3, B-2" in reply.json()["error"]["message"]
    assert data(olga.query("events.byId", {"eventId": event_id}))["title"] == "Night of Engines"

    rows = [{"label": "C", "seats": 1}, {"label": "B", "seats": 2}, {"label": "A", "seats": 3, "aisleAfter": [2]}]
    data(update(olga, event_id, rows=rows))
    seats = data(ada.query("events.byId", {"eventId": event_id}))["seats"]
    assert [(seat["name"], seat["isTaken"], seat["aisleAfter"]) for seat in seats] == [
        ("C-1", False, False),
        ("B-1", False, False),
        ("B-2", True, False),
        ("A-1", False, False),
        ("A-2", False, True),
        ("A-3", True, False),
    ]
    data(ada.mutate("bookings.cancel", {"bookingId": booking["bookingId"], "idempotencyKey": "c"}))
    assert data(update(olga, event_id, rows=[{"label": "C", "seats": 1}]))["seatsTotal"] == 1
    assert data(ada.query("bookings.mine"))["bookings"][0]["seats"] == ["A-3", "B-2"]


def test_a_new_price_is_for_later_bookings_and_the_currency_stays_while_seats_are_sold(api: RunningApi) -> None:
    olga, ada = api.organiser(), api.customer()
    event_id = published(olga)
    first = data(ada.book(event_id, "A-1"))

    data(update(olga, event_id, priceMinor=9900))
    data(ada.book(event_id, "A-2"))

    assert [b["totalMinor"] for b in data(ada.query("bookings.mine"))["bookings"]] == [9900, 2500]
    assert refused(update(olga, event_id, currency="EUR")) == (409, ["currency"])
    for booking in data(ada.query("bookings.mine"))["bookings"]:
        data(ada.mutate("bookings.cancel", {"bookingId": booking["bookingId"], "idempotencyKey": booking["bookingId"]}))
    assert data(update(olga, event_id, currency="EUR"))["currency"] == "EUR"
    assert data(ada.query("bookings.mine"))["bookings"][-1]["currency"] == first["currency"] == "USD"


def test_an_event_that_has_begun_is_changed_no_more_and_a_past_draft_is_published_only_with_a_new_start(
    api: RunningApi,
) -> None:
    olga = api.organiser()
    begun = api.event(olga, starts="-1 hour")
    past_draft = api.event(olga, starts="-1 hour", published=False)

    assert update(olga, begun, title="Too late").status_code == 400
    assert refused(publish(olga, past_draft)) == (400, ["startsAt"])
    assert data(update(olga, past_draft, startsAt=NEW_YEARS_EVE))["hasBegun"] is False
    assert data(publish(olga, past_draft))["isPublished"] is True
    assert data(publish(olga, past_draft))["isPublished"] is True


def test_an_organiser_lists_their_own_events_page_by_page(api: RunningApi) -> None:
    olga, other = api.organiser(), api.organiser()
    days = ["2027-05-03", "2027-05-01", "2027-05-02"]
    mine = {day: created(olga, startsAt=f"{day}T20:00")["eventId"] for day in days}
    published(other)

    first = data(olga.query("events.mine", {"limit": 2}))
    second = data(olga.query("events.mine", {"limit": 2, "cursor": first["nextCursor"]}))

    listed = [event["eventId"] for event in first["events"] + second["events"]]
    assert listed == [mine["2027-05-03"], mine["2027-05-02"], mine["2027-05-01"]]
    assert second["nextCursor"] is None
    assert other.query("events.mine", {"cursor": first["nextCursor"]}).status_code == 400


def test_sales_add_up_by_the_days_of_the_venues_calendar(api: RunningApi) -> None:
    olga, ada = api.organiser(), api.customer()
    event_id = published(olga)
    empty = data(olga.query("events.sales", {"eventId": event_id}))
    assert (empty["sold"], empty["left"], empty["revenueMinor"], empty["days"]) == (0, 5, 0, [])
    booked = [data(ada.book(event_id, *seats))["bookingId"] for seats in (["A-1"], ["A-2", "A-3"], ["B-1"])]
    # Before and after midnight in Los Angeles, on one day in UTC.
    for booking_id, moment in zip(booked, ("2026-06-02T06:59Z", "2026-06-02T07:01Z", "2026-06-02T20:00Z"), strict=True):
        api.sql("update bookings set created_at = $2 where booking_id = $1", booking_id, datetime.fromisoformat(moment))
    data(ada.mutate("bookings.cancel", {"bookingId": booked[2], "idempotencyKey": "c"}))

    assert data(olga.query("events.sales", {"eventId": event_id})) == {
        "eventId": event_id,
        "sold": 3,
        "left": 2,
        "bookings": 2,
        "cancelledBookings": 1,
        "revenueMinor": 7500,
        "currency": "USD",
        "days": [
            {"day": "2026-06-01", "bookings": 1, "seats": 1, "revenueMinor": 2500},
            {"day": "2026-06-02", "bookings": 1, "seats": 2, "revenueMinor": 5000},
        ],
    }


def test_bookings_are_found_by_name_address_seat_and_id_as_they_are_written(api: RunningApi) -> None:
    olga = api.organiser()
    event_id = published(olga)
    people = {"Zo\u00eb 100% M\u00fcller": "zoe_1@example.org", "Bob_X": "bob@example.net", "Carl": "carl@example.org"}
    booked = {}
    for seat, (name, email) in zip(("A-1", "A-2", "B-1"), people.items(), strict=True):
        person = api.stranger()
        person.mutate("auth.register", {"email": email, "name": name, "password": "correct horse battery"})
        booked[name] = data(person.book(event_id, seat))["bookingId"]

    def found(search: str) -> list[str]:
        page = data(olga.query("events.bookings", {"eventId": event_id, "search": search}))
        return [booking["name"] for booking in page["bookings"]]

    zoe, bob, carl = people
    assert found("") == found("  ") == [carl, bob, zoe]
    assert found("EXAMPLE.org") == [carl, zoe]
    assert found("100%") == found("m\u00fcller") == found(" a-1 ") == found("ZOE_1") == [zoe]
    assert found("_") == [bob, zoe]
    assert found("A") == [carl, bob, zoe]
    assert found("A-") == found("%%") == found("\\") == found("' or 1=1 --") == []
    assert found(booked[carl].upper()) == [carl]
    [booking] = data(olga.query("events.bookings", {"eventId": event_id, "search": "zoe_1"}))["bookings"]
    assert booking == {
        "bookingId": booked[zoe],
        "name": zoe,
        "email": "zoe_1@example.org",
        "seats": ["A-1"],
        "totalMinor": 2500,
        "currency": "USD",
        "status": "confirmed",
        "bookedAt": booking["bookedAt"],
        "cancelledAt": None,
        "mailRequestedAt": None,
    }


def test_a_cursor_of_one_search_or_event_is_none_of_another(api: RunningApi) -> None:
    olga, ada = api.organiser(), api.customer()
    event_id, other_event = published(olga), published(olga)
    booked = [data(ada.book(event_id, seat))["bookingId"] for seat in ("A-1", "A-2", "A-3")]

    page = data(olga.query("events.bookings", {"eventId": event_id, "limit": 2, "search": "ada"}))
    rest = data(olga.query("events.bookings", {"eventId": event_id, "search": "ada", "cursor": page["nextCursor"]}))

    assert [booking["bookingId"] for booking in page["bookings"] + rest["bookings"]] == booked[::-1]
    for changes in ({"search": "lovelace"}, {"search": None}, {"eventId": other_event}):
        given = {"eventId": event_id, "search": "ada", "cursor": page["nextCursor"], **changes}
        assert olga.query("events.bookings", given).status_code == 400, changes


# Whether it is a mutation, and what else it is given.
OWN_EVENT_CALLS: dict[str, tuple[bool, dict[str, object]]] = {
    "events.update": (True, {"title": "Stolen"}),
    "events.publish": (True, {}),
    "events.sales": (False, {}),
    "events.bookings": (False, {}),
}


def test_somebody_elses_event_is_not_found_and_not_changed(api: RunningApi) -> None:
    olga, eve, ada = api.organiser(), api.organiser(), api.customer()
    event_id = created(olga)["eventId"]
    before = api.sql("select * from events"), api.footprint()

    def call(person: Person, name: str, event_id: str) -> httpx.Response:
        is_mutation, given = OWN_EVENT_CALLS[name]
        key = {"idempotencyKey": str(uuid4())} if is_mutation else {}
        return (person.mutate if is_mutation else person.query)(name, {"eventId": event_id, **given, **key})

    for name in OWN_EVENT_CALLS:
        somebodys, nobodys = call(eve, name, event_id), call(eve, name, str(uuid4()))
        assert somebodys.status_code == nobodys.status_code == 404, name
        assert somebodys.json()["error"]["message"] == nobodys.json()["error"]["message"], name
        assert call(ada, name, event_id).status_code == 403, name
        assert call(api.stranger(), name, event_id).status_code == 401, name
    assert (api.sql("select * from events"), api.footprint()) == before
    for name in OWN_EVENT_CALLS:
        assert call(olga, name, event_id).status_code == 200, name


def test_only_organisers_make_and_list_events_and_who_is_none_any_more_does_nothing(api: RunningApi) -> None:
    olga, ada = api.organiser(), api.customer()
    event_id = created(olga)["eventId"]

    for person in (api.stranger(), ada):
        expected = 403 if person is ada else 401
        assert person.mutate("events.create", wish()).status_code == expected
        assert person.query("events.mine").status_code == expected
    api.sql("update users set is_organiser = false where user_id = $1", olga.user_id)
    assert publish(olga, event_id).status_code == 403
    assert update(olga, event_id, title="x").status_code == 403
    assert api.footprint()["events"] == 1


def test_a_key_of_one_person_or_procedure_is_none_of_another(api: RunningApi) -> None:
    olga, other = api.organiser(), api.organiser()

    first = created(olga, idempotencyKey="k")["eventId"]
    second = created(other, idempotencyKey="k")["eventId"]

    assert first != second
    assert data(update(olga, first, key="k", title="Edited"))["title"] == "Edited"
    assert data(publish(olga, first, key="k"))["isPublished"] is True
    # Used for one event, it is no key of another.
    third = created(olga)["eventId"]
    assert update(olga, third, key="k", title="Edited").status_code == 409


def test_the_list_of_events_shows_a_published_event_within_seconds(api: RunningApi) -> None:
    olga = api.organiser()
    event_id = published(olga, startsAt=(datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M"))

    assert [event["eventId"] for event in data(api.stranger().query("events.list"))["events"]] == [event_id]
