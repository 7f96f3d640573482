"""The load balancer's data plane, over real sockets."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local.balancer import Balancer, as_served
from local.processes import ProcessError, free_port

pytestmark = pytest.mark.unit


@contextmanager
def _target(name: bytes) -> Iterator[int]:
    """A server that answers each line with its name; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=echo, args=(connection,), daemon=True).start()

        def echo(connection: socket.socket) -> None:
            with connection, connection.makefile("rb") as lines:
                for _ in lines:
                    connection.sendall(name + b"\n")

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    balancer = Balancer()
    yield balancer
    balancer.stop()


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def _ask(connection: socket.socket) -> bytes:
    connection.sendall(b"who\n")
    return connection.recv(100)


def test_connections_take_turns_between_targets(balancer: Balancer) -> None:
    port = free_port()
    with _target(b"one") as one, _target(b"two") as two:
        balancer.listen("api", port=port)
        balancer.set_targets("api", [one, two])

        answers = set()
        for _ in range(4):
            with _connect(port) as connection:
                answers.add(_ask(connection))

    assert answers == {b"one\n", b"two\n"}


def test_an_open_connection_stays_with_a_target_that_was_taken_out(balancer: Balancer) -> None:
    port = free_port()
    with _target(b"old") as old, _target(b"new") as new:
        balancer.listen("api", port=port)
        balancer.set_targets("api", [old])
        with _connect(port) as kept:
            assert _ask(kept) == b"old\n"

            balancer.set_targets("api", [new])

            with _connect(port) as fresh:
                assert _ask(fresh) == b"new\n"
            assert _ask(kept) == b"old\n"


def test_a_target_that_died_is_passed_over(balancer: Balancer) -> None:
    port = free_port()
    with _target(b"alive") as alive:
        balancer.listen("api", port=port)
        balancer.set_targets("api", [free_port(), alive])

        for _ in range(3):
            with _connect(port) as connection:
                assert _ask(connection) == b"alive\n"


def test_without_a_target_the_answer_is_503(balancer: Balancer) -> None:
    port = free_port()
    balancer.listen("api", port=port)

    with _connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 503 ")


def test_the_end_of_a_request_reaches_the_target_and_its_answer_still_comes_back(balancer: Balancer) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_at_the_end() -> None:
            connection, _ = server.accept()
            with connection:
                received = b""
                while chunk := connection.recv(100):
                    received += chunk
                connection.sendall(received.upper())

        thread = threading.Thread(target=answer_at_the_end)
        thread.start()
        balancer.listen("api", port=port)
        balancer.set_targets("api", [server.getsockname()[1]])
        with _connect(port) as connection:
            connection.sendall(b"whole request")
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(100) == b"WHOLE REQUEST"
        thread.join(5)


def test_a_closed_listener_frees_its_port(balancer: Balancer) -> None:
    port = free_port()
    balancer.listen("api", port=port)

    balancer.close("api")

    with pytest.raises(OSError):
        _connect(port)


def test_a_taken_port_is_named(balancer: Balancer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ProcessError, match=str(port)):
            balancer.listen("api", port=port)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_stage_with_a_certificate_answers_here_where_it_says_it_does(scheme: str) -> None:
    assert as_served(f"{scheme}://127.0.0.1:20001/") == "http://127.0.0.1:20001"
    assert as_served("http://https.example.org") == "http://https.example.org"
