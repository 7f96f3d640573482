"""The printed ticket: what stands on it, what a scanner reads from it, and what it costs."""

import asyncio
import threading
import time
from collections.abc import Sequence
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.ticket_pdf.page import draw
from minitickets_api.services.ticket_pdf.printer import MAX_WAITING, TicketPrinter
from minitickets_api.services.ticket_pdf.ticket import PrintedTicket
from minitickets_contracts.fields import ContractError
from minitickets_contracts.token import MAX_TOKEN_CHARACTERS
from tests.fixtures.printed_pdf import PrintedPage, read_pdf

pytestmark = pytest.mark.unit

BOOKING_ID = "3f2b8c1e-0000-4000-8000-0123456789ab"
POINTS_A_CENTIMETRE = 72 / 2.54
LETTER_HEIGHT_POINTS = 792
LONGEST = 200  # characters of a title, a venue and a name


def ticket(
    *,
    title: str = "An Evening of Engines",
    venue: str = "Große Halle",
    starts_at: str = "2026-12-31T20:00:00-08:00",
    time_zone: str = "America/Los_Angeles",
    seat: str = "A-12",
    holder: str = "Ada Lovelace",
    token: str = "mt1." + "aB3_-" * 50,
) -> PrintedTicket:
    return PrintedTicket(
        event_title=title,
        venue=venue,
        starts_at=starts_at,
        time_zone=time_zone,
        seat=seat,
        holder=holder,
        booking_id=BOOKING_ID,
        token=token,
    )


def page(printed: PrintedTicket) -> PrintedPage:
    [only] = read_pdf(draw([printed]))
    return only


def test_a_ticket_says_what_when_where_which_seat_and_whose() -> None:
    assert page(ticket()).text.splitlines() == [
        "Ticket 1 of 1",
        "An Evening of Engines",
        "When",
        "Thursday, 31 December 2026, 20:00",
        "America/Los_Angeles, UTC-08:00",
        "Where",
        "Große Halle",
        "Row",
        "A",
        "Seat",
        "12",
        "Name",
        "Ada Lovelace",
        "Show this code at the door, on paper or on your phone. It lets one person in, once: do not share",
        "a picture of it.",
        f"Booking {BOOKING_ID} · Seat A-12",
    ]


def test_each_seat_has_a_page_with_its_own_code() -> None:
    tickets = [ticket(seat=f"A-{number}", token=f"mt1.{number}." + "x" * 200) for number in range(1, 11)]

    pages = read_pdf(draw(tickets))

    assert [each.scan() for each in pages] == [each.token for each in tickets]
    for number, each in enumerate(pages, 1):
        assert f"Ticket {number} of 10\n" in each.text
        assert f"Seat A-{number}" in each.text


def test_the_code_is_large_with_white_around_it() -> None:
    printed = page(ticket(token="mt1." + "x" * (MAX_TOKEN_CHARACTERS - 4)))

    left, bottom, right, top = printed.code_area()
    module = min(width for _, _, width, _ in printed.dark)

    assert right - left == pytest.approx(top - bottom)
    assert (right - left) / POINTS_A_CENTIMETRE > 5
    assert module / POINTS_A_CENTIMETRE * 10 > 0.8, "millimetres: what a phone's camera reads at arm's length"
    for line in printed.lines:
        is_beside = bottom - 4 * module < line.y < top + 4 * module
        assert not is_beside or line.x > right + 4 * module


@pytest.mark.parametrize("seat", ["7", "BALCONY", "A-1-2", "-5"])
def test_a_seat_in_no_row_says_none(seat: str) -> None:
    text = page(ticket(seat=seat)).text

    assert ("Row" in text.splitlines()) == (seat == "A-1-2")
    assert f"Seat {seat}" in text


