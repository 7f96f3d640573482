"""The ledger check itself: it is silent about books that are in order, and names each kind of damage."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from minitickets_contracts.keys import booking_confirmed_job_key, booking_mail_requested_job_key
from minitickets_contracts.token import SigningKeys, TicketToken
from minitickets_tickets.qr import draw_qr
from tests.faults.ledger import (
    AcceptedMail,
    Acknowledged,
    BookingRow,
    Books,
    Finding,
    JobRecord,
    OutboxRow,
    TicketItem,
    audit,
    extra_mails,
    report,
)

pytestmark = pytest.mark.unit

EVENT = "0e3f0f0e-1111-4222-8333-444455556666"
ADA, BOB = "0a9f3f0e-1111-4222-8333-444455556666", "0b9f3f0e-1111-4222-8333-444455556666"
KEYS = SigningKeys("k1", {"k1": "key-of-the-ledger-" + "a" * 32})


def token_of(booking_id: str, seat: str, *, keys: SigningKeys = KEYS, event_id: str = EVENT) -> str:
    said = TicketToken(
        ticket_id=f"{booking_id}:{seat}", event_id=event_id, seat=seat, key_id="k1", issued_at=1, nonce="0" * 16
    )
    return said.sign(keys)


def told(booking_id: str, *seats: str, email: str) -> Acknowledged:
    return Acknowledged(booking_id=booking_id, event_id=EVENT, seats=seats, email=email)


TOLD = (told(ADA, "A-1", "A-2", email="ada@example.org"), told(BOB, "B-1", email="bob@example.org"))


def in_order() -> Books:
    """What a platform holds when all has gone well."""
    tickets = [
        TicketItem(
            booking_id=booking.booking_id,
            event_id=EVENT,
            seat=seat,
            status="ready",
            token=token_of(booking.booking_id, seat),
            image_key=f"{booking.booking_id}/{seat}.png",
        )
        for booking in TOLD
        for seat in booking.seats
    ]
    return Books(
        keys=KEYS,
        bookings={
            booking.booking_id: BookingRow(event_id=EVENT, seats=booking.seats, email=booking.email) for booking in TOLD
        },
        held_seats={(EVENT, seat): booking.booking_id for booking in TOLD for seat in booking.seats},
        outbox=[OutboxRow(booking_id=booking.booking_id) for booking in TOLD],
        mails=[mail_of(booking) for booking in TOLD],
        jobs={booking_confirmed_job_key(b.booking_id): JobRecord(status="done", result=b.email) for b in TOLD},
        tickets=tickets,
        images={item.image_key: draw_qr(item.token) for item in tickets},
    )


def mail_of(booking: Acknowledged, *, message_id: str | None = None) -> AcceptedMail:
    text = f"Your booking is confirmed.\n\nBooking {booking.booking_id}\n"
    return AcceptedMail(message_id=message_id or booking.email, recipient=booking.email, text=text)


def with_job(books: Books, record: JobRecord | None) -> Books:
    jobs = {key: job for key, job in books.jobs.items() if key != booking_confirmed_job_key(ADA)}
    return replace(books, jobs=jobs if record is None else {**jobs, booking_confirmed_job_key(ADA): record})


def with_row(books: Books, row: BookingRow | None) -> Books:
    bookings = {key: kept for key, kept in books.bookings.items() if key != ADA}
    return replace(books, bookings=bookings if row is None else {**bookings, ADA: row})


def with_ticket(books: Books, change: Callable[[TicketItem], TicketItem]) -> Books:
    return replace(books, tickets=[change(books.tickets[0]), *books.tickets[1:]])


def with_image(books: Books, png: bytes | None) -> Books:
    key = books.tickets[0].image_key
    images = {other: kept for other, kept in books.images.items() if other != key}
    return replace(books, images=images if png is None else {**images, key: png})


def cancelled(books: Books) -> Books:
    """Ada's booking is, in the database."""
    return with_row(books, replace(books.bookings[ADA], is_cancelled=True))


