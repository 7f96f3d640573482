"""A stage's file, ``Pulumi.<stage>.yaml``: read as settings, changed a line at a time so that its comments live on."""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ops.refusal import Refusal

NAMESPACE = "minitickets"
COMPUTE_ENABLED = "computeEnabled"
DATA_ENABLED = "dataEnabled"
DELETION_PROTECTION = "deletionProtection"
IMAGE = "image"
KEEP_SNAPSHOTS = "keepSnapshots"

# Names such as minitickets-<stage>-tickets-undelivered and the database's identifier are made of it: a letter first,
# no double or final hyphen, and short enough for the names that AWS limits (infra/src/naming.py says which).
_STAGE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST_STAGE = 20

# Where the program and the provider both fall back to.
DEFAULT_REGION = "us-east-1"

_PLAIN_SCALAR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@:-]*")


@dataclass(frozen=True, kw_only=True)
class StageFile:
    """The settings of one stage. ``path`` may be missing until :func:`find_stage_file` has found it."""

    stage: str
    path: Path

    def read(self) -> bytes:
        """Its bytes as they are."""
        return self.path.read_bytes()

    def settings(self, content: bytes | None = None) -> "StageSettings":
        """What it sets, with the defaults of ``Pulumi.yaml``; of ``content`` instead where that is given."""
        own = _config(self.read() if content is None else content, self.path.name)
        project = self.path.with_name("Pulumi.yaml")
        declared = _config(project.read_bytes(), project.name) if project.exists() else {}
        return StageSettings(file=self.path.name, own=own, defaults=_defaults(declared))

    def changed(self, changes: Mapping[str, bool | str | None]) -> bytes:
        """The content with these settings changed (None: taken out), every other byte as it was. Writes nothing."""
        before = self.read()
        content = before.decode()
        for key, value in changes.items():
            content = _with_setting(content, f"{NAMESPACE}:{key}", value)
        after = content.encode()
        expected = dict(_config(before, self.path.name))
        for key, value in changes.items():
            expected.pop(f"{NAMESPACE}:{key}", None)
            if value is not None:
                expected[f"{NAMESPACE}:{key}"] = value
        try:
            as_meant = _comparable(_config(after, self.path.name)) == _comparable(expected)
        except Refusal:
            as_meant = False
        if not as_meant:
            raise Refusal(
                f"{self.path.name} is laid out in a way that cannot be changed line by line: "
                f"set {_sentence(changes)} in it by hand, then run make up STAGE={self.stage}"
            )
        return after

    def write(self, content: bytes) -> None:
        """Replace the file at once: whoever reads it sees the old content or the new one."""
        _write_atomically(self.path, content)

    @contextlib.contextmanager
    def draft(self, content: bytes) -> Iterator[Path]:
        """A copy with other content beside nothing that matters, for a preview; gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="minitickets-") as folder:
            path = Path(folder) / self.path.name
            path.write_bytes(content)
            yield path


@dataclass(frozen=True, kw_only=True)
class StageSettings:
    """The settings of a stage as its file and the project's defaults give them."""

    file: str
    own: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def value(self, key: str) -> Any:
        """A setting of ours; None where neither the file nor ``Pulumi.yaml`` sets it."""
        name = f"{NAMESPACE}:{key}"
        return self.own.get(name, self.defaults.get(name))

    def flag(self, key: str, *, default: bool) -> bool:
        """A setting that is true or false. Refusal for anything else."""
        value = self.value(key)
        if value is None:
            return default
        text = str(value).lower()
        if text not in ("true", "false"):
            raise Refusal(f"{self.file}: {NAMESPACE}:{key} is {value!r}: it must be true or false")
        return text == "true"

    def count(self, key: str, *, default: int) -> int:
        """A setting that is a whole number, zero or more. Refusal for anything else."""
        value = self.value(key)
        if value is None:
            return default
        if not re.fullmatch(r"\d{1,9}", str(value)):
            raise Refusal(f"{self.file}: {NAMESPACE}:{key} is {value!r}: it must be a whole number, zero or more")
        return int(value)

    @property
    def computes(self) -> bool:
        """Whether the stage wants its containers and load balancer."""
        return self.flag(COMPUTE_ENABLED, default=True)

    @property
    def keeps_data(self) -> bool:
        """Whether the stage wants its database and cache."""
        return self.flag(DATA_ENABLED, default=True)

    @property
    def image(self) -> str | None:
        """The API's image by digest; None before the first push."""
        value = self.value(IMAGE)
        return None if value in (None, "") else str(value)

    @property
    def region(self) -> str:
        """The stage's AWS region."""
        return str(self.own.get("aws:region") or DEFAULT_REGION)

    @property
    def profile(self) -> str | None:
        """The profile of AWS credentials that the stage names; None where the environment decides."""
        value = self.own.get("aws:profile")
        return None if value is None else str(value)


