"""What a function's zip holds, that two builds have the same bytes, and what is refused."""

import ast
import base64
import hashlib
import io
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import importlib_metadata
import pytest

from ops import artifacts
from ops.artifacts import APPS, MAX_ZIP_BYTES, ArtifactError, build

pytestmark = pytest.mark.unit

ELF = b"\x7fELF\x02\x01\x01"


@pytest.fixture(scope="module")
def zips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("zips")
    return {app: zipfile.ZipFile(io.BytesIO(build(app, to=folder / f"{app}.zip").path.read_bytes())) for app in APPS}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A small repository: one function, the contracts, and a lock that pins nothing."""
    root = tmp_path / "repository"
    write(root / "apps/tickets/src/minitickets_tickets/__init__.py", "")
    write(root / "apps/tickets/src/minitickets_tickets/handler.py", "import minitickets_contracts\n")
    write(root / "packages/contracts/src/minitickets_contracts/__init__.py", "")
    write(root / "apps/tickets/requirements.lock", "")
    return root


Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution as an installer would: its files, and their hashes in its record."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def do(name: str, version: str, files: dict[str, bytes]) -> None:
        info = f"{name}-{version}.dist-info"
        files = {
            **files,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
            f"{info}/LICENSE": b"Do what you like.",
        }
        record = ""
        for path, content in files.items():
            write(site / path, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
        write(site / info / "RECORD", f"{record}{info}/RECORD,,\n")

    return do


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def lock(repository: Path, *lines: str) -> None:
    write(
        repository / "apps/tickets/requirements.lock", "".join(f"{line} \\\n    --hash=sha256:00\n" for line in lines)
    )


def build_tickets(repository: Path) -> zipfile.ZipFile:
    artifact = build("tickets", to=repository / "dist" / "tickets.zip", root=repository)
    return zipfile.ZipFile(io.BytesIO(artifact.path.read_bytes()))


def test_the_zip_holds_the_app_the_contracts_and_what_the_lock_names(repository: Path, install: Install) -> None:
    install("speech", "1.2", {"speech/__init__.py": b"said = 1\n", "speech/words.txt": b"a\n"})
    lock(repository, "speech==1.2")

    assert build_tickets(repository).namelist() == [
        "minitickets_contracts/__init__.py",
        "minitickets_tickets/__init__.py",
        "minitickets_tickets/handler.py",
        "speech-1.2.dist-info/LICENSE",
        "speech/__init__.py",
        "speech/words.txt",
    ]


@pytest.mark.parametrize("app", APPS)
def test_two_builds_have_the_same_bytes_whenever_and_wherever(app: str, tmp_path: Path) -> None:
    built = []
    for name, moment, mask in (("one", 1_000_000_000, 0o022), ("another/deeper", 1_900_000_000, 0o077)):
        root = tmp_path / name
        previous = os.umask(mask)
        try:
            for part in (f"apps/{app}/src", "packages/contracts/src"):
                shutil.copytree(artifacts.ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(artifacts.ROOT / f"apps/{app}/requirements.lock", root / f"apps/{app}/requirements.lock")
            for path in root.rglob("*.py"):
                os.utime(path, (moment, moment))
            if name != "one":  # what lies around in a used folder
                write(root / f"apps/{app}/src/minitickets_{app}/__pycache__/handler.cpython-311.pyc", b"\x00")
                write(root / f"apps/{app}/src/.DS_Store", b"\x00")
            built.append(build(app, to=root / "dist" / f"{app}.zip", root=root))
        finally:
            os.umask(previous)

    one, another = built
    assert one.path.read_bytes() == another.path.read_bytes()
    assert one.sha256 == another.sha256 == hashlib.sha256(one.path.read_bytes()).hexdigest()
    assert one.size_bytes == one.path.stat().st_size


@pytest.mark.parametrize(
    ("app", "at_most"),
    [
        pytest.param("tickets", 500_000, id="tickets: 280 kB when this was written"),
        # Half of it is the world's time zones (tzdata's, and dateutil's own): Lambda's system need not have any.
        pytest.param("worker", 1_200_000, id="worker: 1.05 MB when this was written"),
    ],
)
def test_a_zip_is_small(app: str, at_most: int, tmp_path: Path) -> None:
    assert build(app, to=tmp_path / f"{app}.zip").size_bytes < at_most


@pytest.mark.parametrize("app", APPS)
def test_a_zip_holds_nothing_that_is_not_needed(app: str, zips: dict[str, zipfile.ZipFile]) -> None:
    names = zips[app].namelist()

    assert names == sorted(names)
    assert not [name for name in names if name.startswith(("boto3", "botocore", "s3transfer", "colorama", "PIL"))]
    assert not [name for name in names if name.endswith(".pyc") or "__pycache__" in name or "/tests/" in name]
    metadata_files = [name.rsplit("/", 1)[1] for name in names if ".dist-info/" in name]
    assert not [name for name in metadata_files if not name.startswith(("LICENSE", "NOTICE"))]
    assert any(name.startswith(f"minitickets_{app}/") for name in names)
    assert not [name for name in names if name.startswith("minitickets_api/")]


@pytest.mark.parametrize("app", APPS)
def test_every_file_is_readable_by_lambda_s_user_and_has_the_same_time(
    app: str, zips: dict[str, zipfile.ZipFile]
) -> None:
    for entry in zips[app].infolist():
        assert entry.external_attr >> 16 == 0o100644
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)


@pytest.mark.parametrize("app", APPS)
def test_every_module_of_a_zip_compiles(app: str, zips: dict[str, zipfile.ZipFile]) -> None:
    for name in zips[app].namelist():
        if name.endswith(".py"):
            compile(zips[app].read(name), name, "exec", dont_inherit=True)


def imported_modules(source: bytes, module: str, *, is_package: bool) -> Iterator[str]:
    """Every module that ``source`` may import when it runs, wherever the statement stands."""
    tree = ast.parse(source)
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for statement in branch.body
        for node in ast.walk(statement)
    }
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*parent, *([node.module] if node.module else [])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)


# Each stands behind a condition that cannot hold in our functions.
UNREACHED = {
    # Only when pydantic is loaded, which neither function ships.
    ("aws_lambda_powertools.shared.functions", "aws_lambda_powertools.event_handler"),
    ("aws_lambda_powertools.utilities.batch.types", "aws_lambda_powertools.utilities.parser"),
    # Only where Pillow is; its ImportError is caught.
    ("qrcode.image.styles.moduledrawers", "qrcode.image.styles.moduledrawers.pil"),
    # Only in QRCode.make_image, which draws with Pillow if it is there; ours draws itself.
    ("qrcode.main", "qrcode.image.pil"),
}


@pytest.mark.parametrize("app", APPS)
def test_what_is_left_out_is_never_imported(app: str, zips: dict[str, zipfile.ZipFile]) -> None:
    left_out = {
        part.removesuffix("/").removesuffix(".py").replace("/", ".")
        for parts in artifacts._LEFT_OUT.values()
        for part in parts
    }
    reached = set()
    for name in zips[app].namelist():
        if name.endswith(".py"):
            module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for imported in imported_modules(zips[app].read(name), module, is_package=name.endswith("__init__.py")):
                reached |= {(module, part) for part in left_out if imported == part or imported.startswith(f"{part}.")}

    assert reached <= UNREACHED
    assert ("aws_lambda_powertools.utilities.batch.types", "aws_lambda_powertools.utilities.parser") in reached


@pytest.mark.parametrize(
    ("distribution", "part"),
    [(distribution, part) for distribution, parts in artifacts._LEFT_OUT.items() for part in parts],
)
def test_what_is_left_out_exists(distribution: str, part: str) -> None:
    """A part that an upgrade renamed would be back in the zip, unseen."""
    files = metadata.distribution(distribution).files or []

    assert [file for file in files if file.as_posix().startswith(part)]


@pytest.mark.parametrize("line", ["speech==1.2 ; sys_platform == 'win32'", "speech==1.2 ; python_version < '3.12'"])
def test_what_lambda_does_not_need_stays_out(repository: Path, line: str) -> None:
    lock(repository, line)

    assert not [name for name in build_tickets(repository).namelist() if "speech" in name]


def test_what_lambda_s_runtime_brings_stays_out(repository: Path) -> None:
    lock(repository, "boto3==0.0.1", "botocore==0.0.1")

    assert not [name for name in build_tickets(repository).namelist() if "boto" in name]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("speech/_fast.cpython-313-x86_64-linux-gnu.so", b""),
        ("speech/_fast.pyd", b""),
        ("speech/libfast.dylib", b""),
        ("speech/data.bin", ELF),
        ("speech/tool", b"MZ\x90"),
        ("speech/mac", b"\xcf\xfa\xed\xfe"),
    ],
)
def test_native_code_is_refused(repository: Path, install: Install, path: str, content: bytes) -> None:
    install("speech", "1.2", {"speech/__init__.py": b"", path: content})
    lock(repository, "speech==1.2")

    with pytest.raises(ArtifactError, match=f"{path} is native code"):
        build_tickets(repository)


def test_native_code_of_our_own_is_refused(repository: Path) -> None:
    write(repository / "apps/tickets/src/minitickets_tickets/fast.so", ELF)

    with pytest.raises(ArtifactError, match=r"minitickets_tickets/fast\.so is native code"):
        build_tickets(repository)


def test_another_version_than_the_locked_one_is_refused(repository: Path, install: Install) -> None:
    install("speech", "1.3", {"speech/__init__.py": b""})
    lock(repository, "speech==1.2")

    with pytest.raises(ArtifactError, match=r"speech: 1\.3 is installed, but 1\.2 is locked: run `make env`"):
        build_tickets(repository)


def test_a_distribution_that_is_not_installed_is_named(repository: Path) -> None:
    lock(repository, "no-such-speech==1.2")

    with pytest.raises(ArtifactError, match=r"no-such-speech 1\.2 is not installed: run `make env`"):
        build_tickets(repository)


def test_a_file_that_was_changed_after_its_installation_is_refused(
    repository: Path, install: Install, tmp_path: Path
) -> None:
    install("speech", "1.2", {"speech/__init__.py": b"said = 1\n"})
    write(tmp_path / "site" / "speech" / "__init__.py", "said = 2\n")
    lock(repository, "speech==1.2")

    with pytest.raises(ArtifactError, match=r"speech: speech/__init__\.py is not as it was installed"):
        build_tickets(repository)


class FirstFinder:
    """On ``sys.meta_path``: finds distributions as ``finder`` does, and no module."""

    def __init__(self, finder: type[metadata.MetadataPathFinder]) -> None:
        self.find_distributions = finder.find_distributions

    def find_spec(self, *_: object) -> None:
        """None: the next one is asked."""


@pytest.mark.parametrize(
    "finder",
    [
        pytest.param(metadata.MetadataPathFinder, id="as this Python finds it"),
        # Some packages put it in the place of the one above; it is what a later Python brings.
        pytest.param(importlib_metadata.MetadataPathFinder(), id="as importlib_metadata finds it"),
    ],
)
def test_a_file_that_is_gone_is_named(
    finder: type[metadata.MetadataPathFinder],
    repository: Path,
    install: Install,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "meta_path", [FirstFinder(finder), *sys.meta_path])
    install("speech", "1.2", {"speech/__init__.py": b""})
    (tmp_path / "site" / "speech" / "__init__.py").unlink()
    lock(repository, "speech==1.2")

    with pytest.raises(ArtifactError, match=r"speech: cannot read speech/__init__\.py: No such file"):
        build_tickets(repository)


def test_a_distribution_without_a_record_is_refused(repository: Path, install: Install, tmp_path: Path) -> None:
    install("speech", "1.2", {"speech/__init__.py": b""})
    (tmp_path / "site" / "speech-1.2.dist-info" / "RECORD").unlink()
    lock(repository, "speech==1.2")

    with pytest.raises(ArtifactError, match=r"speech: its RECORD is gone: make \.venv anew"):
        build_tickets(repository)


def test_two_parts_that_share_a_file_are_refused(repository: Path, install: Install) -> None:
    install("speech", "1.2", {"minitickets_tickets/handler.py": b""})
    lock(repository, "speech==1.2")

    with pytest.raises(ArtifactError, match=r"speech: minitickets_tickets/handler\.py is in the zip already"):
        build_tickets(repository)


@pytest.mark.parametrize("line", ["speech", "speech>=1.2", "speech==1.2,!=1.3"])
def test_a_lock_that_pins_no_version_is_refused(repository: Path, line: str) -> None:
    lock(repository, line)

    with pytest.raises(ArtifactError, match="pins no exact version: run `make lock`"):
        build_tickets(repository)


def test_a_lock_that_cannot_be_read_is_refused(repository: Path) -> None:
    lock(repository, "<<<<<<< HEAD")

    with pytest.raises(ArtifactError, match=r"requirements\.lock: cannot read '<<<<<<< HEAD'"):
        build_tickets(repository)


def test_a_missing_lock_is_named(repository: Path) -> None:
    (repository / "apps/tickets/requirements.lock").unlink()

    with pytest.raises(ArtifactError, match=r"requirements\.lock is missing: run `make lock`"):
        build_tickets(repository)


def test_an_app_without_source_is_refused(repository: Path) -> None:
    shutil.rmtree(repository / "apps/tickets/src")

    with pytest.raises(ArtifactError, match="holds no source"):
        build_tickets(repository)


def test_what_is_no_function_is_not_built(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no function called 'api': name one of worker, tickets"):
        build("api", to=tmp_path / "api.zip")


def test_a_zip_that_grew_too_large_is_refused(repository: Path) -> None:
    write(repository / "apps/tickets/src/minitickets_tickets/blob", os.urandom(MAX_ZIP_BYTES))

    with pytest.raises(ArtifactError, match=r"tickets\.zip would have \d+ bytes, more than 1500000"):
        build_tickets(repository)


def test_a_failed_build_leaves_the_old_zip_and_nothing_else(repository: Path) -> None:
    build_tickets(repository)
    before = (repository / "dist" / "tickets.zip").read_bytes()
    lock(repository, "no-such-speech==1.2")

    with pytest.raises(ArtifactError):
        build_tickets(repository)

    assert (repository / "dist" / "tickets.zip").read_bytes() == before
    assert [path.name for path in (repository / "dist").iterdir()] == ["tickets.zip"]


def test_the_command_says_what_it_built(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert artifacts.main(["tickets"], root=repository) == 0

    built = (repository / "dist" / "tickets.zip").read_bytes()
    digest = hashlib.sha256(built).hexdigest()
    assert capsys.readouterr().out == f"dist/tickets.zip  {len(built)} bytes  sha256 {digest}\n"


def test_the_command_fails_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert artifacts.main(["api"]) == 1

    captured = capsys.readouterr()
    assert captured.err == "Cannot build: There is no function called 'api': name one of worker, tickets\n"
    assert captured.out == ""
