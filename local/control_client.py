"""How a driver talks to a running platform: JSON over HTTP on loopback, with the token from the stage's folder."""

import http.client
import json
import threading
import time
import urllib.parse
from typing import Any

from local.processes import Child, ProcessError
from local.stage_folder import StageFolder

_IDLE_SECONDS = 60.0


class RefusedError(RuntimeError):
    """The platform refused; the message is what it, or AWS, says."""


class NothingFoundError(RuntimeError):
    """A look-up of the program found nothing, or was refused; the text is the provider's."""


class ControlClient:
    """A client of the control API, for any thread; one connection each."""

    def __init__(self, *, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._of_thread = threading.local()
        self._connections: list[http.client.HTTPConnection] = []

    @classmethod
    def of(cls, folder: StageFolder, *, seconds: float = 0, supervisor: Child | None = None) -> "ControlClient":
        """The client of the platform that holds the folder; waits up to ``seconds`` for it to say where it is.

        ProcessError if there is none by then, or if ``supervisor`` has ended.
        """
        end = time.monotonic() + seconds
        while True:
            running = folder.running()
            if running is not None and (supervisor is None or running["pid"] == supervisor.pid):
                return cls(port=running["controlPort"], token=running["token"])
            if supervisor is not None and supervisor.exit_code() is not None:
                raise ProcessError(f"the platform ended with exit code {supervisor.exit_code()}")
            if time.monotonic() >= end:
                raise ProcessError(f"no platform runs on {folder.path}; `make local` starts one")
            time.sleep(0.01)

    def get(self, path: str, **query: str) -> Any:
        """Read something."""
        return self._call("GET", f"{path}?{urllib.parse.urlencode(query)}" if query else path, None)

    def post(self, path: str, document: object, *, seconds: float = 120) -> Any:
        """Ask for something; waits ``seconds`` for the answer."""
        return self._call("POST", path, document, seconds=seconds)

    def close(self) -> None:
        """Close the connections of all threads; none may be using its own."""
        for connection in self._connections:
            connection.close()

    def wait_until_ready(self, *, seconds: float = 60) -> None:
        """Return once the platform is up; ProcessError with its reason if it does not come up."""
        self.post("/ready", {"seconds": seconds}, seconds=seconds + 5)

    def _call(self, method: str, path: str, document: object, *, seconds: float = 30) -> Any:
        connection = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = self._of_thread.connection = http.client.HTTPConnection("127.0.0.1", self._port)
            self._connections.append(connection)
        # The platform closes connections that idle for minutes; a request on one of those would be lost.
        if time.monotonic() - getattr(self._of_thread, "last_use", 0.0) > _IDLE_SECONDS:
            connection.close()
        self._of_thread.last_use = time.monotonic()
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        body = None if document is None else json.dumps(document)
        try:
            connection.request(method, path, body=body, headers={"Authorization": f"Bearer {self._token}"})
            reply = connection.getresponse()
            answer = json.loads(reply.read())
        except TimeoutError as error:
            connection.close()
            raise ProcessError(f"the platform did not answer {method} {path} within {seconds:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ProcessError(f"the platform is gone ({error})") from error
        if reply.status == 200:
            return answer
        if reply.status == 404:
            raise NothingFoundError(answer["error"])
        if reply.status == 503:
            raise ProcessError(answer["error"])
        raise RefusedError(answer["error"])