def find_stage_file(project: Path, stage: str) -> StageFile:
    """The file of ``stage``. Refusal for a name that no stage can have, and where there is no such file."""
    if not _STAGE.fullmatch(stage) or len(stage) > _LONGEST_STAGE:
        raise Refusal(
            f"STAGE={stage!r} is no name for a stage: 1 to {_LONGEST_STAGE} of a-z, 0-9 and single hyphens inside, "
            "a letter first"
        )
    found = StageFile(stage=stage, path=project / f"Pulumi.{stage}.yaml")
    if not found.path.is_file():
        others = sorted(path.name[len("Pulumi.") : -len(".yaml")] for path in project.glob("Pulumi.*.yaml"))
        known = f" (there are: {', '.join(others)})" if others else ""
        raise Refusal(f"No {found.path.name} here: copy Pulumi.dev.yaml to it, or set STAGE= to another stage{known}")
    found.settings()
    return found


class _Loader(yaml.SafeLoader):
    """YAML as Pulumi reads it: a key given twice is an error, where PyYAML would take the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key} is given twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def _config(content: bytes, name: str) -> Mapping[str, Any]:
    try:
        document = yaml.load(content.decode(), Loader=_Loader) or {}  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where is not None else ""
        problem = getattr(error, "problem", None) or "not UTF-8"
        raise Refusal(f"{name}{line} is not right ({problem}): mend it, or take it back from git") from error
    config = document.get("config") if isinstance(document, dict) else None
    if config is None and isinstance(document, dict):
        return {}
    if not isinstance(config, dict):
        raise Refusal(f"{name}: config must be a mapping of settings")
    return {str(key): value for key, value in config.items()}


def _defaults(declared: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        key if ":" in key else f"{NAMESPACE}:{key}": declaration["default"]
        for key, declaration in declared.items()
        if isinstance(declaration, dict) and "default" in declaration
    }


def _comparable(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Pulumi reads ``true`` and ``"true"`` alike, so that a quoted switch stays quoted."""
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in config.items()}


def _with_setting(content: str, key: str, value: bool | str | None) -> str:
    lines = content.splitlines(keepends=True)
    begin, end = _config_block(lines)
    line = re.compile(
        rf"""(?P<head>[ ]+(?P<mark>["']?){re.escape(key)}(?P=mark)[ ]*:[ ]+)"""
        r"""(?P<value>"[^"]*"|'[^']*'|[^\s#"'][^#\r\n]*?)"""
        r"""(?P<tail>[ \t]*(?:[ \t]#[^\r\n]*)?(?:\r?\n)?)"""
    )
    found = [(number, match) for number in range(begin, end) if (match := line.fullmatch(lines[number]))]
    if not found:
        return content if value is None else _with_new_setting(lines, begin, end, key, value)
    number, match = found[0]
    if value is None:
        del lines[number]
    else:
        lines[number] = match["head"] + _scalar(value, like=match["value"]) + match["tail"]
    return "".join(lines)


def _config_block(lines: list[str]) -> tuple[int, int]:
    """The lines of the mapping ``config:``, its head left out; an empty range at the end where there is none."""
    heads = [number for number, line in enumerate(lines) if re.fullmatch(r"config:\s*(#.*)?", line.rstrip("\r\n"))]
    if len(heads) != 1:
        return len(lines), len(lines)
    begin = heads[0] + 1
    end = begin
    for number in range(begin, len(lines)):
        text = lines[number]
        if text.startswith(" ") and text.strip():
            end = number + 1
        elif text.strip() and not text.startswith("#"):
            break
    return begin, end


def _with_new_setting(lines: list[str], begin: int, end: int, key: str, value: bool | str) -> str:
    newline = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    indent = "  "
    for line in lines[begin:end]:
        if match := re.match(r"( +)[^\s#]", line):
            indent = match[1]
            break
    head = [] if begin > 0 and re.match(r"config:", lines[begin - 1]) else [f"config:{newline}"]
    lines[end:end] = [*head, f"{indent}{key}: {_scalar(value, like='')}{newline}"]
    return "".join(lines)


def _scalar(value: bool | str, *, like: str) -> str:
    text = str(value).lower() if isinstance(value, bool) else value
    if not _PLAIN_SCALAR.fullmatch(text):
        raise ValueError(f"not a value for a stage file: {text!r}")
    mark = like[0] if like[:1] in ("'", '"') else ""
    return f"{mark}{text}{mark}"


def _sentence(changes: Mapping[str, bool | str | None]) -> str:
    return " and ".join(
        f"{NAMESPACE}:{key} to {str(value).lower() if isinstance(value, bool) else value or 'nothing'}"
        for key, value in changes.items()
    )


def _write_atomically(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
