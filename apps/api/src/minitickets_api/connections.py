"""One client's connection: uvicorn's, with an end to what a request's head may cost."""

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# What a load balancer lets through (request line and headers together): no request that comes through one has more.
MAX_HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 10.0


class Connection(HttpToolsProtocol):
    """Refuses (400) a head that does not end within ``MAX_HEAD_BYTES`` and ``HEAD_SECONDS``; closes a new connection on
    which nothing comes for as long as an old one may be idle.

    uvicorn itself waits for ever for the end of a head, and keeps all of it. What comes in one piece is looked at as
    one, so a head may be longer by the size of a socket's read (256 KiB).
    """

    _head_bytes = 0
    _head_is_open = False
    _head_ends: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(cast("asyncio.Transport", transport))
        # In silence: whoever connects in advance and hears something would take it for the reply to its request.
        self._head_ends = self.loop.call_later(self.timeout_keep_alive, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and the timer with it."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless the head is too long by now."""
        super().data_received(data)
        if self._head_is_open and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(f"The request line and headers are larger than {MAX_HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        """The first byte of a request is here."""
        super().on_message_begin()
        self._begin_head()

    def on_headers_complete(self) -> None:
        """The head is here; the endpoint bounds what follows."""
        self._end_head()
        super().on_headers_complete()

    def _begin_head(self) -> None:
        self._end_head()
        self._head_is_open = True
        self._head_ends = self.loop.call_later(
            HEAD_SECONDS, self._refuse, f"The request line and headers did not arrive within {HEAD_SECONDS:g} seconds."
        )

    def _end_head(self) -> None:
        self._head_bytes = 0
        self._head_is_open = False
        if self._head_ends is not None:
            self._head_ends.cancel()
            self._head_ends = None

    def _refuse(self, message: str) -> None:
        self._end_head()
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # words of ours would come out in the middle of the reply before
        elif not self.transport.is_closing():
            self.send_400_response(message)
