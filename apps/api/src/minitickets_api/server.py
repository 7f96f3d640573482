"""How uvicorn serves the application."""

import asyncio
import socket
import time
from collections.abc import Callable

import uvicorn

from minitickets_api.app import create_app
from minitickets_api.connections import Connection
from minitickets_api.settings import Settings

# Longer than the load balancer's 60 s of idle time: whoever closes first must be the balancer, or it meets a closed
# connection with a request in its hand.
KEEP_ALIVE_SECONDS = 75
# With the farewell below and the end of the services (app.STOP_SECONDS) less than the 30 s after which a container is
# killed.
DRAIN_SECONDS = 10


# Requests come until the client has heard that its connection will close; a quiet moment ends the wait.
FAREWELL_SECONDS = 2.0
_QUIET_SECONDS = 0.1


class Server(uvicorn.Server):
    """Ends without meeting a request with a closed connection.

    uvicorn closes idle connections at once, perhaps just when a request is on its way. Here each connection's last
    reply first says that it is the last (``Connection: close``).
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no new connections, say farewell on those that are in use, then end as uvicorn does."""
        for server in self.servers:
            server.close()
        self.server_state.default_headers = [*self.server_state.default_headers, (b"connection", b"close")]
        end = time.monotonic() + FAREWELL_SECONDS
        answered = -1
        while time.monotonic() < end and answered != self.server_state.total_requests:
            answered = self.server_state.total_requests
            await asyncio.sleep(_QUIET_SECONDS)
        await super().shutdown(sockets)


def server_config(settings: Settings, *, end: Callable[[], None]) -> uvicorn.Config:
    """``end`` is called when this process can do no more good, and must let the server exit."""
    return uvicorn.Config(
        create_app(settings, end=end),
        host=settings.listen_host,
        port=settings.port,
        http=Connection,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # client_address.py reads the one hop that can be trusted
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
