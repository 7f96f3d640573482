"""Child processes that end with the platform, however it ends."""

import contextlib
import ctypes
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class ProcessError(RuntimeError):
    """A child process did not start, or ended when it should not have. The message holds the end of its log."""


def what_failed(error: OSError) -> str:
    """What the system said, and of which file: one line, also where many files failed at once (``shutil.Error``)."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list) and error.args[0]:
        _, target, reason = error.args[0][0]
        # Its reasons end with both paths; the number and words before them are the system's.
        return f"{str(reason).partition(': ')[0]}: {target} (and {len(error.args[0]) - 1} more)"
    return f"{error.strerror or error}: {error.filename}" if error.filename else error.strerror or str(error)


def free_port() -> int:
    """A TCP port that nobody listens on at 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# Below the range from which the kernel takes ports for outgoing connections, so that a port which is kept between two
# runs is not in use by chance at the second.
_LASTING_PORTS = range(20_000, 30_000)


def lasting_port(taken: Collection[int] = ()) -> int:
    """A free TCP port of 127.0.0.1 that can be had again after a restart; none of ``taken``."""
    for port in random.sample(_LASTING_PORTS, k=200):
        if port in taken:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ProcessError(f"no free port between {_LASTING_PORTS.start} and {_LASTING_PORTS.stop - 1} on 127.0.0.1")


def kernel_start_time(pid: int) -> str | None:
    """When a process started, as the kernel counts; None if there is none. With the pid it names one process for ever.

    Zombies count as ended.
    """
    try:
        # "pid (name) state …": the name may hold anything, so count from its closing parenthesis.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def boot_id() -> str:
    """Which boot of the machine this is: process numbers mean nothing across two."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def accepts_connections(port: int) -> bool:
    """Whether something listens on 127.0.0.1:``port``."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def wait_until(what: str, condition: Callable[[], bool], *, seconds: float, alive: "Child | None" = None) -> None:
    """Wait until ``condition`` holds; ProcessError after ``seconds``, or as soon as ``alive`` has ended."""
    end = time.monotonic() + seconds
    while not condition():
        if alive is not None and alive.exit_code() is not None:
            raise ProcessError(f"{what}: {alive.name} ended with exit code {alive.exit_code()}\n{alive.log_tail()}")
        if time.monotonic() > end:
            tail = f"\n{alive.log_tail()}" if alive is not None else ""
            raise ProcessError(f"{what}: not after {seconds:g} s{tail}")
        time.sleep(0.01)


class Child:
    """A running child process, its output in a log file (or, with None, where ours goes)."""

    def __init__(
        self, name: str, process: "subprocess.Popen[bytes]", log: Path | None, stop_signal: signal.Signals
    ) -> None:
        self.name = name
        self.log = log
        self.pid = process.pid
        self.stop_signal = stop_signal
        self._process = process

    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def log_tail(self, lines: int = 15) -> str:
        """The end of its log, for an error message."""
        if self.log is None or not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it still runs."""
        if self.exit_code() is None:
            self._process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """Its exit code once it has ended; subprocess.TimeoutExpired after ``seconds``."""
        return self._process.wait(seconds)

    def stop(self, seconds: float = 10) -> int:
        """End it: its stop signal first, SIGKILL to its whole group after ``seconds``. Returns the exit code."""
        self.send(self.stop_signal)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end_group()
            return self._process.wait(10)

    def end_group(self) -> None:
        """SIGKILL whatever is left of its group: it and its own children."""
        end_group(self.pid)


def end_group(leader: int) -> None:
    """SIGKILL the whole process group of ``leader``, if there is one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def start(
    name: str,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path | None,
    cwd: Path | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Child:
    """Start ``argv`` in a session of its own; it gets ``stop_signal`` too when this process dies.

    ``env`` is the whole environment: nothing of ours leaks in.
    """
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    parent = os.getpid()

    def launch() -> "subprocess.Popen[bytes]":
        with log.open("ab") if log is not None else contextlib.nullcontext() as output:
            return subprocess.Popen(
                argv,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_ends_with(parent, stop_signal) if sys.platform == "linux" else None,
            )

    try:
        process = _in_lasting_thread(launch)
    except OSError as error:
        raise ProcessError(f"{name}: cannot start {argv[0]}: {error.strerror}") from error
    return Child(name, process, log, stop_signal)


_LIBC = ctypes.CDLL(None)


def _ends_with(parent: int, number: signal.Signals) -> Callable[[], None]:
    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return prepare


# The death signal comes when the *thread* that forked ends, so one thread that never ends does all forking.
_launches: "queue.Queue[tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]]" = queue.Queue()
_launcher: threading.Thread | None = None
_launcher_lock = threading.Lock()


def _in_lasting_thread(launch: Callable[[], "subprocess.Popen[bytes]"]) -> "subprocess.Popen[bytes]":
    global _launcher
    with _launcher_lock:
        if _launcher is None:
            _launcher = threading.Thread(target=_launch_forever, name="launcher", daemon=True)
            _launcher.start()
    started: Future[subprocess.Popen[bytes]] = Future()
    _launches.put((launch, started))
    return started.result()


def _launch_forever() -> None:
    while True:
        launch, started = _launches.get()
        try:
            started.set_result(launch())
        except BaseException as error:  # noqa: BLE001 - it is the waiting caller's, whatever it is
            started.set_exception(error)
