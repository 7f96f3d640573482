"""What was called, by whom, with what outcome: botocore's own monitoring (CSM), a UDP record a call, kept on disk.

Presigned requests, a mapping's polling and log writes appear in no record.
"""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from local.processes import ProcessError

_ROTATE_BYTES = 32 * 1024 * 1024
# They would let whoever reads the file act as the role until they expire.
_SECRET_FIELDS = ("SessionToken",)


class CallRecorder:
    """Receives on UDP 127.0.0.1:``port`` and appends to ``file``, which turns over once it has 32 MB."""

    def __init__(self, *, port: int, file: Path) -> None:
        self.port = port
        self._file = file
        self._lock = threading.Lock()

    def start(self) -> Callable[[], None]:
        """Receive in a thread; returns the call that stops it. ProcessError if the port is taken."""
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * 1024 * 1024)
        try:
            receiver.bind(("127.0.0.1", self.port))
        except OSError as error:
            raise ProcessError(
                f"call recorder: UDP port {self.port} on 127.0.0.1 cannot be had: {error.strerror}"
            ) from error
        stopped = threading.Event()
        receiver.settimeout(0.2)
        thread = threading.Thread(target=self._receive, args=(receiver, stopped), name="call recorder", daemon=True)
        thread.start()

        def stop() -> None:
            stopped.set()
            thread.join(2)
            receiver.close()

        return stop

    def calls(self, *, client_id: str | None = None) -> list[dict[str, Any]]:
        """The records of both kinds (``ApiCall``, ``ApiCallAttempt``), oldest first; of one role if asked for."""
        return [call for call in self._read() if client_id is None or call.get("ClientId") == client_id]

    def _read(self) -> Iterator[dict[str, Any]]:
        with self._lock:
            text = "".join(path.read_text() for path in (self._older, self._file) if path.exists())
        for line in text.splitlines():
            yield json.loads(line)

    @property
    def _older(self) -> Path:
        return self._file.with_suffix(".older.jsonl")

    def _receive(self, receiver: socket.socket, stopped: threading.Event) -> None:
        while True:
            try:
                datagram = receiver.recv(65_535)
            except TimeoutError:
                if stopped.is_set():
                    return
                continue
            record = _redacted(datagram)
            if record is not None:
                self._append(record)

    def _append(self, record: dict[str, Any]) -> None:
        with self._lock:
            if self._file.exists() and self._file.stat().st_size > _ROTATE_BYTES:
                self._file.replace(self._older)
            with os.fdopen(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
                file.write(json.dumps(record) + "\n")


def _redacted(datagram: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(datagram)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    return {key: "<redacted>" if key in _SECRET_FIELDS else value for key, value in record.items()}
