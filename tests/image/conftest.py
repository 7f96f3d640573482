"""The API's image, built by the project's own Dockerfile with buildah, on a base that this machine makes."""

import hashlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.stage_folder import REPOSITORY
from ops.image.container_engine import find_engine
from tests.image.container import Container, container_of
from tests.image.container_store import ContainerStore, UnavailableError, held
from tests.image.debian_base import find_or_make_base

_CACHE = REPOSITORY / ".local" / "cache" / "containers"
_IMAGE = "localhost/minitickets-api-test"
_DOCKERFILE = REPOSITORY / "apps" / "api" / "Dockerfile"
# What the Dockerfile copies; Dockerfile.dockerignore lets nothing else in.
_SOURCES = ("apps/api/Dockerfile", "apps/api/requirements.lock", "apps/api/src", "apps/api/certificates")
_CONTRACTS = "packages/contracts/src"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerStore]:
    with held(_CACHE):
        try:
            opened = ContainerStore(_CACHE, run=tmp_path_factory.mktemp("containers"))
        except UnavailableError as error:
            pytest.skip(str(error))
        opened.forget_containers()
        yield opened
        opened.forget_containers()


@pytest.fixture(scope="session")
def api_image(store: ContainerStore, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image's name. For this machine's processor: the tasks' own would need emulation here."""
    scratch = tmp_path_factory.mktemp("image")
    try:
        base = find_or_make_base(store, scratch=scratch)
    except UnavailableError as error:
        pytest.skip(str(error))
    name = f"{_IMAGE}:{_fingerprint(base)}"
    if not store.has_image(name):
        engine = find_engine({**store.environment, "CONTAINER_ENGINE": "buildah"})
        engine.build(
            context=REPOSITORY,
            file=_DOCKERFILE,
            tag=name,
            platform=f"linux/{_MACHINES.get(platform.machine(), platform.machine())}",
            arguments={"BASE_IMAGE": base},
            id_file=scratch / "id",
        )
    store.forget_images(_IMAGE, but=name)
    return name


@pytest.fixture
def container(store: ContainerStore, api_image: str, tmp_path: Path) -> Iterator[Container]:
    with container_of(store, api_image, logs=tmp_path) as running:
        yield running


def _fingerprint(base: str) -> str:
    """Of all that the image is made of, so that an image that is there already need not be built again."""
    digest = hashlib.sha256(base.encode())
    for source in (*_SOURCES, _CONTRACTS):
        path = REPOSITORY / source
        files = [path] if path.is_file() else sorted(found for found in path.rglob("*") if found.is_file())
        for file in files:
            if "__pycache__" not in file.parts:
                digest.update(os.fsencode(file.relative_to(REPOSITORY)) + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
