"""Customers of a rehearsal: they book, and what they hold is compared, byte for byte, before and after a flip."""

import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from local.emulator import Clients
from local.seeding import evening, organiser, seed
from local.session import Session
from local.visitor import ApiRefusedError, Visitor

_FLOW_SECONDS = 60.0
_POLL_SECONDS = 0.05
_ROW = "A"
_ROW_SEATS = 20


class NotServedError(RuntimeError):
    """A customer did not get what was booked; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Guest:
    """A customer with a booking."""

    email: str
    password: str
    seats: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What the serverless half holds, whatever is switched off: ticket items, images by key (SHA-256), mails by id."""

    tickets: Mapping[str, Mapping[str, Any]]
    images: Mapping[str, str]
    mails: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a guest sees over HTTP: bookings by id, and tickets by id with the SHA-256 of their image."""

    bookings: Mapping[str, Mapping[str, Any]]
    tickets: Mapping[str, tuple[str, str, str]]


def open_event(session: Session) -> str:
    """An event a month ahead, with an organiser of its own; its id."""
    host = organiser()
    event = evening("Dress rehearsal", rows={_ROW: _ROW_SEATS}, organiser_email=host["email"])
    return str(seed(session, {"accounts": [host], "events": [event]})["events"][0]["eventId"])


def book(session: Session, *, event_id: str, number: int, seats: int) -> Guest:
    """The ``number``-th guest registers, books, and waits for the mail and all tickets; NotServedError if not."""
    first = (number - 1) * seats + 1
    guest = Guest(
        email=f"guest-{number}@example.org",
        password=secrets.token_urlsafe(16),
        seats=tuple(f"{_ROW}-{seat}" for seat in range(first, first + seats)),
    )
    try:
        with _visitor(session, number) as visitor:
            visitor.register(email=guest.email, name=f"Guest {number}", password=guest.password)
            visitor.book(event_id=event_id, seats=list(guest.seats))
            _wait(session, visitor, guest)
    except ApiRefusedError as error:
        raise NotServedError(f"{guest.email}: {error}") from error
    return guest


def held_by(session: Session, guest: Guest, *, number: int) -> Held:
    """What a guest sees after signing in; NotServedError if the API or an image does not answer."""
    try:
        with _visitor(session, number) as visitor:
            visitor.login(email=guest.email, password=guest.password)
            bookings = {booking["bookingId"]: booking for booking in visitor.bookings()}
            tickets = {
                ticket["ticketId"]: (ticket["status"], ticket["qrToken"], _image_hash(ticket))
                for ticket in visitor.tickets()
            }
    except ApiRefusedError as error:
        raise NotServedError(f"{guest.email}: {error}") from error
    return Held(bookings=bookings, tickets=tickets)


def stored_in(session: Session) -> Stored:
    """What the table, the bucket and the mailbox hold now."""
    aws = Clients(session.endpoint)
    try:
        items = aws("dynamodb").scan(TableName=session.outputs["ticketsTable"], ConsistentRead=True)["Items"]
        bucket = session.outputs["assetsBucket"]
        keys = [found["Key"] for found in aws("s3").list_objects_v2(Bucket=bucket).get("Contents", [])]
        images = {key: _hash(aws("s3").get_object(Bucket=bucket, Key=key)["Body"].read()) for key in keys}
    finally:
        aws.close()
    mails = {mail["messageId"]: _hash(mail["text"].encode()) for mail in session.client.get("/mails")}
    return Stored(tickets={item["ticketId"]["S"]: item for item in items}, images=images, mails=mails)


def lost(before: Stored | Held, after: Stored | Held) -> list[str]:
    """What was there before and is not, or is other, after: a sentence each. More than before is no loss."""
    losses = []
    for what, things in vars(before).items():
        now: Mapping[str, Any] = getattr(after, what)
        losses += [f"{what}: {key} is gone" for key in things if key not in now]
        losses += [f"{what}: {key} has changed" for key, value in things.items() if key in now and now[key] != value]
    return losses


def _visitor(session: Session, number: int) -> Visitor:
    # Each from an address of their own: the API limits requests by address.
    return Visitor(str(session.api_url), address=f"198.51.100.{number}")


def _wait(session: Session, visitor: Visitor, guest: Guest) -> None:
    end = time.monotonic() + _FLOW_SECONDS
    while True:
        mails = session.client.get("/mails", to=guest.email)
        states = {ticket["seat"]: ticket["status"] for ticket in visitor.tickets()}
        if mails and all(states.get(seat) == "ready" for seat in guest.seats):
            return
        if time.monotonic() > end:
            missing = [
                f"ticket {seat} ({states.get(seat, 'absent')})" for seat in guest.seats if states.get(seat) != "ready"
            ]
            raise NotServedError(f"{guest.email}, {_FLOW_SECONDS:g} s after booking: {', '.join(missing) or 'no mail'}")
        time.sleep(_POLL_SECONDS)


def _image_hash(ticket: Mapping[str, Any]) -> str:
    try:
        reply = httpx.get(ticket["imageUrl"], timeout=10, trust_env=False)
    except httpx.TransportError as error:
        raise NotServedError(f"the image of {ticket['ticketId']} cannot be fetched: {error}") from error
    if reply.status_code != 200:
        raise NotServedError(f"the image of {ticket['ticketId']} answers with status {reply.status_code}")
    return _hash(reply.content)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
