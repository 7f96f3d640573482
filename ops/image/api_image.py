"""The API's image: built here, pushed to a stage's repository, named by its digest in the stage's file."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from ops.image.container_engine import ContainerEngine
from ops.refusal import Failure, Refusal
from ops.stage_file import IMAGE, StageFile

# What the task definition runs on (infra/src/compute).
TASK_PLATFORM = "linux/arm64"

# An image of another platform is for looking at here; its tasks would end at once with "exec format error".
LOCAL_TAG = "minitickets-api:built"

_DOCKERFILE = "apps/api/Dockerfile"
_RECORD = "dist/api-image.json"


@dataclass(frozen=True, kw_only=True)
class BuiltImage:
    """What ``make image`` built last: the engine that holds it, its id (``sha256:…``) and its platform."""

    engine: str
    id: str
    platform: str


class ImageRegistry(Protocol):
    """What is asked of ECR; :class:`ops.aws_account.AwsAccount` answers it."""

    def registry_login(self) -> str: ...
    def image_digest(self, repository: str, tag: str) -> str | None: ...


def build_image(project: Path, *, engine: ContainerEngine, platform: str, base_image: str | None) -> BuiltImage:
    """Build ``apps/api/Dockerfile`` and write down what came of it. Without ``base_image`` the file's own counts."""
    file = project / _DOCKERFILE
    if not file.is_file():
        raise Refusal(f"No {_DOCKERFILE} in {project}: run this from the project")
    with tempfile.TemporaryDirectory(prefix="minitickets-") as folder:
        id_file = Path(folder) / "id"
        engine.build(
            context=project,
            file=file,
            tag=LOCAL_TAG,
            platform=platform,
            arguments={} if base_image is None else {"BASE_IMAGE": base_image},
            id_file=id_file,
        )
        image_id = id_file.read_text().strip() if id_file.exists() else ""
    if not image_id:
        raise Failure(f"{engine.name} said that it built the image, but not which: is it older than its --iidfile?")
    built = BuiltImage(engine=engine.name, id=image_id, platform=platform)
    record = project / _RECORD
    record.parent.mkdir(exist_ok=True)
    record.write_text(json.dumps(asdict(built)) + "\n")
    return built


def read_built_image(project: Path) -> BuiltImage:
    """What was built last. Refusal where nothing was."""
    record = project / _RECORD
    try:
        return BuiltImage(**json.loads(record.read_text()))
    except FileNotFoundError as error:
        raise Refusal("No image has been built: run make image") from error
    except (ValueError, TypeError) as error:
        raise Refusal(f"{_RECORD} is not readable: run make image again") from error


def push_image(
    built: BuiltImage,
    *,
    engine: ContainerEngine,
    registry: ImageRegistry,
    repository_url: str,
    file: StageFile,
    say: Callable[[str], None],
) -> str:
    """Push the image and write ``<repository>@<digest>`` into the stage's file; returns that.

    The tag comes from the image's id: the same image pushed twice is one image, and the repository, which takes each
    tag only once, never refuses another.
    """
    if built.platform != TASK_PLATFORM:
        raise Refusal(f"The image was built for {built.platform}, tasks run on {TASK_PLATFORM}: run make image again")
    if built.engine != engine.name:
        raise Refusal(
            f"{built.engine} built the image, {engine.name} cannot push it: set CONTAINER_ENGINE={built.engine}"
        )
    repository = repository_url.partition("/")[2]
    tag = built.id.removeprefix("sha256:")[:16]
    digest = registry.image_digest(repository, tag)
    if digest is None:
        say(f"Pushing {repository}:{tag}")
        engine.push(image_id=built.id, reference=f"{repository_url}:{tag}", login=registry.registry_login())
        digest = registry.image_digest(repository, tag)
    else:
        say(f"{repository}:{tag} is there already")
    if digest is None:
        raise Failure(f"{engine.name} pushed {repository}:{tag}, but the registry does not have it: try again")
    reference = f"{repository_url}@{digest}"
    file.write(file.changed({IMAGE: reference}))
    return reference
