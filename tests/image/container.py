"""A container of an image as ECS would run it: its own root, read-only, and its user; but this machine's network."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.processes import Child, start
from tests.image.container_store import ContainerStore

# Everything is mounted in a namespace that ends with the process. `exec`: signals reach the program itself.
_ENTER = """
mount --bind "$2" "$2"
mount -o remount,bind,ro "$2"
mount --rbind /dev "$2/dev"
mount --bind /proc "$2/proc"
exec "$0" -I "$@"
"""
_PROGRAM = Path(__file__).with_name("enter.py")


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
        unshare = [shutil.which("unshare") or "unshare", "--mount", "--propagation", "private"]
        enter = [*unshare, "/bin/sh", "-ec", _ENTER, sys.executable, str(_PROGRAM)]
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
