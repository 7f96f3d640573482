"""The books of a platform held against what its customers were told: what is missing, doubled or wrong.

What a client saw acknowledged is the measure, not what the database says. Bookings that nobody saw acknowledged (their
answer was lost, and nobody asked again) must be whole too if they are there.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from local.ticket_scan import ScanError, scan
from minitickets_contracts.keys import booking_confirmed_job_key
from minitickets_contracts.messages import BookingConfirmed
from minitickets_contracts.token import SigningKeys

_LONGEST_REPORT = 60


@dataclass(frozen=True, kw_only=True)
class Acknowledged:
    """A booking as its customer was told. ``cancelled``: whether a cancellation was; None if its answer was lost."""

    booking_id: str
    event_id: str
    seats: tuple[str, ...]
    email: str
    cancelled: bool | None = False


@dataclass(frozen=True, kw_only=True)
class BookingRow:
    """A booking in the database, whose it is included."""

    event_id: str
    seats: tuple[str, ...]
    email: str
    is_cancelled: bool = False


@dataclass(frozen=True, kw_only=True)
class OutboxRow:
    """A confirmation's row. ``parked`` is the reason, if it is."""

    booking_id: str
    is_sent: bool = True
    parked: str | None = None


@dataclass(frozen=True, kw_only=True)
class AcceptedMail:
    """A mail that SES accepted; ``text`` names its booking."""

    message_id: str
    recipient: str
    text: str


