"""The folder of one stage: all that the platform keeps between two starts, and who holds it now."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from local.processes import ProcessError, lasting_port, what_failed

REPOSITORY = Path(__file__).resolve().parents[1]

# A name, never a path: a folder is emptied under it.
_STAGE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# What may be there before the folder is first held (by their beginnings: a file is a draft before it is whole).
_BESIDE_NO_LOCK = ("logs", "ports.json", "running.json")

# More resets never meet one start: some file systems (/proc) say of what cannot be made that it is not there.
_MOST_REMOVALS = 100


class FolderError(click.ClickException):
    """The folder cannot be a stage's: it is not ours, or cannot be written. Every command ends with it, and says it."""

    exit_code = 2


def stage_folder(stage: str) -> Path:
    """Where a stage lives unless somebody says otherwise. FolderError for what cannot be a stage's name."""
    if not _STAGE.fullmatch(stage):
        raise FolderError(f"{stage!r} is no stage's name: use lower-case letters, digits and single hyphens")
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
        file.write(json.dumps(document))  # at once and without indent: the encoder in C, ten times as fast
    draft.replace(path)


def read_json(path: Path) -> Any:
    """A file's JSON; None if there is no such file. ProcessError if it is cut off, as by a crash."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ProcessError(f"{path} is damaged ({error}); `make local-reset` empties the stage") from error


def _is_no_folder(path: Path) -> bool:
    """Whether something else is there; one look, because a folder may go between two."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return False


class StageFolder:
    """Paths in a stage's folder, its lock, and the ports that it answers at for ever."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ports_lock = threading.Lock()

    @property
    def _lock_file(self) -> Path:
        return self.path / "lock"

    @property
    def running_file(self) -> Path:
        """What the running platform says about itself, its control token included."""
        return self.path / "running.json"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder (made if missing) while in the block; StageInUseError if somebody else does."""
        with self._locked():
            self.running_file.unlink(missing_ok=True)  # of one that crashed
            try:
                yield
            finally:
                self.running_file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        removals = 0
        while True:
            try:
                self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._refuse_foreign()
                lock = self._lock_file.open("a")
            except (FileExistsError, FileNotFoundError):
                if _is_no_folder(self.path):
                    raise FolderError(f"{self.path} is no folder: name another one") from None
                removals += 1  # in this very moment, by a reset
                if removals == _MOST_REMOVALS:
                    raise FolderError(f"{self.path} cannot be made there: name another folder") from None
                continue
            except OSError as error:
                raise FolderError(f"a stage cannot be kept here: {what_failed(error)}") from error
            with lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise StageInUseError(self.path, self.running()) from None
                # Whoever removed the folder meanwhile took the file with it, and the next one locks another.
                if self._lock_is(lock.fileno()):
                    yield
                    return

    def _lock_is(self, file: int) -> bool:
        try:
            return self._lock_file.stat().st_ino == os.fstat(file).st_ino
        except FileNotFoundError:
            return False

    def _refuse_foreign(self) -> None:
        """FolderError for a folder of somebody else's files, which a reset would delete."""
        entries = list(self.path.iterdir())
        try:
            has_lock, is_empty = True, self._lock_file.stat().st_size == 0
        except FileNotFoundError:
            has_lock, is_empty = False, True
        # A stage's files come after its lock and go before it, which is empty; the lock itself may come and go between
        # two looks, while others start and reset.
        foreign = [
            entry for entry in entries if entry != self._lock_file and not entry.name.startswith(_BESIDE_NO_LOCK)
        ]
        found = next((entry for entry in foreign if not has_lock and entry.exists()), None)
        if not is_empty:
            found = self._lock_file
        if found is not None:
            raise FolderError(
                f"{self.path} holds {found.name}, so it is no stage's: name an empty folder. Nothing was changed"
            )

    def running(self) -> dict[str, Any] | None:
        """What the platform that holds the folder says about itself; None unless one is up."""
        try:
            running: dict[str, Any] | None = read_json(self.running_file)
        except (ValueError, OSError):
            return None
        return running

    def is_held(self) -> bool:
        """Whether a platform holds the folder now."""
        if not self._lock_file.exists():
            return False
        with self._lock_file.open() as lock:
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

    @contextlib.contextmanager
    def emptied(self) -> Iterator[None]:
        """Hold the folder while in the block, then delete it with all that it keeps; StageInUseError if it is held."""
        with self._locked():
            yield
            try:
                self._remove_entries()
                # The lock goes last: until then nobody else may begin.
                self._lock_file.unlink()
            except OSError as error:
                raise FolderError(f"{self.path} cannot be emptied: {what_failed(error)}") from error
            with contextlib.suppress(OSError):
                self.path.rmdir()

    def _remove_entries(self) -> None:
        for entry in self.path.iterdir():
            if entry == self._lock_file:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
