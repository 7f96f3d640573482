"""How uvicorn serves the application."""

from collections.abc import Callable

import uvicorn

from minitickets_api.app import create_app
from minitickets_api.settings import Settings

# Longer than the load balancer's 60 s of idle time: whoever closes first must be the balancer, or it meets a closed
# connection with a request in its hand.
KEEP_ALIVE_SECONDS = 75
# With the 12 s of the lifespan's end (app.STOP_SECONDS) less than the 25 s after which a container is killed.
DRAIN_SECONDS = 10


def server_config(settings: Settings, *, end: Callable[[], None]) -> uvicorn.Config:
    """``end`` is called when this process can do no more good, and must let the server exit."""
    return uvicorn.Config(
        create_app(settings, end=end),
        host=settings.listen_host,
        port=settings.port,
        http="httptools",
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # client_address.py reads the one hop that can be trusted
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
