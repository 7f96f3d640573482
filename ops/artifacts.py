"""Builds ``dist/worker.zip`` and ``dist/tickets.zip``: pure Python, so one zip serves x86, arm64 and this machine.

A zip holds the app's source, the contracts, and the distributions that the app's hashed lock names for Linux. Those
are copied from the installed environment: it works without a network, and each file is checked against its
distribution's own record. Two builds of the same inputs have the same bytes, whenever and wherever they are made
(with the same zlib; another one may compress differently, never into other content).

    python -m ops.artifacts [worker] [tickets]
"""

import base64
import csv
import hashlib
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
APPS = ("worker", "tickets")
MAX_ZIP_BYTES = 1_500_000

# The lock is universal; the zip runs on Lambda (python3.13) and must also run on this machine's Python.
_LAMBDA = {
    "os_name": "posix",
    "platform_system": "Linux",
    "python_full_version": "3.13.0",
    "python_version": "3.13",
    "sys_platform": "linux",
}

# Lambda's Python runtime brings these.
_IN_THE_RUNTIME = frozenset({"boto3", "botocore", "s3transfer"})

# Parts that no kept module imports: ops/tests proves it, and runs the handlers from the zips alone.
_LEFT_OUT: Mapping[str, tuple[str, ...]] = {
    "aws-lambda-powertools": (
        "aws_lambda_powertools/event_handler/",
        "aws_lambda_powertools/metrics/provider/datadog/",
        "aws_lambda_powertools/utilities/auth_alpha/",
        "aws_lambda_powertools/utilities/circuit_breaker/",
        "aws_lambda_powertools/utilities/data_masking/",
        "aws_lambda_powertools/utilities/feature_flags/",
        "aws_lambda_powertools/utilities/idempotency/",
        "aws_lambda_powertools/utilities/kafka/",
        "aws_lambda_powertools/utilities/parameters/",
        "aws_lambda_powertools/utilities/parser/",
        "aws_lambda_powertools/utilities/streaming/",
        "aws_lambda_powertools/utilities/validation/",
    ),
    "icalendar": (
        "icalendar/cli.py",
        "icalendar/tests/",
        "icalendar/timezone/equivalent_timezone_ids.py",
    ),
    "qrcode": (
        "qrcode/console_scripts.py",
        "qrcode/image/pil.py",
        "qrcode/image/styledpil.py",
        "qrcode/image/styles/colormasks.py",
        "qrcode/image/styles/moduledrawers/pil.py",
        "qrcode/image/svg.py",
        "qrcode/release.py",
        "qrcode/tests/",
    ),
}

