"""What the head of a request may cost, over real sockets."""

import socket
from collections.abc import Iterator

import pytest

from local.processes import wait_until
from minitickets_api import connections, server
from tests.fixtures.running_api import RunningApi

pytestmark = pytest.mark.integration

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: here\r\n"


@pytest.fixture
def client(api: RunningApi) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", api.settings.port), timeout=10) as connected:
        yield connected


def everything(client: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    received = b""
    while chunk := client.recv(65536):
        received += chunk
    return received


@pytest.mark.parametrize("piece", [b"X: " + b"a" * 65536, b"X: a\r\n" * 16384], ids=["one header", "many headers"])
def test_a_head_without_end_is_refused_instead_of_kept(client: socket.socket, piece: bytes) -> None:
    client.sendall(REQUEST)
    with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012 - which of the pieces is the first too many is open
        for _ in range(1000):
            client.sendall(piece)
        pytest.fail("64 MB of headers were taken")


def test_a_head_that_is_too_long_is_told_so(client: socket.socket) -> None:
    client.sendall(REQUEST + b"X: " + b"a" * connections.MAX_HEAD_BYTES)

    reply = everything(client)

    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"larger than 65536 bytes" in reply


def test_a_head_that_does_not_arrive_in_time_is_told_so(client: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    client.sendall(REQUEST)

    reply = everything(client)

    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"did not arrive within 0.2 seconds" in reply


def test_a_long_head_that_is_allowed_and_the_request_after_it_are_answered(client: socket.socket) -> None:
    for _ in range(3):  # more than MAX_HEAD_BYTES together
        client.sendall(REQUEST)
        client.sendall(b"X: " + b"a" * (connections.MAX_HEAD_BYTES // 2) + b"\r\n\r\n")

        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_server_that_ends_answers_the_request_that_is_on_its_way_and_says_that_it_is_the_last(
    client: socket.socket, api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FAREWELL_SECONDS", 20.0)
    monkeypatch.setattr(server, "_QUIET_SECONDS", 2.0)
    client.sendall(REQUEST + b"\r\n")
    assert b"connection: close" not in client.recv(65536).lower()

    def is_closed_to_others() -> bool:
        try:
            socket.create_connection(("127.0.0.1", api.settings.port), timeout=5).close()
        except ConnectionRefusedError:
            return True
        return False

    api._server.should_exit = True
    wait_until("nobody else is let in", is_closed_to_others, seconds=10)
    # As if it had been on its way when the signal came: whoever sends it knows of no end yet.
    client.sendall(REQUEST + b"\r\n")

    reply = everything(client)
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in reply.lower()
