"""The stack's configuration as the Pulumi CLI gives it to the program: the project's defaults, the stage's file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


class StackConfigError(RuntimeError):
    """A configuration file is missing or says what cannot be used here."""


def load_stack_config(root: Path, *, stage: str, overrides: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The project's name, and its configuration by full key (``minitickets:dataEnabled``), values as strings.

    The SDK does not apply the defaults that Pulumi.yaml declares (only the CLI does), so they are applied here.
    ``overrides`` are keys of the project without its name.
    """
    project_file = _load(root / "Pulumi.yaml")
    project = str(project_file["name"])
    config: dict[str, str] = {}
    for key, declared in (project_file.get("config") or {}).items():
        # Long form {type, default | value}, or short form: the value itself.
        value = declared.get("default", declared.get("value")) if isinstance(declared, dict) else declared
        if value is not None:
            config[_full(project, key)] = _text(value)
    for key, value in (_load(root / f"Pulumi.{stage}.yaml").get("config") or {}).items():
        if isinstance(value, dict) and "secure" in value:
            raise StackConfigError(
                f"Pulumi.{stage}.yaml: {key} is encrypted, and only the Pulumi CLI can read it: the local platform "
                "needs a plain value"
            )
        config[_full(project, key)] = _text(value)
    config.update({_full(project, key): value for key, value in overrides.items()})
    return project, config


def _load(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text())
    except FileNotFoundError:
        stages = sorted(path.name.split(".")[1] for path in file.parent.glob("Pulumi.*.yaml"))
        there_are = f"copy one of the others to it (stages: {', '.join(stages)})" if stages else "no stage has one"
        raise StackConfigError(f"{file.name} is missing: {there_are}") from None
    except yaml.YAMLError as error:
        raise StackConfigError(f"{file.name} is not valid YAML: {error}") from error
    if not isinstance(document, dict):
        raise StackConfigError(f"{file.name} must hold a mapping")
    return document


def _full(project: str, key: str) -> str:
    return key if ":" in key else f"{project}:{key}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
