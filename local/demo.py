"""`make demo`: the whole flow once, watched: booked, published, mail accepted, tickets ready, QR codes verified."""

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from local.emulator import Clients
from local.progress import Progress
from local.seeding import evening, organiser, seed
from local.session import Session
from local.ticket_scan import ScanError, scan
from local.visitor import ApiRefusedError, Visitor
from minitickets_contracts.token import SigningKeys

_FLOW_SECONDS = 30.0
# Beyond the first few, each further customer's mail and tickets add to the wait: two ticket functions run at a time.
_SECONDS_A_CUSTOMER = 2.0
# Of one customer; many look less often, or looking would take the machine from what they wait for.
_POLL_SECONDS = 0.05
_ROW_SEATS = 50


class StepMissingError(RuntimeError):
    """A step of the flow did not happen; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """What one customer saw. Times are in seconds after the booking was asked for."""

    email: str
    booked: float
    published: float
    mail: float
    tickets: float
    verified: int


def run_demo(session: Session, *, seats: int, customers: int, progress: Progress) -> None:
    """Seed an event, have each customer book ``seats`` seats, and see all of it happen; StepMissingError if not."""
    if session.api_url is None:
        raise StepMissingError("the API: compute is switched off")
    seating = _seat_names(seats * customers)
    event_id = _seed(session, seating)
    progress.say(f"seeded an event with {len(seating)} seats")

    root = Clients(session.endpoint)
    secret = root("secretsmanager").get_secret_value(SecretId=session.outputs["signingSecretArn"])["SecretString"]
    root.close()
    keys = SigningKeys.from_json(secret)
    pause = _POLL_SECONDS * min(customers, 16)
    deadline = time.time() + _FLOW_SECONDS + _SECONDS_A_CUSTOMER * (customers - 1)

    def one(number: int) -> Flow:
        wanted = seating[number * seats : (number + 1) * seats]
        try:
            return _follow(
                session, number=number, event_id=event_id, seats=wanted, keys=keys, deadline=deadline, pause=pause
            )
        except ApiRefusedError as error:
            raise StepMissingError(f"an answer of the API to customer {number + 1}: {error}") from error

    with ThreadPoolExecutor(max_workers=min(customers, 16)) as pool:
        flows = list(pool.map(one, range(customers)))
    for line in _timeline(flows, seats=seats):
        progress.say(line)


def _seed(session: Session, seating: Sequence[str]) -> str:
    rows: dict[str, int] = {}
    for seat in seating:
        row = seat.partition("-")[0]
        rows[row] = rows.get(row, 0) + 1
    host = organiser()
    event = evening("Opening night", rows=rows, organiser_email=host["email"])
    seeded = seed(session, {"accounts": [host], "events": [event]})
    return str(seeded["events"][0]["eventId"])


def _seat_names(count: int) -> list[str]:
    """As many seats as needed, in rows A, B, …, AA, …; the names that the seed gives them."""
    return [f"{_row_name(number // _ROW_SEATS)}-{number % _ROW_SEATS + 1}" for number in range(count)]


def _row_name(number: int) -> str:
    letters = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def _follow(
    session: Session,
    *,
    number: int,
    event_id: str,
    seats: Sequence[str],
    keys: SigningKeys,
    deadline: float,
    pause: float,
) -> Flow:
    """One customer from registration to verified tickets."""
    email = f"customer-{number + 1}@example.org"
    with Visitor(str(session.api_url), address=f"198.51.{number // 250}.{number % 250 + 1}") as customer:
        customer.register(email=email, name=f"Customer {number + 1}", password=secrets.token_urlsafe(16))
        began = time.time()
        booking = customer.book(event_id=event_id, seats=list(seats))
        booked = time.time() - began
        mail, ready, tickets = _wait_for_mail_and_tickets(
            session, customer, email=email, seats=seats, deadline=deadline, pause=pause
        )
        for ticket in tickets:
            _verify(ticket, event_id=event_id, booking_id=booking["bookingId"], keys=keys)
    if {ticket["seat"] for ticket in tickets} != set(seats):
        raise StepMissingError(f"tickets of {email} are for other seats than were booked")
    return Flow(
        email=email,
        booked=booked,
        published=_published_at(session, began) - began,
        mail=mail - began,
        tickets=ready - began,
        verified=len(tickets),
    )


def _wait_for_mail_and_tickets(
    session: Session, customer: Visitor, *, email: str, seats: Sequence[str], deadline: float, pause: float
) -> tuple[float, float, list[dict[str, Any]]]:
    """When the mail was accepted and the tickets were ready, in seconds since 1970, and the tickets."""
    mail_at = ready_at = None
    tickets: list[dict[str, Any]] = []
    while mail_at is None or ready_at is None:
        if mail_at is None and (mails := session.client.get("/mails", to=email)):
            mail_at = datetime.fromisoformat(mails[0]["acceptedAt"]).timestamp()
        if ready_at is None:
            tickets = customer.tickets()
            if len(tickets) == len(seats) and all(ticket["status"] == "ready" for ticket in tickets):
                ready_at = time.time()
        if time.time() > deadline:
            missing = [] if mail_at else [f"the mail to {email}"]
            states = ", ".join(f"{ticket['seat']} {ticket['status']}" for ticket in tickets) or "none"
            missing += [] if ready_at else [f"{len(seats)} ready tickets of {email} (there are: {states})"]
            raise StepMissingError(" and ".join(missing))
        time.sleep(pause)
    return mail_at, ready_at, tickets


def _verify(ticket: Mapping[str, Any], *, event_id: str, booking_id: str, keys: SigningKeys) -> None:
    """Fetch the ticket's image by its presigned URL as a browser would, and read it as a scanner does."""
    name = f"the ticket {ticket['ticketId']}"
    try:
        image = httpx.get(ticket["imageUrl"], timeout=10, trust_env=False)
    except httpx.TransportError as error:
        raise StepMissingError(f"{name}: its image cannot be fetched: {error}") from error
    if image.status_code != 200:
        raise StepMissingError(f"{name}: its image answers with status {image.status_code}: {image.text[:200]}")
    try:
        text, token = scan(image.content, keys)
    except ScanError as error:
        raise StepMissingError(f"{name}: {error}") from error
    told = (text, token.ticket_id, token.event_id, token.seat, ticket["bookingId"])
    if told != (ticket["qrToken"], ticket["ticketId"], event_id, ticket["seat"], booking_id):
        raise StepMissingError(f"{name}: its QR code says something else than the API")


