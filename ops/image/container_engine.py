"""The container engine of this machine: docker, podman or buildah, asked for the little that all three can."""

import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ops.refusal import Failure, Refusal

ENGINES = ("docker", "podman", "buildah")
CONTAINER_ENGINE = "CONTAINER_ENGINE"

# A question that answers only where the engine can work; docker's client runs without its server.
_ALIVE: Mapping[str, Sequence[str]] = {
    "docker": ("version", "--format", "{{.Server.Version}}"),
    "podman": ("info", "--format", "{{.Version.Version}}"),
    "buildah": ("version",),
}
_ALIVE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class ContainerEngine:
    """One engine: its name (what its options go by) and its program."""

    name: str
    program: str
    environment: Mapping[str, str]

    def build(
        self, *, context: Path, file: Path, tag: str, platform: str, arguments: Mapping[str, str], id_file: Path
    ) -> None:
        """Build an image, with the engine's progress on this terminal; its id goes to ``id_file``."""
        chosen = [option for key, value in arguments.items() for option in ("--build-arg", f"{key}={value}")]
        command = [self.program, "build", "--platform", platform, "--file", str(file), "--tag", tag]
        code = self._watch([*command, "--iidfile", str(id_file), *chosen, str(context)])
        if code != 0:
            raise Failure(
                f"{self.name} could not build the image, as said above. ('exec format error': this machine cannot run "
                f"{platform} yet, install qemu-user-static. A base image that cannot be had: set BASE_IMAGE=)"
            )

    def push(self, *, image_id: str, reference: str, login: str) -> None:
        """Push an image under ``<registry>/<repository>:<tag>``. ``login`` is ECR's, ``user:password`` in base64.

        The password goes through stdin, and is forgotten afterwards.
        """
        registry = reference.partition("/")[0]
        user, _, password = base64.b64decode(login).decode().partition(":")
        with self._logged_in(registry, user, password) as options:
            if self._watch([self.program, "tag", image_id, reference]) != 0:
                raise Failure(f"{self.name} no longer has the image that was built ({image_id}): run make image again")
            if self._watch([self.program, "push", *options, reference]) != 0:
                raise Failure(f"{self.name} could not push {reference}, as said above. The stage file is as it was")

    @contextmanager
    def _logged_in(self, registry: str, user: str, password: str) -> Iterator[Sequence[str]]:
        with tempfile.TemporaryDirectory(prefix="minitickets-") as folder:
            # Docker's own login file names its contexts and helpers too, so it is used, and left as it was found.
            options = [] if self.name == "docker" else [f"--authfile={folder}/auth.json"]
            command = [self.program, "login", *options, "--username", user, "--password-stdin", registry]
            login = subprocess.run(
                command, env=dict(self.environment), input=password, capture_output=True, text=True, check=False
            )
            if login.returncode != 0:
                raise Failure(f"{self.name} could not log in to {registry}: {login.stderr.strip()}")
            try:
                yield options
            finally:
                command = [self.program, "logout", *options, registry]
                subprocess.run(command, env=dict(self.environment), capture_output=True, check=False)

    def _watch(self, command: Sequence[str]) -> int:
        return subprocess.run(command, env=dict(self.environment), stdin=subprocess.DEVNULL, check=False).returncode


def find_engine(environment: Mapping[str, str]) -> ContainerEngine:
    """The engine that ``CONTAINER_ENGINE`` names, or the first that works. Refusal where there is none."""
    wish = environment.get(CONTAINER_ENGINE, "")
    name = Path(wish).name
    if wish and name not in ENGINES:
        raise Refusal(f"{CONTAINER_ENGINE}={wish} is not known: it must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    silent = []
    for candidate in [wish] if wish else ENGINES:
        program = shutil.which(candidate, path=environment.get("PATH", os.defpath))
        if program is None:
            continue
        engine = ContainerEngine(name=Path(candidate).name, program=program, environment=_quiet(environment))
        if _works(engine):
            return engine
        silent.append(candidate)
    if silent:
        raise Refusal(
            f"{' and '.join(silent)} is installed but does not answer: start it, or set {CONTAINER_ENGINE}= to another"
        )
    missing = f"No {wish}" if wish else f"No container engine ({', '.join(ENGINES)})"
    raise Refusal(f"{missing} on PATH: install one, or set {CONTAINER_ENGINE}=")


def _quiet(environment: Mapping[str, str]) -> Mapping[str, str]:
    # One image, not an index of an image and its build's story: the stage file names the digest of what runs.
    return {**environment, "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}


def _works(engine: ContainerEngine) -> bool:
    try:
        asked = subprocess.run(
            [engine.program, *_ALIVE[engine.name]],
            env=dict(engine.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ALIVE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0
