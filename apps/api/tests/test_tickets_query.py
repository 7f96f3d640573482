"""A customer's tickets, read from a real table under the API's own role; pages as only AWS makes them, from a fake."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

import httpx
import pytest

from minitickets_api.queries.tickets import Tickets
from minitickets_api.services.bookings import BookingDesk
from tests.fixtures.catalogue import add_customer, add_event, opened
from tests.fixtures.emulator import RunningEmulator
from tests.fixtures.running_api import ASSETS_BUCKET, TICKETS_TABLE, Person, RunningApi
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

T = TypeVar("T")


def issue(
    emulator: RunningEmulator, customer: Person, booking: dict[str, Any], *, status: str = "ready", padding: int = 0
) -> None:
    """What the tickets function writes for a booking."""
    for seat in booking["seats"]:
        ticket_id = f"{booking['bookingId']}:{seat}"
        item = {
            "userId": customer.user_id,
            "ticketId": ticket_id,
            "bookingId": booking["bookingId"],
            "eventId": booking["eventId"],
            "seat": seat,
            "status": status,
            "qrToken": f"mt1.{seat}.mac" + "x" * padding,
        }
        emulator.aws("dynamodb").put_item(
            TableName=TICKETS_TABLE, Item={name: {"S": value} for name, value in item.items()}
        )


def draw(emulator: RunningEmulator, booking: dict[str, Any]) -> None:
    for seat in booking["seats"]:
        emulator.aws("s3").put_object(
            Bucket=ASSETS_BUCKET,
            Key=f"tickets/{booking['eventId']}/{booking['bookingId']}/{seat}.png",
            Body=f"image of {seat}".encode(),
        )


def booked(customer: Person, event_id: str, *seats: str) -> dict[str, Any]:
    reply = customer.book(event_id, *seats)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["result"]["data"]
    return found


def tickets(customer: Person) -> list[dict[str, Any]]:
    reply = customer.query("tickets.mine")
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["result"]["data"]["tickets"]
    return found


def test_a_ready_ticket_shows_its_token_and_its_image(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    ada = api_on_aws.customer()
    event_id = api_on_aws.event(api_on_aws.organiser())
    booking = booked(ada, event_id, "A-1")
    issue(emulator, ada, booking)
    draw(emulator, booking)

    [ticket] = tickets(ada)

    image_url = ticket.pop("imageUrl")
    assert httpx.get(image_url).content == b"image of A-1"
    assert httpx.URL(image_url).params["X-Amz-Expires"] == "120"
    assert ticket == {
        "ticketId": f"{booking['bookingId']}:A-1",
        "bookingId": booking["bookingId"],
        "eventId": event_id,
        "seat": "A-1",
        "status": "ready",
        "eventTitle": "Night of Engines",
        "startsAt": booking["startsAt"],
        "timeZone": "America/Los_Angeles",
        "qrToken": "mt1.A-1.mac",
    }


def test_a_ticket_that_is_still_being_made_has_no_image(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    ada = api_on_aws.customer()
    issue(emulator, ada, booked(ada, api_on_aws.event(api_on_aws.organiser()), "A-1"), status="creating")

    assert [(ticket["status"], ticket["imageUrl"]) for ticket in tickets(ada)] == [("creating", None)]


def test_tickets_of_a_cancelled_booking_are_gone(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    ada = api_on_aws.customer()
    event_id = api_on_aws.event(api_on_aws.organiser())
    kept, dropped = booked(ada, event_id, "A-1"), booked(ada, event_id, "A-2")
    for booking in (kept, dropped):
        issue(emulator, ada, booking)

    ada.mutate("bookings.cancel", {"bookingId": dropped["bookingId"], "idempotencyKey": str(uuid4())})

    assert [ticket["seat"] for ticket in tickets(ada)] == ["A-1"]


def test_a_ticket_under_my_name_for_somebody_elses_booking_is_not_shown(
    api_on_aws: RunningApi, emulator: RunningEmulator
) -> None:
    ada, eve = api_on_aws.customer(), api_on_aws.customer()
    issue(emulator, eve, booked(ada, api_on_aws.event(api_on_aws.organiser()), "A-1"))

    assert tickets(eve) == []


def test_somebody_elses_tickets_are_not_mine(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    ada, eve = api_on_aws.customer(), api_on_aws.customer()
    issue(emulator, ada, booked(ada, api_on_aws.event(api_on_aws.organiser()), "A-1"))

    assert tickets(eve) == []
    # Whose tickets they are cannot be asked for: the input has no place for it.
    assert eve.query("tickets.mine", {"userId": ada.user_id}).status_code == 400


def test_more_than_a_megabyte_of_tickets_comes_whole(api_on_aws: RunningApi, emulator: RunningEmulator) -> None:
    ada = api_on_aws.customer()
    event_id = api_on_aws.event(api_on_aws.organiser())
    seats = [f"A-{number}" for number in range(1, 11)]
    issue(emulator, ada, booked(ada, event_id, *seats), padding=200_000)

    assert sorted(ticket["seat"] for ticket in tickets(ada)) == sorted(seats)


class PagedTable:
    """A partition that Query answers with in these pages; a page's cursor is its number. Threads, as ``Aws`` has."""

    def __init__(self, *pages: list[dict[str, Any]]) -> None:
        self._pages = pages
        self.dynamodb = self
        self.asked: list[int] = []

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    sign = run

    def sign_get(self, key: str) -> str:
        return f"https://images.invalid/{key}"

    def query(self, *, ExclusiveStartKey: dict[str, Any] | None = None, **_: Any) -> dict[str, Any]:  # noqa: N803 - AWS's own name
        number = 0 if ExclusiveStartKey is None else int(ExclusiveStartKey["ticketId"]["S"])
        self.asked.append(number)
        page: dict[str, Any] = {"Items": self._pages[number]}
        if number + 1 < len(self._pages):
            page["LastEvaluatedKey"] = {"userId": {"S": "u"}, "ticketId": {"S": str(number + 1)}}
        return page


def test_an_empty_page_with_a_cursor_is_no_end(migrated_database: Database) -> None:
    async def scenario() -> None:
        async with opened(migrated_database) as pool:
            ada = await add_customer(pool)
            event_id = await add_event(pool, seats=["A-1", "A-2", "A-3"])
            desk = BookingDesk(pool=pool, on_commit=lambda: None)
            made = await desk.create(
                customer=ada, event_id=event_id, seats=["A-1", "A-2", "A-3"], idempotency_key="k", correlation_id="c"
            )
            await desk.close()
            one, two, three = (
                {
                    "ticketId": {"S": f"{made.booking_id}:{seat}"},
                    "status": {"S": "ready"},
                    "qrToken": {"S": f"token of {seat}"},
                }
                for seat in made.seats
            )
            table: Any = PagedTable([], [one], [], [], [two, three], [])
            tickets = Tickets(aws=table, table="tickets", assets=table, pool=pool)

            mine = await tickets.mine(user_id=ada.user_id)
            issued = await tickets.of_booking(user_id=ada.user_id, booking_id=made.booking_id)

            assert [ticket.seat for ticket in mine] == ["A-1", "A-2", "A-3"]
            assert [ticket.token for ticket in issued] == ["token of A-1", "token of A-2", "token of A-3"]
            assert table.asked == [*range(6), *range(6)]

    asyncio.run(scenario())
