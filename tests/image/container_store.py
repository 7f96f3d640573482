"""Images and containers of the image tests: buildah with a store of its own, kept so that the next run is quick.

No daemon, no network of its own: containers share this machine's loopback, where the tests' servers are.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from local.processes import wait_until

_PROGRAMS = ("buildah", "debootstrap", "unshare")
_DRIVERS = ("overlay", "vfs")  # vfs copies whole images, and works on any file system
_STEP_SECONDS = 600
_WAIT_SECONDS = 600


class UnavailableError(RuntimeError):
    """This machine cannot build or run an image; the message says what it lacks."""


class ContainerStore:
    """buildah, told to keep all that it makes in ``folder``; ``run`` holds what a reboot may forget."""

    def __init__(self, folder: Path, *, run: Path) -> None:
        """Raises UnavailableError where a program, root's rights or a storage driver is missing."""
        missing = [program for program in _PROGRAMS if shutil.which(program) is None]
        if missing:
            raise UnavailableError(f"no {', no '.join(missing)} on PATH: images are neither built nor started here")
        tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
        if os.geteuid() != 0 or tried.returncode != 0:
            raise UnavailableError("images are built and started here by mounting them, which this user may not do")
        self.folder = folder
        self._environment: Mapping[str, str] = {}
        reasons = []
        for driver in _DRIVERS:
            file = run / f"{driver}.conf"
            root = folder / driver
            file.write_text(f'[storage]\ndriver = "{driver}"\ngraphroot = "{root}"\nrunroot = "{run / driver}"\n')
            self._environment = {**os.environ, "CONTAINERS_STORAGE_CONF": str(file), "BUILDAH_ISOLATION": "chroot"}
            asked = self._run("info", seconds=60)
            if asked.returncode == 0:
                return
            reasons.append(asked.stderr.strip().splitlines()[-1:])
        raise UnavailableError(f"buildah cannot keep images here: {reasons}")

    @property
    def environment(self) -> Mapping[str, str]:
        """What buildah is to be started with, for whoever starts it himself."""
        return self._environment

    def buildah(self, *arguments: str, seconds: float = _STEP_SECONDS) -> str:
        """Run buildah; what it printed. AssertionError with its errors where it fails."""
        ended = self._run(*arguments, seconds=seconds)
        assert ended.returncode == 0, f"buildah {' '.join(arguments)}: {ended.stderr}"
        return ended.stdout.strip()

    def has_image(self, name: str) -> bool:
        """Whether an image of that name is there from an earlier run."""
        return self._run("inspect", "--type", "image", name, seconds=60).returncode == 0

    def forget_images(self, repository: str, *, but: str) -> None:
        """Delete the images of a repository that another has taken the place of."""
        listed = self.buildah("images", "--all", "--format", "{{.Name}}:{{.Tag}}").splitlines()
        old = [name for name in listed if name.startswith(f"{repository}:") and name != but]
        for name in old:
            self.buildah("rmi", "--force", name)

    def forget_containers(self) -> None:
        """Delete what builds and runs that were cut off have left."""
        self.buildah("rm", "--all")

    def _run(self, *arguments: str, seconds: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["buildah", *arguments],
            env=dict(self._environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep the folder for ourselves: another run would delete the containers of this one."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:

        def taken() -> bool:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        wait_until(f"another run is done with {folder}", taken, seconds=_WAIT_SECONDS)
        yield
