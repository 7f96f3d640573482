"""Prints tickets off the event loop, one booking at a time: drawing is work in Python, which two threads only share."""

import asyncio
import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.ticket_pdf.ticket import PrintedTicket

# The largest booking takes a quarter of a second of a core, a second of the smallest task (docs/cost.md): there the
# last of these waits 16 s. Browsers and the load balancer wait longer than we do.
MAX_WAITING = 16
PATIENCE_SECONDS = 20.0


def _draw(tickets: Sequence[PrintedTicket]) -> bytes:
    # Its fonts and library take 0.3 s to load: who never prints does not wait for them.
    from minitickets_api.services.ticket_pdf.page import draw

    return draw(tickets)


class TicketPrinter:
    """Draws PDFs in a thread of its own."""

    def __init__(
        self, *, draw: Callable[[Sequence[PrintedTicket]], bytes] = _draw, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._draw = draw
        self._patience_seconds = patience_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ticket-pdf")
        self._waiting = 0

    async def print(self, tickets: Sequence[PrintedTicket]) -> bytes:
        """A PDF with one page a ticket. Raises Refusal (SERVICE_UNAVAILABLE) if too many wait, or it takes too long."""
        if self._waiting >= MAX_WAITING:
            raise _busy()
        self._waiting += 1
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._thread, contextvars.copy_context().run, partial(self._draw, tickets))
        work.add_done_callback(self._one_less)
        try:
            async with asyncio.timeout(self._patience_seconds):
                return await asyncio.shield(work)
        except TimeoutError:
            raise _busy() from None

    def close(self) -> None:
        """End the thread; what waits is dropped."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _one_less(self, work: "asyncio.Future[bytes]") -> None:
        self._waiting -= 1
        if not work.cancelled():
            work.exception()  # whoever waited has been told, or has gone


def _busy() -> Refusal:
    return Refusal(
        Code.SERVICE_UNAVAILABLE, "Printing takes too long just now. Try again in a moment.", retryAfterSeconds=5
    )