@dataclass(frozen=True, kw_only=True)
class TicketItem:
    """An item of the tickets table."""

    booking_id: str
    event_id: str
    seat: str
    status: str
    token: str
    image_key: str


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """An item of the table of processed jobs. ``result`` is the id of the accepted mail."""

    status: str
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class Books:
    """All that a platform holds. ``dead_mails``: bookings whose confirmation lies among the worker's dead letters."""

    keys: SigningKeys
    bookings: Mapping[str, BookingRow] = field(default_factory=dict)
    held_seats: Mapping[tuple[str, str], str] = field(default_factory=dict)  # (event, seat) → booking
    outbox: Sequence[OutboxRow] = ()
    mails: Sequence[AcceptedMail] = ()
    jobs: Mapping[str, JobRecord] = field(default_factory=dict)
    tickets: Sequence[TicketItem] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)
    dead_mails: Collection[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it must be."""

    kind: Literal["missing", "doubled", "wrong"]
    booking_id: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind:<8} booking {self.booking_id}: {self.what}"


def audit(
    acknowledged: Iterable[Acknowledged],
    books: Books,
    *,
    excused_mails: int = 0,
    excused_of_bookings: Mapping[str, int] = MappingProxyType({}),
    finished_mails: Collection[str] = frozenset(),
) -> list[Finding]:
    """What is not as the platform promises.

    How many mails more than one there may be, because so many sends were killed, of unknown outcome, or outlived their
    lease: ``excused_of_bookings`` of a booking and no other; beyond those, ``excused_mails`` of all together.
    Nothing excuses a second one of ``finished_mails``, ids of mails that the worker knew of and had recorded.
    """
    told = {booking.booking_id: booking for booking in acknowledged}
    index = _Index(books)
    findings = [finding for booking in told.values() for finding in _promised(booking, books, index)]
    for booking_id, row in books.bookings.items():
        if booking_id not in told:
            untold = Acknowledged(
                booking_id=booking_id,
                event_id=row.event_id,
                seats=row.seats,
                email=row.email,
                cancelled=row.is_cancelled,
            )
            findings += _promised(untold, books, index)
    findings += _sold_twice(told.values())
    findings += _too_many_mails(index, excused_mails, excused_of_bookings)
    findings += _knowingly_again(index, finished_mails)
    findings += _of_nobody(books, index)
    return findings


def extra_mails(books: Books) -> int:
    """How many mails more than one a booking there are."""
    return sum(len(mails) - 1 for mails in _Index(books).mails.values())


def report(findings: Sequence[Finding]) -> str:
    """For people: how many of each kind, then each in a line."""
    kinds = Counter(finding.kind for finding in findings)
    lines = [", ".join(f"{kinds[kind]} {kind}" for kind in ("missing", "doubled", "wrong"))]
    lines += [f"  {finding}" for finding in findings[:_LONGEST_REPORT]]
    if len(findings) > _LONGEST_REPORT:
        lines.append(f"  … and {len(findings) - _LONGEST_REPORT} more")
    return "\n".join(lines)


class _Index:
    """The books by booking."""

    def __init__(self, books: Books) -> None:
        self.seats: dict[str, set[str]] = {}
        for (_, seat), booking_id in books.held_seats.items():
            self.seats.setdefault(booking_id, set()).add(seat)
        self.outbox: dict[str, list[OutboxRow]] = {}
        for row in books.outbox:
            self.outbox.setdefault(row.booking_id, []).append(row)
        self.tickets: dict[str, list[TicketItem]] = {}
        for item in books.tickets:
            self.tickets.setdefault(item.booking_id, []).append(item)
        confirmation = f"{BookingConfirmed.TYPE}:"
        other_mails = {job.result for key, job in books.jobs.items() if not key.startswith(confirmation)}
        self.mails: dict[str, list[AcceptedMail]] = {}
        self.strange_mails: list[AcceptedMail] = []
        for mail in books.mails:
            if mail.message_id in other_mails:
                continue  # a mail about something else, with a record of its own
            about = [word for word in mail.text.split() if word in books.bookings]
            if about:
                self.mails.setdefault(about[0], []).append(mail)
            else:
                self.strange_mails.append(mail)


def _promised(told: Acknowledged, books: Books, index: _Index) -> Iterator[Finding]:
    row = books.bookings.get(told.booking_id)
    if row is None:
        yield _missing(told, "it was acknowledged, and is not in the database")
        return
    if (row.event_id, row.seats, row.email) != (told.event_id, told.seats, told.email):
        yield _wrong(told, f"it was acknowledged as {_text(told)}, and is {_text(row)}")
    if told.cancelled is not None and row.is_cancelled != told.cancelled:
        yield _wrong(told, "it is cancelled, and nobody asked for it" if row.is_cancelled else "it is not cancelled")
    yield from _outbox(told, index.outbox.get(told.booking_id, []))
    held = index.seats.get(told.booking_id, set())
    if row.is_cancelled:
        yield from (_wrong(told, f"it is cancelled, and still holds seat {seat}") for seat in sorted(held))
        return
    for seat in sorted(set(told.seats) - held):
        owner = books.held_seats.get((told.event_id, seat))
        yield _missing(told, f"seat {seat} is " + (f"held by booking {owner}" if owner else "free"))
    yield from (_wrong(told, f"it holds seat {seat}, which it did not book") for seat in sorted(held - set(told.seats)))
    yield from _mailed(told, books, index.mails.get(told.booking_id, []))
    yield from _ticketed(told, books, index.tickets.get(told.booking_id, []))


def _outbox(told: Acknowledged, rows: Sequence[OutboxRow]) -> Iterator[Finding]:
    if not rows:
        yield _missing(told, "it has no row in the outbox")
    if len(rows) > 1:
        yield _doubled(told, f"it has {len(rows)} rows in the outbox")
    for row in rows:
        if row.parked is not None:
            yield _wrong(told, f"its message is parked: {row.parked}")
        elif not row.is_sent:
            yield _missing(told, "its message is not published")


def _mailed(told: Acknowledged, books: Books, mails: Sequence[AcceptedMail]) -> Iterator[Finding]:
    job = books.jobs.get(booking_confirmed_job_key(told.booking_id))
    status = "no record" if job is None else job.status
    for mail in mails:
        if mail.recipient.lower() != told.email.lower():
            yield _wrong(told, f"its mail {mail.message_id} went to somebody else")
    if status == "refused" or told.booking_id in books.dead_mails:
        return
    if not mails:
        yield _missing(told, f"no mail was accepted (job: {status})")
    elif status != "done":
        yield _missing(told, f"a mail was accepted, and its job is not done ({status})")
    elif job is not None and job.result not in {mail.message_id for mail in mails}:
        yield _wrong(told, f"its job names the mail {job.result}, which was not accepted")


def _ticketed(told: Acknowledged, books: Books, items: Sequence[TicketItem]) -> Iterator[Finding]:
    seats = Counter(item.seat for item in items)
    for seat in told.seats:
        if not seats[seat]:
            yield _missing(told, f"seat {seat} has no ticket")
    for seat, count in seats.items():
        if seat not in told.seats:
            yield _wrong(told, f"it has a ticket for seat {seat}, which it did not book")
        elif count > 1:
            yield _doubled(told, f"seat {seat} has {count} tickets")
    for item in items:
        if item.status == "creating":
            yield _missing(told, f"the ticket of seat {item.seat} is not ready")
            continue
        png = books.images.get(item.image_key)
        if png is None:
            yield _missing(told, f"the image of seat {item.seat} is not there")
            continue
        try:
            text, token = scan(png, books.keys)
        except ScanError as error:
            yield _wrong(told, f"the image of seat {item.seat}: {error}")
            continue
        if text != item.token:
            yield _wrong(told, f"the image of seat {item.seat} shows another token than the one that is stored")
        if (token.ticket_id, token.event_id, token.seat) != (
            f"{told.booking_id}:{item.seat}",
            told.event_id,
            item.seat,
        ):
            yield _wrong(told, f"the image of seat {item.seat} is a ticket for something else")


def _sold_twice(told: Iterable[Acknowledged]) -> Iterator[Finding]:
    owners: dict[tuple[str, str], str] = {}
    for booking in told:
        if booking.cancelled is not False:
            continue  # its seats may have been sold anew
        for seat in booking.seats:
            first = owners.setdefault((booking.event_id, seat), booking.booking_id)
            if first != booking.booking_id:
                yield _doubled(booking, f"seat {seat} was sold to booking {first} too")


def _too_many_mails(index: _Index, excused: int, excused_of: Mapping[str, int]) -> Iterator[Finding]:
    more = {booking_id: len(mails) - 1 - excused_of.get(booking_id, 0) for booking_id, mails in index.mails.items()}
    beyond = {booking_id: count for booking_id, count in more.items() if count > 0}
    total = sum(beyond.values())
    if total <= excused:
        return
    for booking_id in beyond:
        mails = len(index.mails[booking_id])
        yield Finding(
            kind="doubled",
            booking_id=booking_id,
            what=f"{mails} mails ({total} too many in all, {excused} are excused)",
        )


def _knowingly_again(index: _Index, finished: Collection[str]) -> Iterator[Finding]:
    for booking_id, mails in index.mails.items():
        known = sum(mail.message_id in finished for mail in mails)
        if known > 1:
            yield Finding(
                kind="doubled", booking_id=booking_id, what=f"{known} mails were each sent, known of and recorded"
            )


def _of_nobody(books: Books, index: _Index) -> Iterator[Finding]:
    for mail in index.strange_mails:
        yield Finding(kind="wrong", booking_id="(none)", what=f"the mail {mail.message_id} is about no booking")
    for booking_id in sorted(index.tickets.keys() - books.bookings.keys()):
        yield Finding(kind="wrong", booking_id=booking_id, what="it has tickets, and is not in the database")


def _text(booking: Acknowledged | BookingRow) -> str:
    return f"{', '.join(booking.seats)} of event {booking.event_id}"


def _missing(told: Acknowledged, what: str) -> Finding:
    return Finding(kind="missing", booking_id=told.booking_id, what=what)


def _doubled(told: Acknowledged, what: str) -> Finding:
    return Finding(kind="doubled", booking_id=told.booking_id, what=what)


def _wrong(told: Acknowledged, what: str) -> Finding:
    return Finding(kind="wrong", booking_id=told.booking_id, what=what)
