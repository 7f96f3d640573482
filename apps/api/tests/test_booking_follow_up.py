"""What becomes of a booking, over HTTP: its progress, its mail asked for again, its cancellation."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from minitickets_api.services import rate_limits
from minitickets_contracts.messages import BookingCancelled, BookingMailRequested
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import TICKETS_TABLE, Person, RunningApi

pytestmark = pytest.mark.integration


def data(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["result"]["data"]
    return found


def booked(person: Person, event_id: str, *seats: str) -> str:
    booking_id: str = data(person.book(event_id, *seats))["bookingId"]
    return booking_id


def progress(person: Person, booking_id: str) -> dict[str, Any]:
    return data(person.query("bookings.byId", {"bookingId": booking_id}))


def resend(person: Person, booking_id: str, key: str | None = None) -> httpx.Response:
    return person.mutate("bookings.resendMail", {"bookingId": booking_id, "idempotencyKey": key or str(uuid4())})


def cancel(person: Person, booking_id: str, key: str | None = None) -> httpx.Response:
    return person.mutate("bookings.cancel", {"bookingId": booking_id, "idempotencyKey": key or str(uuid4())})


def bodies(api: RunningApi, type_: str) -> list[str]:
    rows = api.sql("select body from outbox where body::json ->> 'type' = $1 order by created_at", type_)
    return [row["body"] for row in rows]


def put_ticket(emulator: RunningEmulator, person: Person, booking_id: str, seat: str, status: str) -> None:
    item = {
        "userId": person.user_id,
        "ticketId": f"{booking_id}:{seat}",
        "status": status,
        "qrToken": f"mt1.{seat}.mac",
    }
    emulator.aws("dynamodb").put_item(
        TableName=TICKETS_TABLE, Item={name: {"S": value} for name, value in item.items()}
    )


def test_a_booking_is_followed_from_booked_to_handed_over_to_ready(
    api_on_aws: RunningApi, emulator: RunningEmulator
) -> None:
    api = api_on_aws
    ada = api.customer()
    event_id = api.event(api.organiser())
    booking_id, other = booked(ada, event_id, "A-1", "A-2"), booked(ada, event_id, "A-3")
    put_ticket(emulator, ada, other, "A-3", "ready")

    # The relay may have published it by now: say that it has not.
    def outbox(change: str) -> None:
        api.sql(f"update outbox set {change} where booking_id = $1", booking_id)  # noqa: S608 - names of ours, no input

    hold = "owner = gen_random_uuid(), lease_until = now() + interval '1 hour'"
    outbox(f"sent_at = null, {hold}")
    found = progress(ada, booking_id)
    assert found["bookingId"] == booking_id
    assert found["seats"] == ["A-1", "A-2"]
    steps = ("handedOver", "parked", "ticketsReady", "ticketsTotal")
    assert [found[step] for step in steps] == [False, False, 0, 2]

    outbox(f"parked_at = now(), {hold}")
    assert [progress(ada, booking_id)[step] for step in steps] == [False, True, 0, 2]

    outbox("parked_at = null, sent_at = now(), owner = null, lease_until = null")
    put_ticket(emulator, ada, booking_id, "A-1", "creating")
    assert [progress(ada, booking_id)[step] for step in steps] == [True, False, 0, 2]
    put_ticket(emulator, ada, booking_id, "A-1", "ready")
    assert [progress(ada, booking_id)[step] for step in steps] == [True, False, 1, 2]
    put_ticket(emulator, ada, booking_id, "A-2", "checked-in")
    assert [progress(ada, booking_id)[step] for step in steps] == [True, False, 2, 2]

    # Sent messages are purged after a week.
    api.sql("delete from outbox")
    assert progress(ada, booking_id)["handedOver"] is True


def test_while_the_tickets_cannot_be_asked_for_the_booking_is_there_all_the_same(api: RunningApi) -> None:
    ada = api.customer()
    booking_id = booked(ada, api.event(api.organiser()), "A-1")

    found = progress(ada, booking_id)

    assert (found["status"], found["handedOver"], found["ticketsReady"]) == ("confirmed", False, None)


def test_a_mail_is_asked_for_again_once_a_key_and_the_first_message_stays(api: RunningApi) -> None:
    olga, ada = api.organiser(), api.customer("ada@example.org")
    booking_id = booked(ada, api.event(olga), "A-2", "A-1")
    [first] = bodies(api, "booking.confirmed")

    reply = resend(ada, booking_id, "again")
    assert data(resend(ada, booking_id, "again")) == data(reply)

    [body] = bodies(api, "booking.mail-requested")
    message = BookingMailRequested.from_json(body)
    assert message.booking_id == booking_id
    assert message.customer.email == "ada@example.org"
    assert message.seats == ("A-2", "A-1")
    assert message.correlation_id == reply.headers["x-correlation-id"]
    assert data(reply) == {"bookingId": booking_id, "requestedAt": message.occurred_at}
    [row] = api.sql("select outbox_id, correlation_id from outbox where body = $1", body)
    assert (str(row["outbox_id"]), row["correlation_id"]) == (message.message_id, message.correlation_id)
    assert bodies(api, "booking.confirmed") == [first]
    [asked] = api.sql("select mail_requested_at from bookings")
    assert asked["mail_requested_at"] == datetime.fromisoformat(message.occurred_at)

    data(resend(ada, booking_id, "once-more"))
    assert len({BookingMailRequested.from_json(body).job_key for body in bodies(api, "booking.mail-requested")}) == 2


def test_the_events_organiser_may_ask_for_a_customers_mail_and_sees_that_it_was_asked_for(api: RunningApi) -> None:
    olga, ada = api.organiser(), api.customer("ada@example.org")
    event_id = api.event(olga)
    booking_id = booked(ada, event_id, "A-1")

    requested_at = data(resend(olga, booking_id))["requestedAt"]

    assert BookingMailRequested.from_json(bodies(api, "booking.mail-requested")[0]).customer.email == "ada@example.org"
    [booking] = data(olga.query("events.bookings", {"eventId": event_id}))["bookings"]
    assert booking["mailRequestedAt"] == requested_at
    api.sql("update users set is_organiser = false where user_id = $1", olga.user_id)
    assert resend(olga, booking_id).status_code == 404


def test_a_cancelled_booking_has_no_mail_to_send_again(api: RunningApi) -> None:
    ada = api.customer()
    booking_id = booked(ada, api.event(api.organiser()), "A-1")
    data(resend(ada, booking_id, "before"))
    data(cancel(ada, booking_id))

    assert resend(ada, booking_id).status_code == 400
    assert resend(ada, booking_id, "before").status_code == 200  # what was done under a key stays done
    assert len(bodies(api, "booking.mail-requested")) == 1


def test_a_key_of_one_bookings_mail_is_none_of_anothers(api: RunningApi) -> None:
    ada = api.customer()
    event_id = api.event(api.organiser())
    first, second = booked(ada, event_id, "A-1"), booked(ada, event_id, "A-2")

    data(resend(ada, first, "k"))

    assert resend(ada, second, "k").status_code == 409
    assert len(bodies(api, "booking.mail-requested")) == 1


def test_a_bookings_mail_can_be_asked_for_five_times_in_a_quarter_of_an_hour_by_each(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga, ada = api.organiser(), api.customer()
    event_id = api.event(olga)
    booking_id, other = booked(ada, event_id, "A-1"), booked(ada, event_id, "A-2")

    assert [resend(ada, booking_id).status_code for _ in range(6)] == [200] * 5 + [429]

    assert resend(ada, other).status_code == 200
    assert resend(olga, booking_id).status_code == 200
    monkeypatch.setattr(rate_limits, "RESEND_BY_USER", rate_limits.Limit(name="few", attempts=1, seconds=900))
    assert [resend(olga, booking_id).status_code for booking_id in (booking_id, other)] == [200, 429]


def test_a_cancellation_is_announced_once(api: RunningApi) -> None:
    ada = api.customer("ada@example.org")
    booking_id = booked(ada, api.event(api.organiser()), "A-1", "A-2")

    reply = cancel(ada, booking_id, "k")
    assert data(cancel(ada, booking_id, "k")) == data(reply)
    assert data(cancel(ada, booking_id)) == data(reply)

    [body] = bodies(api, "booking.cancelled")
    message = BookingCancelled.from_json(body)
    assert (message.booking_id, message.seats) == (booking_id, ("A-1", "A-2"))
    assert message.cancelled_at == data(reply)["cancelledAt"]
    assert message.correlation_id == reply.headers["x-correlation-id"]
    [row] = api.sql("select outbox_id, booking_id, correlation_id from outbox where body = $1", body)
    assert [str(value) for value in row] == [message.message_id, booking_id, message.correlation_id]


def test_a_cancellation_that_is_refused_announces_nothing(api: RunningApi) -> None:
    ada, eve = api.customer(), api.customer()
    event_id = api.event(api.organiser())
    booking_id = booked(ada, event_id, "A-1")

    assert cancel(eve, booking_id).status_code == 404
    api.sql("update events set starts_at = now() - interval '1 minute'")
    assert cancel(ada, booking_id).status_code == 400

    assert bodies(api, "booking.cancelled") == []


def test_a_cancelled_booking_and_a_moved_event_show_in_the_tickets_at_once(
    api_on_aws: RunningApi, emulator: RunningEmulator
) -> None:
    api = api_on_aws
    olga, ada = api.organiser(), api.customer()
    event_id = api.event(olga)
    stays, gone = booked(ada, event_id, "A-1"), booked(ada, event_id, "A-2")
    put_ticket(emulator, ada, stays, "A-1", "ready")
    put_ticket(emulator, ada, gone, "A-2", "ready")

    data(cancel(ada, gone))
    moved = {"eventId": event_id, "startsAt": "2027-12-31T23:59", "title": "Moved", "idempotencyKey": "m"}
    data(olga.mutate("events.update", moved))

    [ticket] = data(ada.query("tickets.mine"))["tickets"]
    assert (ticket["bookingId"], ticket["eventTitle"], ticket["startsAt"]) == (
        stays,
        "Moved",
        "2027-12-31T23:59:00-08:00",
    )


BOOKING_CALLS: Mapping[str, bool] = {"bookings.byId": False, "bookings.resendMail": True, "bookings.cancel": True}


def test_somebody_elses_booking_is_not_found_and_not_changed(api: RunningApi) -> None:
    ada, eve, other_organiser = api.customer(), api.customer(), api.organiser()
    booking_id = booked(ada, api.event(api.organiser()), "A-1")
    api.event(other_organiser)
    before = api.footprint(), api.sql("select * from bookings")

    for name, is_mutation in BOOKING_CALLS.items():
        for who in (eve, other_organiser):

            def call(asked: str, who: Person = who, name: str = name, is_mutation: bool = is_mutation) -> Any:
                if is_mutation:
                    return who.mutate(name, {"bookingId": asked, "idempotencyKey": str(uuid4())})
                return who.query(name, {"bookingId": asked})

            somebodys, nobodys = call(booking_id), call(str(uuid4()))
            assert somebodys.status_code == nobodys.status_code == 404, name
            assert somebodys.json()["error"]["message"] == nobodys.json()["error"]["message"], name
        stranger = api.stranger()
        asked = {"bookingId": booking_id, **({"idempotencyKey": "k"} if is_mutation else {})}
        assert (stranger.mutate if is_mutation else stranger.query)(name, asked).status_code == 401, name
    assert (api.footprint(), api.sql("select * from bookings")) == before