_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name
_NATIVE_SUFFIXES = (".so", ".pyd", ".dll", ".dylib", ".a", ".o")
_NATIVE_MAGIC = (b"\x7fELF", b"MZ", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


class ArtifactError(RuntimeError):
    """The zip cannot be built. The message says what is wrong with which file, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A built zip. ``sha256`` is hexadecimal."""

    path: Path
    size_bytes: int
    sha256: str


def build(app: str, *, to: Path, root: Path = ROOT) -> Artifact:
    """Build the zip of ``app`` (``worker`` or ``tickets``) at ``to``. It appears whole or not at all.

    Raises ArtifactError if the environment is not what the lock says, or the zip would break its promises.
    """
    if app not in APPS:
        raise ArtifactError(f"There is no function called {app!r}: name one of {', '.join(APPS)}")
    files = dict(_sources(root / "apps" / app / "src"))
    files |= _sources(root / "packages" / "contracts" / "src")
    for requirement in _locked(root / "apps" / app / "requirements.lock"):
        for name, content in _distribution_files(requirement):
            if name in files:
                raise ArtifactError(f"{requirement.name}: {name} is in the zip already; two parts cannot share a file")
            files[name] = content
    for name, content in files.items():
        if name.endswith(_NATIVE_SUFFIXES) or content.startswith(_NATIVE_MAGIC):
            raise ArtifactError(f"{app}: {name} is native code, which would tie the zip to one kind of machine")
    packed = _pack(files)
    if len(packed) > MAX_ZIP_BYTES:
        raise ArtifactError(
            f"{app}.zip would have {len(packed)} bytes, more than {MAX_ZIP_BYTES}: leave out what is never imported"
        )
    _write(to, packed)
    return Artifact(path=to, size_bytes=len(packed), sha256=hashlib.sha256(packed).hexdigest())


def _sources(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each file below ``folder`` as (name in the zip, content)."""
    found = False
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
            found = True
            yield path.relative_to(folder).as_posix(), path.read_bytes()
    if not found:
        raise ArtifactError(f"{folder} holds no source")


def _locked(lock: Path) -> list[Requirement]:
    """What ``lock`` pins for Lambda, without what its runtime brings."""
    if not lock.is_file():
        raise ArtifactError(f"{lock} is missing: run `make lock`")
    pinned = []
    for line in lock.read_text().splitlines():
        entry = line.strip().removesuffix("\\").strip()
        if not entry or entry.startswith(("#", "--hash=")):
            continue
        try:
            requirement = Requirement(entry)
        except InvalidRequirement as error:
            raise ArtifactError(f"{lock}: cannot read {entry!r}: {error}") from None
        pins = [specifier.version for specifier in requirement.specifier if specifier.operator == "=="]
        if len(pins) != 1 or len(requirement.specifier) != 1:
            raise ArtifactError(f"{lock}: {entry!r} pins no exact version: run `make lock`")
        if requirement.marker is not None and not requirement.marker.evaluate(_LAMBDA):
            continue
        if canonicalize_name(requirement.name) not in _IN_THE_RUNTIME:
            pinned.append(requirement)
    return pinned


def _distribution_files(requirement: Requirement) -> Iterator[tuple[str, bytes]]:
    """The installed files of one distribution, each checked against its record; licences, but no other metadata."""
    locked = next(iter(requirement.specifier)).version
    try:
        distribution = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError:
        raise ArtifactError(f"{requirement.name} {locked} is not installed: run `make env`") from None
    if distribution.version != locked:
        raise ArtifactError(
            f"{requirement.name}: {distribution.version} is installed, but {locked} is locked: run `make env`"
        )
    left_out = _LEFT_OUT.get(canonicalize_name(requirement.name), ())
    # Read here, because `distribution.files` passes over what is gone, from Python 3.12 on.
    record = distribution.read_text("RECORD")
    if record is None:
        raise ArtifactError(f"{requirement.name}: its RECORD is gone: make .venv anew")
    for name, recorded, *_ in csv.reader(record.splitlines()):
        file = PurePosixPath(name)
        if not _is_needed(file) or name.startswith(left_out):
            continue
        try:
            content = Path(str(distribution.locate_file(file))).read_bytes()
        except OSError as error:
            raise ArtifactError(f"{requirement.name}: cannot read {file}: {error.strerror}; run `make env`") from None
        algorithm, _, digest = recorded.partition("=")
        if digest and _record_hash(algorithm, content) != digest:
            raise ArtifactError(f"{requirement.name}: {file} is not as it was installed: make .venv anew")
        yield file.as_posix(), content


def _is_needed(file: PurePosixPath) -> bool:
    if ".." in file.parts or "__pycache__" in file.parts:  # scripts; bytecode
        return False
    if file.parts[0].endswith((".dist-info", ".data")):
        return "license" in file.name.lower() or "notice" in file.name.lower()
    return True


def _record_hash(algorithm: str, content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest()).rstrip(b"=").decode()


def _pack(files: Mapping[str, bytes]) -> bytes:
    """A zip of ``files``: sorted, one time, one mode (Lambda's user must be able to read each)."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.create_system = 3  # Unix, wherever it is built: modes count
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name], compresslevel=9)
    return packed.getvalue()


def _write(to: Path, content: bytes) -> None:
    """Replace ``to`` in one step: whoever reads it meanwhile gets the old zip or the new one."""
    to.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=to.parent, prefix=f".{to.name}.")
    try:
        with os.fdopen(handle, "wb") as output:
            output.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(to)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def main(arguments: Sequence[str], *, root: Path = ROOT) -> int:
    """Build what ``arguments`` name (all, if none); prints name, size and SHA-256 of each. Returns the exit code."""
    try:
        for app in arguments or APPS:
            artifact = build(app, to=root / "dist" / f"{app}.zip", root=root)
            print(f"dist/{artifact.path.name}  {artifact.size_bytes} bytes  sha256 {artifact.sha256}")
    except ArtifactError as error:
        print(f"Cannot build: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
