"""A proxy between a process and AWS, at which the process dies, stands still or loses a reply: no code of its own."""

import contextlib
import os
import signal
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from local.loopback import Reply, Request, json_reply, pass_on, serve
from local.processes import free_port, kernel_start_time, wait_until

When = Literal["before", "after"]
"""Before the call is passed on, or after AWS has done it and before the process learns so."""

_SEND_EMAIL = "/v2/email/outbound-emails"


def action_of(request: Request) -> str:
    """The API call of a request, as AWS names it."""
    if target := request.header("X-Amz-Target"):
        return target.rpartition(".")[2]
    path = urllib.parse.urlsplit(request.path).path
    if path == _SEND_EMAIL:
        return "SendEmail"
    if b"Action=" in request.body[:4096]:
        return urllib.parse.parse_qs(request.body.decode(errors="replace"))["Action"][0]
    return {"PUT": "PutObject", "GET": "GetObject"}.get(request.method, request.method)


_NOBODY_LISTENS = Reply(status=503)


class CutOffError(Exception):
    """The connection broke: before the request was passed on, it must not reach AWS; after, its reply gets nowhere."""


@dataclass(kw_only=True)
class Strike:
    """Do ``what`` at the ``nth`` call of ``action``. ``struck`` is set once it is done."""

    action: str
    when: When
    what: Callable[[], None]
    nth: int = 1
    struck: threading.Event = field(default_factory=threading.Event)


class Boundary:
    """The proxy. ``calls`` are all that came through, in their order."""

    def __init__(self, *, upstream_port: int) -> None:
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.calls: list[str] = []
        self._upstream_port = upstream_port
        self._strikes: list[Strike] = []
        self._lock = threading.Lock()

    def strike(self, action: str, when: When, what: Callable[[], None], *, nth: int = 1) -> Strike:
        """Have ``what`` done once, at that call; counted from now."""
        strike = Strike(action=action, when=when, what=what, nth=nth)
        with self._lock:
            self._strikes.append(strike)
        return strike

    def answer(self, request: Request) -> Reply:
        action = action_of(request)
        with self._lock:
            self.calls.append(action)
            due = [strike for strike in self._strikes if strike.action == action and self._counts(strike)]
        try:
            self._do(due, "before")
        except CutOffError:
            return _NOBODY_LISTENS
        try:
            reply = pass_on(request, port=self._upstream_port)
        except OSError as error:
            reply = json_reply({"__type": "InternalFailure", "message": str(error)}, status=503)
        try:
            self._do(due, "after")
        except CutOffError:
            return _NOBODY_LISTENS
        return reply

    def _counts(self, strike: Strike) -> bool:
        strike.nth -= 1
        return strike.nth == 0

    def _do(self, due: list[Strike], when: When) -> None:
        for strike in due:
            if strike.when == when:
                try:
                    strike.what()
                finally:
                    strike.struck.set()


@contextlib.contextmanager
def boundary(*, upstream_port: int) -> Iterator[Boundary]:
    """A running proxy to 127.0.0.1:``upstream_port``."""
    made = Boundary(upstream_port=upstream_port)
    stop = serve("boundary", port=made.port, answer=made.answer)
    try:
        yield made
    finally:
        stop()


def killing(pid_of: Callable[[], int]) -> Callable[[], None]:
    """SIGKILL to the process that calls; ``pid_of`` is asked when it is time."""

    def kill() -> None:
        pid = pid_of()
        os.kill(pid, signal.SIGKILL)
        # Nothing of it may run once the call goes on.
        wait_until("the process has ended", lambda: kernel_start_time(pid) is None, seconds=10)
        raise CutOffError

    return kill


def losing_the_reply() -> None:
    """Instead of the reply comes a 503 that says nothing about the call."""
    raise CutOffError
