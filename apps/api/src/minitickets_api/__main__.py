"""Serves the API until SIGTERM or SIGINT."""

import logging
import sys

import uvicorn

from minitickets_api import logs
from minitickets_api.app import create_app
from minitickets_api.settings import Settings, SettingsError

# Longer than the load balancer's 60 s of idle time: whoever closes first must be the balancer, or it meets a closed
# connection with a request in its hand.
KEEP_ALIVE_SECONDS = 75
# With the 12 s of the lifespan's end (app.STOP_SECONDS) less than the 25 s after which a container is killed.
DRAIN_SECONDS = 10


def main() -> int:
    """Exit code: 0 after a signal, 1 when it ended for a reason of its own, 2 for a wrong environment."""
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 - before there is a log
        return 2
    logs.configure()
    ended_itself = False

    def end() -> None:
        nonlocal ended_itself
        ended_itself = True
        server.should_exit = True

    server = uvicorn.Server(
        uvicorn.Config(
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
    )
    server.run()
    logging.getLogger(__name__).info("ended")
    return 0 if server.started and not ended_itself else 1


if __name__ == "__main__":
    sys.exit(main())