LONG = {
    "wide": "W" * LONGEST,
    "words": "very long words " * 12,
    "arabic": "\u0645" * LONGEST,
    "east asian": "漢" * LONGEST,
    "squares": "\U0001f384" * LONGEST,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_the_longest_texts_leave_the_code_whole_and_all_of_it_on_paper_of_either_size(text: str) -> None:
    printed = page(ticket(title=text, venue=text, holder=text, seat="ABCDEF-1"))

    assert printed.scan() == ticket().token
    assert min(line.y for line in printed.lines) > printed.size[1] - LETTER_HEIGHT_POINTS + 36
    heights = [line.y for line in printed.lines if line.x < 100]
    assert heights == sorted(heights, reverse=True), "nothing is drawn over what stands above it"


def test_hebrew_is_drawn_from_right_to_left_and_the_code_stays() -> None:
    printed = page(ticket(holder="\u05e2\u05d3\u05d4"))

    assert "\u05d4\u05d3\u05e2" in printed.text
    assert printed.scan() == ticket().token


def test_what_cannot_be_printed_is_a_square_and_the_page_says_so() -> None:
    text = page(ticket(holder="Ada \U0001f384")).text

    assert "Ada □\n" in text
    assert "□ stands for a character that this print has no letter for." in text
    assert "□" not in page(ticket()).text


def test_letters_that_the_reader_must_bring_are_there_and_the_page_says_so() -> None:
    text = page(ticket(title="山田太郎コンサート")).text

    assert "山田太郎コンサート" in text
    assert "open this file where fonts for their language are installed" in text


@settings(max_examples=40, deadline=None)
@given(text=st.text(min_size=1, max_size=LONGEST))
def test_no_text_breaks_a_ticket(text: str) -> None:
    printed = page(ticket(title=text, venue=text, holder=text))

    assert printed.scan() == ticket().token
    assert "Thursday, 31 December 2026, 20:00" in printed.text


def test_markup_is_only_text() -> None:
    text = page(ticket(title="<b>A</b> &amp; (B) \\ %s")).text

    assert "<b>A</b> &amp; (B) \\ %s" in text


def test_the_same_tickets_are_the_same_bytes() -> None:
    assert draw([ticket(), ticket(seat="B-1")]) == draw([ticket(), ticket(seat="B-1")])


def test_a_ticket_is_never_shown_with_its_token() -> None:
    assert "mt1" not in repr(ticket())


@pytest.mark.parametrize("token", ["x" * (MAX_TOKEN_CHARACTERS + 1), "müll"])
def test_what_is_no_token_is_not_drawn(token: str) -> None:
    with pytest.raises(ContractError, match="token: "):
        draw([ticket(token=token)])


def test_the_largest_booking_takes_a_moment_and_little_room() -> None:
    tickets = [ticket(title="W" * LONGEST, venue="漢" * LONGEST, holder="\u0645" * LONGEST)] * 10
    draw(tickets[:1])

    began = time.thread_time()
    content = draw(tickets)

    assert time.thread_time() - began < 2, "measured: 0.4 s of one core"
    assert len(content) < 200_000


def test_the_fonts_lie_beside_their_licence_and_are_what_it_is_of() -> None:
    fonts = files("minitickets_api.services.ticket_pdf") / "fonts"
    names = {each.name for each in fonts.iterdir()}

    assert names == {"DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "LICENSE.txt"}
    licence = (fonts / "LICENSE.txt").read_text()
    assert "Bitstream Vera is" in licence
    assert "Tavmjong Bah" in licence


def printed(printer: TicketPrinter, *tickets: PrintedTicket) -> bytes:
    async def run() -> bytes:
        try:
            return await printer.print(tickets)
        finally:
            printer.close()

    return asyncio.run(run())


def test_a_printer_prints() -> None:
    [only] = read_pdf(printed(TicketPrinter(), ticket()))

    assert only.scan() == ticket().token


class SlowDrawing:
    """A drawing that ends when the test says so."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.began = threading.Event()

    def __call__(self, tickets: Sequence[PrintedTicket]) -> bytes:
        self.began.set()
        assert self.may_end.wait(20)
        return b"drawn"


def test_others_are_served_while_it_draws_and_too_many_are_turned_away() -> None:
    drawing = SlowDrawing()
    printer = TicketPrinter(draw=drawing)

    async def run() -> list[bytes]:
        waiting = [asyncio.create_task(printer.print([ticket()])) for _ in range(MAX_WAITING)]
        await asyncio.to_thread(drawing.began.wait, 20)  # the loop goes on
        with pytest.raises(Refusal) as refused:
            await printer.print([ticket()])
        assert refused.value.code is Code.SERVICE_UNAVAILABLE
        drawing.may_end.set()
        done = await asyncio.gather(*waiting)
        done.append(await printer.print([ticket()]))
        printer.close()
        return done

    assert asyncio.run(run()) == [b"drawn"] * (MAX_WAITING + 1)


def test_nobody_waits_for_ever() -> None:
    drawing = SlowDrawing()
    printer = TicketPrinter(draw=drawing, patience_seconds=0.05)

    with pytest.raises(Refusal) as refused:
        printed(printer, ticket())

    drawing.may_end.set()
    assert refused.value.code is Code.SERVICE_UNAVAILABLE
    assert refused.value.details == {"retryAfterSeconds": 5}


def test_a_fault_of_the_drawing_is_told_to_who_asked() -> None:
    with pytest.raises(ContractError, match="token: "):
        printed(TicketPrinter(), ticket(token="müll"))