def without_adas_mail(books: Books) -> Books:
    return replace(books, mails=[mail_of(TOLD[1])])


def without_adas_seats(books: Books) -> Books:
    return replace(books, held_seats={seat: owner for seat, owner in books.held_seats.items() if owner != ADA})


OTHER_KEYS = SigningKeys("k1", {"k1": "key-of-a-forger-" + "b" * 32})

# The damage; the kind of finding; what it says; how many findings there are.
DAMAGE: dict[str, tuple[Callable[[Books], Books], str, str, int]] = {
    "a lost booking": (lambda b: with_row(b, None), "missing", "it was acknowledged, and is not in the database", 3),
    "other seats": (
        lambda b: with_row(b, replace(b.bookings[ADA], seats=("A-1", "A-3"))),
        "wrong",
        f"it was acknowledged as A-1, A-2 of event {EVENT}, and is A-1, A-3 of event {EVENT}",
        1,
    ),
    "somebody else's": (
        lambda b: with_row(b, replace(b.bookings[ADA], email="eve@example.org")),
        "wrong",
        "it was acknowledged as",
        1,
    ),
    "cancelled by nobody": (lambda b: without_adas_seats(cancelled(b)), "wrong", "and nobody asked for it", 1),
    "cancelled with its seats": (cancelled, "wrong", "it is cancelled, and still holds seat A-1", 3),
    "a lost seat": (
        lambda b: replace(b, held_seats={s: o for s, o in b.held_seats.items() if s != (EVENT, "A-1")}),
        "missing",
        "seat A-1 is free",
        1,
    ),
    "a seat of two": (
        lambda b: replace(b, held_seats={**b.held_seats, (EVENT, "A-1"): BOB}),
        "missing",
        f"seat A-1 is held by booking {BOB}",
        2,
    ),
    "a seat too many": (
        lambda b: replace(b, held_seats={**b.held_seats, (EVENT, "C-1"): ADA}),
        "wrong",
        "it holds seat C-1, which it did not book",
        1,
    ),
    "no message": (lambda b: replace(b, outbox=b.outbox[1:]), "missing", "it has no row in the outbox", 1),
    "two messages": (
        lambda b: replace(b, outbox=[*b.outbox, OutboxRow(booking_id=ADA)]),
        "doubled",
        "it has 2 rows in the outbox",
        1,
    ),
    "an unpublished message": (
        lambda b: replace(b, outbox=[OutboxRow(booking_id=ADA, is_sent=False), *b.outbox[1:]]),
        "missing",
        "its message is not published",
        1,
    ),
    "a parked message": (
        lambda b: replace(b, outbox=[OutboxRow(booking_id=ADA, is_sent=False, parked="too large"), *b.outbox[1:]]),
        "wrong",
        "its message is parked: too large",
        1,
    ),
    "no mail": (without_adas_mail, "missing", "no mail was accepted (job: done)", 1),
    "no mail and no job": (
        lambda b: with_job(without_adas_mail(b), None),
        "missing",
        "no mail was accepted (job: no record)",
        1,
    ),
    "two mails": (
        lambda b: replace(b, mails=[*b.mails, mail_of(TOLD[0], message_id="second")]),
        "doubled",
        "2 mails (1 too many in all, 0 are excused)",
        1,
    ),
    "a mail to somebody else": (
        lambda b: replace(b, mails=[replace(b.mails[0], recipient="eve@example.org"), *b.mails[1:]]),
        "wrong",
        "went to somebody else",
        1,
    ),
    "a mail about nothing": (
        lambda b: replace(b, mails=[*b.mails, AcceptedMail(message_id="x", recipient="ada@example.org", text="Hello")]),
        "wrong",
        "the mail x is about no booking",
        1,
    ),
    "a job not done": (
        lambda b: with_job(b, JobRecord(status="in-progress")),
        "missing",
        "a mail was accepted, and its job is not done (in-progress)",
        1,
    ),
    "a job for a mail that never was": (
        lambda b: with_job(b, JobRecord(status="done", result="ghost")),
        "wrong",
        "its job names the mail ghost, which was not accepted",
        1,
    ),
    "no ticket": (lambda b: replace(b, tickets=b.tickets[1:]), "missing", "seat A-1 has no ticket", 1),
    "two tickets": (
        lambda b: replace(b, tickets=[*b.tickets, b.tickets[0]]),
        "doubled",
        "seat A-1 has 2 tickets",
        1,
    ),
    "a ticket for another seat": (
        lambda b: with_ticket(b, lambda item: replace(item, seat="C-9")),
        "wrong",
        "it has a ticket for seat C-9, which it did not book",
        3,
    ),
    "a ticket for no booking": (
        lambda b: replace(b, tickets=[*b.tickets, replace(b.tickets[0], booking_id=EVENT)]),
        "wrong",
        "it has tickets, and is not in the database",
        1,
    ),
    "a ticket in the making": (
        lambda b: with_ticket(b, lambda item: replace(item, status="creating")),
        "missing",
        "the ticket of seat A-1 is not ready",
        1,
    ),
    "no image": (lambda b: with_image(b, None), "missing", "the image of seat A-1 is not there", 1),
    "an image that is none": (lambda b: with_image(b, b"not a picture"), "wrong", "the image is not a PNG", 1),
    "another token in the image": (
        lambda b: with_image(b, draw_qr(token_of(ADA, "A-1")[:-4] + "AAAA")),
        "wrong",
        "the code is not a ticket of ours",
        1,
    ),
    "a forged image": (
        lambda b: with_image(b, draw_qr(token_of(ADA, "A-1", keys=OTHER_KEYS))),
        "wrong",
        "the code is not a ticket of ours",
        1,
    ),
    "a genuine image of another ticket": (
        lambda b: with_image(b, draw_qr(token_of(BOB, "B-1"))),
        "wrong",
        "is a ticket for something else",
        2,
    ),
    "a genuine image that is not the stored one": (
        lambda b: with_ticket(b, lambda item: replace(item, token=item.token + "x")),
        "wrong",
        "shows another token than the one that is stored",
        1,
    ),
}