def _published_at(session: Session, booked_at: float) -> float:
    """When SNS first accepted a message after the booking, in seconds since 1970."""
    published: list[float] = [
        call["Timestamp"] / 1000
        for call in session.client.get("/calls")
        if call["Type"] == "ApiCall" and call["Service"] == "SNS" and call["Api"] in ("Publish", "PublishBatch")
    ]
    after = [moment for moment in published if moment >= booked_at]
    if not after:
        raise StepMissingError("the publication: SNS accepted no message after the booking")
    return min(after)


def _timeline(flows: Sequence[Flow], *, seats: int) -> Iterator[str]:
    steps = [
        ("booked", [flow.booked for flow in flows]),
        ("published", [flow.published for flow in flows]),
        ("mail accepted", [flow.mail for flow in flows]),
        (f"{seats} ticket{'s' if seats > 1 else ''} ready", [flow.tickets for flow in flows]),
    ]
    who = flows[0].email if len(flows) == 1 else f"{len(flows)} customers, the fastest and the slowest"
    yield f"after the booking, in seconds ({who}):"
    for step, times in steps:
        shown = f"{min(times):6.2f}" if len(flows) == 1 else f"{min(times):6.2f} … {max(times):.2f}"
        yield f"  {step:<18}{shown}"
    verified = sum(flow.verified for flow in flows)
    yield f"  {verified} QR codes decoded, each signed by us and for its seat; one mail a booking"
