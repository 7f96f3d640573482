"""The load balancer's data plane: a port that passes each connection to a target; the targets change while it runs."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Coroutine
from typing import Any

from local.processes import ProcessError

_CHUNK_BYTES = 64 * 1024
_CONNECT_SECONDS = 5.0
_NOBODY_THERE = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 27\r\nConnection: close\r\n\r\n"
    b"No target is registered yet"
)


def as_served(url: str) -> str:
    """Where a load balancer answers on this machine: over plain HTTP, whatever certificate its stage has."""
    return url.replace("https://", "http://", 1).rstrip("/")


class Balancer:
    """Listeners by name, on loopback, in an event loop of its own thread.

    A connection stays with its target until one side closes it, so a target that is taken out drains.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: dict[str, asyncio.Server] = {}
        self._targets: dict[str, list[int]] = {}
        self._turns: dict[str, itertools.count[int]] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="balancer", daemon=True)
        self._thread.start()

    def listen(self, name: str, *, port: int) -> None:
        """Listen on 127.0.0.1:``port`` for ``name``; ProcessError if the port is taken."""
        self._run(self._listen(name, port))

    def set_targets(self, name: str, ports: list[int]) -> None:
        """Where new connections of ``name`` go from now on, in turn."""
        self._targets[name] = list(ports)

    def close(self, name: str) -> None:
        """Listen no more for ``name``; open connections stay until a side closes them."""
        self._targets.pop(name, None)
        self._run(self._close(name))

    def stop(self) -> None:
        """Close everything, open connections too."""
        for name in list(self._servers):
            self.close(name)
        self._run(self._end_connections())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self, name: str, port: int) -> None:
        if name in self._servers:
            raise ProcessError(f"load balancer {name} listens already")

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(name, reader, writer)

        try:
            self._servers[name] = await asyncio.start_server(accept, "127.0.0.1", port, backlog=1024)
        except OSError as error:
            raise ProcessError(
                f"load balancer {name}: port {port} on 127.0.0.1 cannot be had: {error.strerror}"
            ) from error

    async def _close(self, name: str) -> None:
        server = self._servers.pop(name, None)
        if server is not None:
            server.close()

    async def _end_connections(self) -> None:
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # transports close their sockets in the loop's next turn

    async def _serve(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine always runs in one
        self._connections.add(task)
        try:
            target = await self._connect(name)
            if target is None:
                # What the client sends meanwhile is read, or the reset that closing causes could outrun the answer.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(_CHUNK_BYTES), 1)
                writer.write(_NOBODY_THERE)
                await writer.drain()
                return
            target_reader, target_writer = target
            try:
                await asyncio.gather(_copy(reader, target_writer), _copy(target_reader, writer))
            finally:
                target_writer.close()
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            writer.close()

    async def _connect(self, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        ports = self._targets.get(name, [])
        start = next(self._turns.setdefault(name, itertools.count()))
        for step in range(len(ports)):
            with contextlib.suppress(OSError, TimeoutError):
                return await asyncio.wait_for(
                    asyncio.open_connection("127.0.0.1", ports[(start + step) % len(ports)]), _CONNECT_SECONDS
                )
        return None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end, and pass the end on: the other direction may have more to say."""
    try:
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        writer.transport.abort()
        return
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
