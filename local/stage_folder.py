"""The folder of one stage: all that the platform keeps between two starts, and who holds it now."""

import contextlib
import fcntl
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.processes import lasting_port

REPOSITORY = Path(__file__).resolve().parents[1]


def stage_folder(stage: str) -> Path:
    """Where a stage lives unless somebody says otherwise."""
    return REPOSITORY / ".local" / "state" / stage


class StageInUseError(RuntimeError):
    """Another platform holds the folder. ``running`` is what it says about itself; None while it comes up."""

    def __init__(self, folder: Path, running: dict[str, Any] | None) -> None:
        self.running = running
        where = f" at {running['control']} (process {running['pid']})" if running else ""
        super().__init__(f"a platform of this stage is already running{where}; its state is in {folder}")


def write_json(path: Path, document: object) -> None:
    """Replace a file at once by ``document`` as JSON, readable by its owner only."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(document, file, indent=1)
    draft.replace(path)


def read_json(path: Path) -> Any:
    """A file's JSON; None if there is no such file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


class StageFolder:
    """Paths in a stage's folder, its lock, and the ports that it answers at for ever."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ports_lock = threading.Lock()

    @property
    def running_file(self) -> Path:
        """What the running platform says about itself, its control token included."""
        return self.path / "running.json"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder (made if missing) while in the block; StageInUseError if somebody else does."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StageInUseError(self.path, self.running()) from None
            self.running_file.unlink(missing_ok=True)  # of one that crashed
            try:
                yield
            finally:
                self.running_file.unlink(missing_ok=True)

    def running(self) -> dict[str, Any] | None:
        """What the platform that holds the folder says about itself; None unless one is up."""
        try:
            running: dict[str, Any] | None = read_json(self.running_file)
        except (ValueError, OSError):
            return None
        return running

    def is_held(self) -> bool:
        """Whether a platform holds the folder now."""
        if not (self.path / "lock").exists():
            return False
        with (self.path / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def announce(self, running: dict[str, Any]) -> None:
        """Tell drivers, and whoever starts a second one, where the platform is."""
        write_json(self.running_file, running)

    def port(self, name: str) -> int:
        """The port of a part of the platform: drawn at first, the same at every start after."""
        with self._ports_lock:
            ports: dict[str, int] = read_json(self.path / "ports.json") or {}
            if name not in ports:
                ports[name] = lasting_port(ports.values())
                write_json(self.path / "ports.json", ports)
            return ports[name]

    def draw_port(self) -> int:
        """A fresh lasting port that none of the platform's own parts has."""
        with self._ports_lock:
            return lasting_port((read_json(self.path / "ports.json") or {}).values())

    def remove(self) -> None:
        """Delete everything that the stage keeps; StageInUseError while a platform runs on it."""
        if not self.path.exists():
            return
        with self.held():
            shutil.rmtree(self.path)
