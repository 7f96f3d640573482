"""Serves the API until SIGTERM or SIGINT."""

import logging
import os
import signal
import sys

from minitickets_api import logs
from minitickets_api.server import Server, server_config
from minitickets_api.settings import Settings, SettingsError


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

    def stop(*_: object) -> None:
        server.should_exit = True

    server = Server(server_config(settings, end=end))
    # Until uvicorn puts its own in their place, and again when it is done and repeats the signal that ended it: a
    # wanted end has exit code 0, and a signal that comes early is not lost.
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    server.run()
    logging.getLogger(__name__).info("ended")
    return 0 if server.started and not ended_itself else 1


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit, which waits for every thread: one that AWS keeps waiting holds nothing any more, and would keep the
    # process until it is killed.
    os._exit(code)
