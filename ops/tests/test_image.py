"""The API's image: which engine builds it, what is pushed, what the stage file says afterwards."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ops.image.api_image import BuiltImage, build_image, push_image, read_built_image
from ops.image.container_engine import ContainerEngine, find_engine
from ops.refusal import Failure, Refusal
from ops.tests.stages import STAGE_FILE, Stage, StubProgram

pytestmark = pytest.mark.integration

REPOSITORY = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/minitickets-dev-api"
IMAGE_ID = f"sha256:{'1234567890abcdef' * 4}"
DIGEST = f"sha256:{'d' * 64}"
LOGIN = base64.b64encode(b"AWS:the-password").decode()


class FakeRegistry:
    """ECR with one image, which is there from the given look on."""

    def __init__(self, *, there_at_look: int) -> None:
        self._there_at = there_at_look
        self.looks: list[tuple[str, str]] = []

    def registry_login(self) -> str:
        return LOGIN

    def image_digest(self, repository: str, tag: str) -> str | None:
        self.looks.append((repository, tag))
        return DIGEST if len(self.looks) > self._there_at else None


def _engine(folder: Path, name: str, *, works: bool = True) -> StubProgram:
    stub = StubProgram(folder, name)
    ask = {"docker": "version", "podman": "info", "buildah": "version"}[name]
    stub.answers_to(ask, {} if works else {"code": 1, "err": "Cannot connect to the daemon\n"})
    stub.answers(build={"writes": {"{iidfile}": IMAGE_ID + "\n"}}, tag={}, push={}, login={}, logout={})
    return stub


def _found(*stubs: StubProgram, **environment: str) -> ContainerEngine:
    return find_engine({"PATH": os.pathsep.join(str(stub.folder) for stub in stubs), **environment})


@pytest.fixture
def source(project: Path) -> Path:
    """The project with a Dockerfile in its place."""
    dockerfile = project / "apps" / "api" / "Dockerfile"
    dockerfile.parent.mkdir(parents=True)
    dockerfile.write_text("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n")
    return project


@pytest.mark.parametrize("name", ["docker", "podman", "buildah"])
def test_each_engine_builds_for_the_platform_of_the_tasks(tmp_path: Path, source: Path, name: str) -> None:
    stub = _engine(tmp_path, name)
    built = build_image(source, engine=_found(stub), platform="linux/arm64", base_image="registry.example/python:3.13")
    assert built == read_built_image(source) == BuiltImage(engine=name, id=IMAGE_ID, platform="linux/arm64")
    arguments = stub.call("build")["arguments"]
    assert arguments[arguments.index("--platform") + 1] == "linux/arm64"
    assert arguments[arguments.index("--build-arg") + 1] == "BASE_IMAGE=registry.example/python:3.13"
    assert arguments[arguments.index("--file") + 1] == str(source / "apps/api/Dockerfile")
    assert arguments[-1] == str(source), "the whole project is the context: contracts are in it"


def test_without_a_base_image_the_dockerfile_s_own_counts(tmp_path: Path, source: Path) -> None:
    stub = _engine(tmp_path, "podman")
    build_image(source, engine=_found(stub), platform="linux/arm64", base_image=None)
    assert "--build-arg" not in stub.call("build")["arguments"]


def test_an_engine_that_does_not_answer_is_passed_over(tmp_path: Path) -> None:
    docker, buildah = _engine(tmp_path, "docker", works=False), _engine(tmp_path, "buildah")
    assert _found(docker, buildah).name == "buildah"


def test_the_engine_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    docker, podman = _engine(tmp_path, "docker"), _engine(tmp_path, "podman")
    assert _found(docker, podman).name == "docker"
    assert _found(docker, podman, CONTAINER_ENGINE="podman").name == "podman"
    assert _found(docker, CONTAINER_ENGINE=str(podman.folder / "podman")).name == "podman"


def test_no_engine_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"No container engine \(docker, podman, buildah\) on PATH: install one"):
        find_engine({"PATH": str(tmp_path)})
    with pytest.raises(Refusal, match="No podman on PATH"):
        find_engine({"PATH": str(tmp_path), "CONTAINER_ENGINE": "podman"})
    with pytest.raises(Refusal, match="docker is installed but does not answer: start it"):
        _found(_engine(tmp_path, "docker", works=False))
    with pytest.raises(Refusal, match="CONTAINER_ENGINE=lxc is not known"):
        find_engine({"PATH": str(tmp_path), "CONTAINER_ENGINE": "lxc"})


def test_a_failed_build_leaves_the_last_built_image_as_it_was(tmp_path: Path, source: Path) -> None:
    stub = _engine(tmp_path, "buildah")
    build_image(source, engine=_found(stub), platform="linux/arm64", base_image=None)
    before = read_built_image(source)
    stub.answers(build={"code": 125, "err": "exec format error\n"})
    with pytest.raises(Failure, match="buildah could not build the image"):
        build_image(source, engine=_found(stub), platform="linux/arm64", base_image=None)
    assert read_built_image(source) == before


def _built(engine: str, platform: str = "linux/arm64") -> BuiltImage:
    return BuiltImage(engine=engine, id=IMAGE_ID, platform=platform)


@pytest.mark.parametrize("name", ["docker", "podman", "buildah"])
def test_a_push_logs_in_pushes_logs_out_and_names_the_digest(tmp_path: Path, stage: Stage, name: str) -> None:
    stub, registry, said = _engine(tmp_path, name), FakeRegistry(there_at_look=1), list[str]()
    reference = push_image(
        _built(name),
        engine=_found(stub),
        registry=registry,
        repository_url=REPOSITORY,
        file=stage.file,
        say=said.append,
    )
    assert reference == f"{REPOSITORY}@{DIGEST}"
    assert stage.file.path.read_text() == STAGE_FILE + f"  minitickets:image: {reference}\n"
    assert [call["arguments"][0] for call in stub.calls[1:]] == ["login", "tag", "push", "logout"]
    assert stub.call("tag")["arguments"][1:] == [IMAGE_ID, f"{REPOSITORY}:1234567890abcdef"]
    assert stub.call("login")["stdin"] == "the-password"
    assert not any("the-password" in part for call in stub.calls for part in call["arguments"])
    assert registry.looks[-1] == ("minitickets-dev-api", "1234567890abcdef")


def test_the_same_image_is_not_pushed_twice(tmp_path: Path, stage: Stage) -> None:
    stub = _engine(tmp_path, "podman")
    push_image(
        _built("podman"),
        engine=_found(stub),
        registry=FakeRegistry(there_at_look=0),
        repository_url=REPOSITORY,
        file=stage.file,
        say=lambda _: None,
    )
    assert "push" not in stub.commands
    assert stage.file.settings().image == f"{REPOSITORY}@{DIGEST}"


@pytest.mark.parametrize(
    ("answers", "there_at_look", "match"),
    [
        ({"login": {"code": 1, "err": "denied\n"}}, 1, "could not log in to .*: denied"),
        ({"tag": {"code": 1}}, 1, "run make image again"),
        ({"push": {"code": 1}}, 1, "The stage file is as it was"),
        ({}, 9, "but the registry does not have it"),
    ],
    ids=["login", "tag", "push", "not there"],
)
def test_a_push_that_fails_leaves_the_stage_file_and_no_login(
    tmp_path: Path, stage: Stage, answers: dict[str, dict[str, object]], there_at_look: int, match: str
) -> None:
    stub = _engine(tmp_path, "docker")
    stub.answers(**answers)
    with pytest.raises(Failure, match=match):
        push_image(
            _built("docker"),
            engine=_found(stub),
            registry=FakeRegistry(there_at_look=there_at_look),
            repository_url=REPOSITORY,
            file=stage.file,
            say=lambda _: None,
        )
    assert stage.file.path.read_text() == STAGE_FILE
    assert "logout" in "".join(stub.commands) or "login" in answers


@pytest.mark.parametrize(
    ("built", "match"),
    [
        (_built("docker", "linux/amd64"), "built for linux/amd64, tasks run on linux/arm64"),
        (_built("buildah"), "set CONTAINER_ENGINE=buildah"),
    ],
    ids=["platform", "engine"],
)
def test_an_image_that_could_not_run_or_is_not_there_is_refused(
    tmp_path: Path, stage: Stage, built: BuiltImage, match: str
) -> None:
    stub = _engine(tmp_path, "docker")
    with pytest.raises(Refusal, match=match):
        push_image(
            built,
            engine=_found(stub),
            registry=FakeRegistry(there_at_look=0),
            repository_url=REPOSITORY,
            file=stage.file,
            say=lambda _: None,
        )
    assert stage.file.path.read_text() == STAGE_FILE


@pytest.mark.parametrize(
    ("command", "match"), [(["push", "--stage", "dev"], "run make image"), (["build"], "No container engine")]
)
def test_what_is_missing_is_one_line_and_exit_code_2(
    project: Path, tmp_path: Path, command: list[str], match: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "ops.image", *command, "--project", str(project)],
        cwd=Path(__file__).parents[2],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert match in ended.stderr


def test_a_broken_record_of_the_last_build_is_refused(project: Path) -> None:
    (project / "dist" / "api-image.json").write_text(json.dumps({"id": IMAGE_ID}))
    with pytest.raises(Refusal, match="run make image again"):
        read_built_image(project)
