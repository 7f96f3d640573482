"""A base image made here, of Debian's packages: it stands in for ``python:…-slim`` where no image can be pulled."""

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from local.processes import start
from tests.image.container_store import ContainerStore, UnavailableError

REPOSITORY = "localhost/minitickets-base"

_SUITE = "bookworm"  # has Python 3.11, the oldest that the Dockerfile takes
_PACKAGES = ("ca-certificates", "python3", "python3-venv")
_SECONDS = 900
# To be raised when the steps below change: a base of an earlier run is not taken then.
_STEPS = "1"
# The machine's own: behind a proxy that signs anew, pip gets nothing from an index that the base does not trust.
_FROM_THE_MACHINE = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pip.conf"))
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_or_make_base(store: ContainerStore, *, scratch: Path) -> str:
    """The name of the base image, made (some minutes) if no earlier run has. UnavailableError without the packages."""
    name = f"{REPOSITORY}:{_fingerprint()}"
    if not store.has_image(name):
        root = scratch / "base"
        _make_root(root)
        container = store.buildah("from", "scratch")
        store.buildah("add", "--quiet", container, str(root), "/")
        store.buildah("config", "--env", f"PATH={_PATH}", container)
        store.buildah("commit", "--quiet", "--rm", container, name)
        shutil.rmtree(root)
    store.forget_images(REPOSITORY, but=name)
    return name


def _make_root(root: Path) -> None:
    log = root.with_suffix(".log")
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE, str(root)]
    maker = start("debootstrap", command, env=os.environ, log=log)
    try:
        code = maker.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"debootstrap has made no base image in {_SECONDS} s: {maker.log_tail(1)}") from None
    finally:
        maker.end_group()
    if code != 0:
        raise UnavailableError(f"debootstrap could not make a base image (offline?): {maker.log_tail(1)}")
    for archive in (root / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()
    (root / "usr/bin/python").symlink_to("python3")
    for path in _FROM_THE_MACHINE:
        if path.exists():
            shutil.copyfile(path, root / path.relative_to("/"))


def _fingerprint() -> str:
    machine = [path.read_bytes() if path.exists() else b"" for path in _FROM_THE_MACHINE]
    recipe = "\n".join((_SUITE, *_PACKAGES, platform.machine(), _STEPS)).encode()
    return hashlib.sha256(b"\0".join((recipe, *machine))).hexdigest()[:16]