def test_books_in_order_have_no_findings() -> None:
    assert audit(TOLD, in_order()) == []


@pytest.mark.parametrize(("damage", "kind", "what", "count"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_named(damage: Callable[[Books], Books], kind: str, what: str, count: int) -> None:
    findings = audit(TOLD, damage(in_order()))
    assert [finding for finding in findings if finding.kind == kind and what in finding.what], report(findings)
    assert len(findings) == count, report(findings)


def test_a_seat_that_two_customers_were_promised_is_named() -> None:
    both = (*TOLD, told("0c9f3f0e-1111-4222-8333-444455556666", "B-1", email="eve@example.org"))
    findings = [finding for finding in audit(both, in_order()) if finding.kind == "doubled"]
    assert [finding.what for finding in findings] == [f"seat B-1 was sold to booking {BOB} too"]


def test_a_booking_that_nobody_saw_acknowledged_must_be_whole_too() -> None:
    assert audit(TOLD[:1], in_order()) == []
    [finding] = audit(TOLD[:1], replace(in_order(), outbox=in_order().outbox[:1]))
    assert (finding.booking_id, finding.what) == (BOB, "it has no row in the outbox")


def test_a_refusal_for_good_and_a_dead_letter_account_for_a_mail() -> None:
    assert audit(TOLD, with_job(without_adas_mail(in_order()), JobRecord(status="refused"))) == []
    dead = replace(with_job(without_adas_mail(in_order()), None), dead_mails=frozenset({ADA}))
    assert audit(TOLD, dead) == []


def test_as_many_mails_too_many_are_excused_as_said_and_no_more() -> None:
    twice = replace(
        in_order(), mails=[*in_order().mails, mail_of(TOLD[0], message_id="2"), mail_of(TOLD[1], message_id="3")]
    )
    assert audit(TOLD, twice, excused_mails=2) == []
    assert [finding.kind for finding in audit(TOLD, twice, excused_mails=1)] == ["doubled", "doubled"]


def test_what_is_excused_of_a_booking_excuses_no_other() -> None:
    twice = replace(in_order(), mails=[*in_order().mails, mail_of(TOLD[0], message_id="2")])
    assert audit(TOLD, twice, excused_of_bookings={ADA: 1}) == []
    [finding] = audit(TOLD, twice, excused_of_bookings={BOB: 1})
    assert (finding.kind, finding.booking_id) == ("doubled", ADA)
    thrice = replace(twice, mails=[*twice.mails, mail_of(TOLD[0], message_id="3")])
    assert audit(TOLD, thrice, excused_of_bookings={ADA: 1}, excused_mails=1) == []
    [finding] = audit(TOLD, thrice, excused_of_bookings={ADA: 1, BOB: 5})
    assert finding.what == "3 mails (1 too many in all, 0 are excused)"


def test_two_mails_of_a_booking_that_were_both_finished_are_excused_by_nothing() -> None:
    twice = replace(in_order(), mails=[*in_order().mails, mail_of(TOLD[0], message_id="2")])
    first = in_order().mails[0].message_id
    assert audit(TOLD, twice, excused_mails=9, finished_mails={first}) == []
    [finding] = audit(TOLD, twice, excused_mails=9, excused_of_bookings={ADA: 9}, finished_mails={first, "2"})
    assert finding.what == "2 mails were each sent, known of and recorded"


def test_mails_more_than_one_a_booking_are_counted() -> None:
    books = replace(in_order(), mails=[*in_order().mails, mail_of(TOLD[0], message_id="2")])
    assert (extra_mails(in_order()), extra_mails(books), extra_mails(without_adas_mail(in_order()))) == (0, 1, 0)


def test_a_mail_about_something_else_is_no_second_confirmation() -> None:
    again = booking_mail_requested_job_key("0d9f3f0e-1111-4222-8333-444455556666")
    books = in_order()
    books = replace(
        books,
        mails=[*books.mails, mail_of(TOLD[0], message_id="again")],
        jobs={**books.jobs, again: JobRecord(status="done", result="again")},
    )
    assert audit(TOLD, books) == []


def test_a_cancelled_booking_owes_neither_seats_nor_mail_nor_tickets() -> None:
    books = without_adas_seats(cancelled(without_adas_mail(in_order())))
    books = replace(with_job(books, None), tickets=[item for item in books.tickets if item.booking_id == BOB])
    assert audit([replace(TOLD[0], cancelled=True), TOLD[1]], books) == []
    assert audit([replace(TOLD[0], cancelled=None), TOLD[1]], books) == []
    assert [finding.what for finding in audit([replace(TOLD[0], cancelled=True), TOLD[1]], in_order())] == [
        "it is not cancelled"
    ]


def test_a_seat_sold_anew_after_a_cancellation_is_not_sold_twice() -> None:
    first = replace(TOLD[0], cancelled=True)
    second = told("0c9f3f0e-1111-4222-8333-444455556666", "A-1", email="eve@example.org")
    assert not [finding for finding in audit([first, second], in_order()) if finding.kind == "doubled"]


def test_a_report_counts_each_kind_and_says_what_it_left_out() -> None:
    findings = [Finding(kind="missing", booking_id=str(number), what="gone") for number in range(70)]
    lines = report([*findings, Finding(kind="wrong", booking_id="x", what="odd")]).splitlines()
    assert lines[0] == "70 missing, 0 doubled, 1 wrong"
    assert lines[1] == "  missing  booking 0: gone"
    assert lines[-1] == "  … and 11 more"
