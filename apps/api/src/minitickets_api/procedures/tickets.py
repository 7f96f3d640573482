"""A customer's tickets."""

from minitickets_api.procedures.call import Call
from minitickets_api.trpc.registry import NoInput, Output, Registry


class Ticket(Output):
    """`qrToken` is what the QR code says; `imageUrl` lives 120 s and is null until `status` is `ready`."""

    ticket_id: str
    booking_id: str
    event_id: str
    seat: str
    status: str
    event_title: str
    starts_at: str
    time_zone: str
    qr_token: str
    image_url: str | None


class TicketList(Output):
    """All of them."""

    tickets: list[Ticket]


async def mine(call: Call, _: NoInput) -> TicketList:
    """Your tickets of bookings that are not cancelled, by start and seat. They follow a booking within seconds."""
    user = await call.require_session()
    found = await call.services.tickets.mine(user_id=user.user_id)
    return TicketList(tickets=[Ticket.model_validate(ticket) for ticket in found])


def add_to(registry: Registry[Call]) -> None:
    """Register this module's procedures."""
    registry.query("tickets.mine", session=True)(mine)
