"""A stage's own configuration, in a folder of its own, as it is deployed to this machine.

The stage's real file, its state and its account are never touched: what the deploy commands change, they change in the
copy. What cannot be as on AWS is overridden there, each with its reason.
"""

import ipaddress
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local.emulator import REGION

# Where the state's secrets are encrypted elsewhere (a cloud's key, say), a copy must not ask there.
_ENCRYPTION_KEYS = ("encryptionsalt", "encryptedkey", "secretsprovider")
_OURS = "minitickets:"
_WIDEST_WITHOUT_TLS = 8  # the program's own rule


class StageCopyError(RuntimeError):
    """The stage cannot be copied; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Override:
    """A setting that the copy has differently. ``was`` and ``becomes`` are None where it is not set."""

    key: str
    was: Any
    becomes: Any
    reason: str

    def __str__(self) -> str:
        return f"{self.key}: {_shown(self.was)} becomes {_shown(self.becomes)} ({self.reason})"


@dataclass(frozen=True, kw_only=True)
class StageCopy:
    """A stage's configuration as it is deployed here. ``document`` is what its file holds in the copy."""

    root: Path
    stage: str
    document: Mapping[str, Any]
    overrides: Sequence[Override]

    def write(self, into: Path) -> None:
        """Make a project at ``into``, a new folder: the stage's file, links to the program and to its artifacts."""
        into.mkdir(parents=True)
        shutil.copyfile(self.root / "Pulumi.yaml", into / "Pulumi.yaml")
        text = yaml.safe_dump(dict(self.document), sort_keys=False, default_flow_style=False)
        (into / f"Pulumi.{self.stage}.yaml").write_text(text)
        for folder in ("infra", "dist"):
            (into / folder).symlink_to(self.root / folder)


def copy_of(root: Path, *, stage: str) -> StageCopy:
    """The copy of a stage that the project at ``root`` describes. Nothing is written.

    StageCopyError if there is no such stage, or if it has values that only its own key can read.
    """
    source = root / f"Pulumi.{stage}.yaml"
    document = _load(source)
    config = dict(document.get("config") or {})
    for key, value in config.items():
        if isinstance(value, dict) and "secure" in value:
            raise StageCopyError(f"{source.name}: {key} is encrypted, and only the stage's own key can read it")
    declared = _load(root / "Pulumi.yaml").get("config") or {}
    defaults = {f"{_OURS}{key}": entry["default"] for key, entry in declared.items() if "default" in (entry or {})}
    overrides = list(_overrides(config, defaults, known={f"{_OURS}{key}" for key in declared}))
    for override in overrides:
        config.pop(override.key, None)
        if override.becomes is not None:
            config[override.key] = override.becomes
    kept = {key: value for key, value in document.items() if key not in _ENCRYPTION_KEYS}
    return StageCopy(root=root, stage=stage, document={**kept, "config": config}, overrides=overrides)


def _overrides(config: Mapping[str, Any], defaults: Mapping[str, Any], *, known: set[str]) -> Iterator[Override]:
    def override(key: str, becomes: Any, reason: str) -> Iterator[Override]:
        name = key if ":" in key else f"{_OURS}{key}"
        was = config.get(name, defaults.get(name))
        if (name in known or ":" in key) and str(was).lower() != str(becomes).lower():
            yield Override(key=name, was=was, becomes=becomes, reason=reason)

    yield from override("aws:profile", None, "no credentials of yours are used")
    yield from override("aws:region", REGION, "the emulator's region") if config.get("aws:region") else ()
    yield from override("production", False, "what follows would be refused in production")
    yield from override("image", "this-checkout", "the API runs from this checkout, not from an image")
    yield from override("computeEnabled", True, "the rehearsal begins with all on")
    yield from override("dataEnabled", True, "the rehearsal begins with all on")
    yield from override("deletionProtection", False, "the rehearsal switches data off, and destroys the stage")
    yield from override("forceDestroy", True, "the rehearsal destroys the stage, tickets included")
    if config.get(f"{_OURS}secretAdministrators"):
        yield from override("secretAdministrators", [], "the account's root deploys here")
    yield from override("secretRecoveryDays", 0, "the rehearsal destroys the stage, secrets included")
    yield from (
        override("certificateArn", "", "there is no TLS on this machine") if _set(config, "certificateArn") else ()
    )
    yield from override("publicUrl", "", "the load balancer answers at 127.0.0.1") if _set(config, "publicUrl") else ()
    networks = list(config.get(f"{_OURS}allowedCidrs") or [])
    narrow = [network for network in networks if _prefix(network) >= _WIDEST_WITHOUT_TLS]
    if narrow != networks:
        yield from override(
            "allowedCidrs", narrow or ["127.0.0.0/8"], "without TLS the program allows no wider network"
        )


def _set(config: Mapping[str, Any], key: str) -> bool:
    return bool(config.get(f"{_OURS}{key}"))


def _prefix(network: object) -> int:
    try:
        return ipaddress.ip_network(str(network)).prefixlen
    except ValueError:
        return _WIDEST_WITHOUT_TLS  # the program says what is wrong with it


def _load(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text())
    except FileNotFoundError:
        raise StageCopyError(f"{file.name} is not there: no stage is described by it") from None
    except yaml.YAMLError as error:
        raise StageCopyError(f"{file.name} is not valid YAML: {error}") from error
    if not isinstance(document, dict):
        raise StageCopyError(f"{file.name} must hold a mapping")
    return document


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value)
