"""Who gets a booking's tickets on paper, and what they are told otherwise."""

from itertools import takewhile
from typing import Any
from uuid import uuid4

import pytest

from minitickets_api.services.rate_limits import PRINT_BY_USER
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.printed_pdf import read_pdf
from tests.fixtures.running_api import TICKETS_TABLE, Person, RunningApi

pytestmark = pytest.mark.integration


def booked(customer: Person, event_id: str, *seats: str) -> dict[str, Any]:
    reply = customer.book(event_id, *seats)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["result"]["data"]
    return found


def token(seat: str) -> str:
    return f"mt1.{seat}." + "x" * 200


def issue(
    emulator: RunningEmulator,
    owner: Person,
    booking: dict[str, Any],
    *,
    seats: list[str] | None = None,
    status: str = "ready",
) -> None:
    """What the tickets function writes for a booking, or for some of its seats."""
    for seat in booking["seats"] if seats is None else seats:
        item = {
            "userId": owner.user_id,
            "ticketId": f"{booking['bookingId']}:{seat}",
            "bookingId": booking["bookingId"],
            "eventId": booking["eventId"],
            "seat": seat,
            "status": status,
            "qrToken": token(seat),
        }
        emulator.aws("dynamodb").put_item(
            TableName=TICKETS_TABLE, Item={name: {"S": value} for name, value in item.items()}
        )


def pdf_path(booking: dict[str, Any]) -> str:
    return f"/tickets/{booking['bookingId']}.pdf"


def test_the_owner_prints_one_page_a_seat_in_the_bookings_order(
    api_on_aws: RunningApi, emulator: RunningEmulator
) -> None:
    ada = api_on_aws.customer()
    event_id = api_on_aws.event(api_on_aws.organiser())
    booking, other = booked(ada, event_id, "A-10", "A-2"), booked(ada, event_id, "A-3")
    issue(emulator, ada, booking, seats=["A-2"], status="checked-in")
    issue(emulator, ada, booking, seats=["A-10"])
    issue(emulator, ada, other)

    reply = ada.http.get(pdf_path(booking))

    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/pdf"
    assert reply.headers["content-disposition"] == f'attachment; filename="tickets-{booking["bookingId"][:8]}.pdf"'
    assert reply.headers["cache-control"] == "private, no-store"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    pages = read_pdf(reply.content)
    assert [page.scan() for page in pages] == [token(seat) for seat in booking["seats"]]
    for page in pages:
        assert "Night of Engines" in page.text
        assert "Old Mill" in page.text
        assert "Ada Lovelace" in page.text
        assert booking["bookingId"] in page.text
    assert ada.http.head(pdf_path(booking)).status_code == 200


def test_what_is_printed_is_what_the_event_is_now(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    ada = api_on_aws.customer()
    event_id = api_on_aws.event(api_on_aws.organiser())
    booking = booked(ada, event_id, "A-1")
    issue(emulator, ada, booking)
    api_on_aws.sql(
        "update events set title = 'Engines, again', venue = 'New Mill', starts_at = '2031-01-01T10:30:00Z',"
        " time_zone = 'Pacific/Kiritimati' where event_id = $1",
        event_id,
    )

    [page] = read_pdf(ada.http.get(pdf_path(booking)).content)

    assert "Engines, again" in page.text
    assert "New Mill" in page.text
    assert "Thursday, 2 January 2031, 00:30\nPacific/Kiritimati, UTC+14:00" in page.text


@pytest.mark.parametrize("status", [None, "creating"])
def test_tickets_that_are_still_being_made_are_named(
    api_on_aws: RunningApi, emulator: RunningEmulator, status: str | None
) -> None:
    ada = api_on_aws.customer()
    booking = booked(ada, api_on_aws.event(api_on_aws.organiser()), "A-1", "A-2", "A-3")
    issue(emulator, ada, booking, seats=["A-2"])
    if status:
        issue(emulator, ada, booking, seats=["A-1"], status=status)

    reply = ada.http.get(pdf_path(booking))

    assert reply.status_code == 409
    assert reply.headers["content-type"].startswith("text/html")
    assert reply.headers["retry-after"] == "5"
    assert "<li>Seat A-1</li>" in reply.text
    assert "<li>Seat A-3</li>" in reply.text
    assert "Seat A-2" not in reply.text
    assert f'href="{pdf_path(booking)}"' in reply.text


def test_a_cancelled_bookings_tickets_are_not_printed(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    ada = api_on_aws.customer()
    booking = booked(ada, api_on_aws.event(api_on_aws.organiser()), "A-1")
    issue(emulator, ada, booking)
    ada.mutate("bookings.cancel", {"bookingId": booking["bookingId"], "idempotencyKey": str(uuid4())})

    reply = ada.http.get(pdf_path(booking))

    assert reply.status_code == 409
    assert "tickets are void" in reply.text


def test_nobody_prints_another_ones_tickets(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    organiser = api_on_aws.organiser()
    ada, eve = api_on_aws.customer(), api_on_aws.customer()
    booking = booked(ada, api_on_aws.event(organiser), "A-1")
    issue(emulator, ada, booking)
    issue(emulator, eve, booking)  # not even with an item of her own

    for other in (eve, organiser):
        reply = other.http.get(pdf_path(booking))
        assert reply.status_code == 404
        assert "A-1" not in reply.text


def test_a_stranger_logs_in_first_and_comes_back(api_on_aws: RunningApi) -> None:
    path = f"/tickets/{uuid4()}.pdf"

    reply = api_on_aws.stranger().http.get(path)

    assert reply.status_code == 303
    assert reply.headers["location"] == f"/login?next={path}"


@pytest.mark.parametrize("name", ["nobody", "0B9F3F0E-1111-4222-8333-444455556666", "..%2f..%2fetc", "%00", "x" * 2000])
def test_what_is_no_booking_is_not_found(api_on_aws: RunningApi, name: str) -> None:
    assert api_on_aws.customer().http.get(f"/tickets/{name}.pdf").status_code == 404


def test_a_booking_that_is_nobodys_is_not_found(api_on_aws: RunningApi) -> None:
    assert api_on_aws.customer().http.get(f"/tickets/{uuid4()}.pdf").status_code == 404


def test_without_the_tickets_table_one_is_told_to_try_again(api: RunningApi) -> None:
    ada = api.customer()
    booking = booked(ada, api.event(api.organiser()), "A-1")

    reply = ada.http.get(pdf_path(booking))

    assert reply.status_code == 503
    assert reply.headers["retry-after"] == "5"
    assert "they are safe" in reply.text


def test_printing_has_a_limit_of_its_own_for_each_person(api_on_aws: RunningApi) -> None:
    ada, eve = api_on_aws.customer(), api_on_aws.customer()
    path = f"/tickets/{uuid4()}.pdf"
    # Twice as often as a window allows, in case one ends meanwhile.
    replies = (ada.http.get(path).status_code for _ in range(2 * PRINT_BY_USER.attempts + 1))
    statuses = list(takewhile(lambda status: status != 429, replies))

    assert statuses[: PRINT_BY_USER.attempts] == [404] * PRINT_BY_USER.attempts
    assert len(statuses) <= 2 * PRINT_BY_USER.attempts
    assert eve.http.get(path).status_code == 404
