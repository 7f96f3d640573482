"""The commands of docs/runbook.md as an operator would paste them, done by the SDK: their words are what is tested."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.model import OperationModel, Shape

from tests.faults.mutations import REPOSITORY

_SHARED = frozenset({"query", "output"})  # options of the command line itself


class RunbookError(ValueError):
    """The runbook says what nobody can do; the message says where."""


@dataclass(frozen=True, kw_only=True)
class RunbookCommand:
    """One call: ``aws <service> <operation>`` with the input that its options make, and its ``--query``."""

    service: str
    operation: str
    input: Mapping[str, Any]
    query: str | None

    def run(self, client: Callable[[str], Any]) -> list[Any]:
        """What an operator would see of a command that lists: all pages, through ``--query``."""
        pages = client(self.service).get_paginator(self.operation).paginate(**self.input)
        return list(pages if self.query is None else pages.search(self.query))


def runbook_command(beginning: str, *, names: Mapping[str, str]) -> RunbookCommand:
    """The one command of the runbook's code blocks that begins so, with ``names`` (``$P``, ``<region>``) filled in.

    RunbookError if it is not there, leaves a name open, or has an option that AWS's own model does not know.
    """
    text = (REPOSITORY / "docs/runbook.md").read_text()
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    found = [line for line in lines if line.startswith(beginning)]
    if len(found) != 1:
        raise RunbookError(f"docs/runbook.md has {len(found)} commands that begin with {beginning!r}, not one")
    line = found[0]
    for name, value in names.items():
        line = line.replace(name, value)
    if open_names := re.findall(r"\$\w+|\$\(|<[a-z ]+>", line):
        raise RunbookError(f"{beginning}: nobody says what {', '.join(open_names)} is")
    return _parse(shlex.split(line))


def _parse(words: list[str]) -> RunbookCommand:
    _, service, command, *rest = words
    model = botocore.session.Session().get_service_model(service)
    operations = {xform_name(name, "-"): name for name in model.operation_names}
    if command not in operations:
        raise RunbookError(f"aws {service} has no command {command}")
    options = _options(rest)
    shared = {name: values[0] for name, values in options.items() if name in _SHARED}
    return RunbookCommand(
        service=service,
        operation=xform_name(operations[command]),
        input=_input(
            model.operation_model(operations[command]), {name: options[name] for name in options if name not in shared}
        ),
        query=shared.get("query"),
    )


def _options(words: list[str]) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            options[word.removeprefix("--")] = values = []
        else:
            values.append(word)
    return options


def _input(operation: OperationModel, options: Mapping[str, list[str]]) -> dict[str, Any]:
    shape = operation.input_shape
    members = {} if shape is None else {xform_name(name, "-"): (name, of) for name, of in shape.members.items()}
    if unknown := options.keys() - members.keys():
        raise RunbookError(f"{operation.name} has no option --{', --'.join(sorted(unknown))}")
    return {members[option][0]: _value(members[option][1], words) for option, words in options.items()}


def _value(shape: Shape, words: list[str]) -> Any:
    if shape.type_name == "boolean":
        return True
    if shape.type_name in ("integer", "long"):
        return int(words[0])
    if shape.type_name in ("map", "structure"):
        return json.loads(words[0])
    return words if shape.type_name == "list" else words[0]
