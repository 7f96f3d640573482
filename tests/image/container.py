"""A container of an image as ECS would run it: its own root, read-only, and its user; but this machine's network."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.processes import Child, start
from tests.image.container_store import ContainerStore

# Everything is mounted in a namespace that ends with the process. `exec`: signals reach the program itself.
_ENTER = """
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount --rbind /dev "$1/dev"
mount --bind /proc "$1/proc"
root=$1 user=$2
shift 2
exec "$0" --userspec="$user" "$root" "$@"
"""


@dataclass(kw_only=True)
class Container:
    """A container: where its root is mounted, and what its image says about how it is run."""

    root: Path
    config: Mapping[str, Any]
    logs: Path
    processes: list[Child] = field(default_factory=list)

    def start(self, environment: Mapping[str, str], command: Sequence[str] = ()) -> Child:
        """Start ``command`` (the image's own by default) in it, with the image's environment and ``environment``."""
        own = dict(entry.split("=", 1) for entry in self.config["Env"])
        log = self.logs / f"container-{len(self.processes)}.log"
        chroot, shell, unshare = (shutil.which(program) or program for program in ("chroot", "sh", "unshare"))
        enter = [unshare, "--mount", "--propagation", "private", shell, "-ec", _ENTER, chroot]
        child = start(
            "container",
            [*enter, str(self.root), self.config["User"], *(command or self.config["Cmd"])],
            env={**own, **environment},
            log=log,
        )
        self.processes.append(child)
        return child

    def run(self, environment: Mapping[str, str], *command: str, seconds: float = 90) -> tuple[int, str]:
        """Run a command to its end: its exit code and all that it wrote."""
        child = self.start(environment, command)
        code = child.wait(seconds)
        assert child.log is not None
        return code, child.log.read_text()

    def stop(self) -> None:
        """End whatever still runs in it."""
        for child in self.processes:
            child.stop()


@contextmanager
def container_of(store: ContainerStore, image: str, *, logs: Path) -> Iterator[Container]:
    """A fresh container of ``image``; it is gone afterwards, with what runs in it."""
    config = json.loads(store.buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    name = store.buildah("from", "--pull-never", image)
    container = Container(root=Path(store.buildah("mount", name)), config=config, logs=logs)
    try:
        yield container
    finally:
        container.stop()
        store.buildah("rm", name)
