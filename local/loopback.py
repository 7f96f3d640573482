"""A small HTTP server on 127.0.0.1 for the platform's own parts: a thread a connection, keep-alive, bounded bodies."""

import http.client
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from local.processes import ProcessError

# The platform's own messages are small; a mail may have 40 MB with SES v2.
_MOST_BODY_BYTES = 64 * 1024 * 1024
_PASS_ON_SECONDS = 30.0
_HOP_BY_HOP = {"connection", "content-length", "expect", "keep-alive", "transfer-encoding", "date", "server"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as it came. Header names keep their case; look them up with ``header``."""

    method: str
    path: str  # with the query
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        """The value of a header, empty if absent."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    def json(self) -> Any:
        """The body as JSON (nothing counts as ``{}``); ValueError if it is none."""
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What goes back."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


_LOOPBACK = frozenset({"127.0.0.1", "localhost"})


def names_loopback(request: Request) -> bool:
    """Whether a browser asks under one of this machine's own names, not under one that a site lets point here."""
    host, _, port = request.header("Host").lower().partition(":")
    return host in _LOOPBACK and (port.isdecimal() or not port)


def json_reply(document: object, *, status: int = 200) -> Reply:
    """A reply whose body is JSON."""
    return Reply(status=status, body=json.dumps(document).encode())


def pass_on(request: Request, *, port: int) -> Reply:
    """What a server at 127.0.0.1:``port`` answers; OSError or http.client.HTTPException if it does not."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PASS_ON_SECONDS)
    try:
        # The Host header stays as the client wrote it: its signature covers it.
        connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
        for key, value in request.headers:
            if key.lower() not in _HOP_BY_HOP:
                connection.putheader(key, value)
        connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        got = connection.getresponse()
        headers = tuple((key, value) for key, value in got.getheaders() if key.lower() not in _HOP_BY_HOP)
        return Reply(status=got.status, body=got.read(), headers=headers)
    finally:
        connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news."""

    def server_bind(self) -> None:
        # HTTPServer's own looks the host's name up, which can take seconds.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])


def serve(name: str, *, port: int, answer: Callable[[Request], Reply]) -> Callable[[], None]:
    """Serve on 127.0.0.1:``port`` in threads; returns the call that stops it. ProcessError if the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 300
        # One packet a reply: with two, Nagle's algorithm and delayed acknowledgements add 40 ms to each.
        wbufsize = -1
        disable_nagle_algorithm = True

        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= _MOST_BODY_BYTES or self.headers.get("Transfer-Encoding"):
                self.send_error(413)
                self.close_connection = True
                return
            reply = answer(
                Request(
                    method=self.command,
                    path=self.path,
                    headers=list(self.headers.items()),
                    body=self.rfile.read(length),
                )
            )
            self.send_response_only(reply.status)
            for key, value in reply.headers:
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)
            self.wfile.flush()

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _respond  # noqa: N815 - http.server's own names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Requests are not logged."""

    try:
        server = _Server(("127.0.0.1", port), Handler)
    except OSError as error:
        raise ProcessError(f"{name}: port {port} on 127.0.0.1 cannot be had: {error.strerror}") from error
    threading.Thread(target=server.serve_forever, args=(0.05,), name=name, daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    return stop
