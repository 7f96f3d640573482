"""Walls that import-linter cannot express: who may read configuration, call AWS, mention the switches; names; locks."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parent.parent
CODE = ("apps", "infra", "local", "ops", "packages")

# The adapters: each talks to one service and holds no decision.
AWS_ADAPTERS = {
    "apps/api/src/minitickets_api/aws.py",
    "apps/api/src/minitickets_api/queries/assets.py",
    "apps/api/src/minitickets_api/queries/tickets.py",
    "apps/api/src/minitickets_api/services/topic.py",
    "apps/worker/src/minitickets_worker/clients.py",
    "apps/worker/src/minitickets_worker/mailer.py",
    "apps/worker/src/minitickets_worker/processed_jobs.py",
    "apps/worker/src/minitickets_worker/visibility.py",
    "apps/tickets/src/minitickets_tickets/aws.py",
    "apps/tickets/src/minitickets_tickets/images.py",
    "apps/tickets/src/minitickets_tickets/signing.py",
    "apps/tickets/src/minitickets_tickets/store.py",
}
UNTOLD_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}


def product_modules() -> Iterator[Path]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "tests" not in path.relative_to(ROOT).parts:
                yield path


def runtime_imports(tree: ast.Module) -> set[str]:
    """Top-level names of the packages a module imports when it runs: what stands below TYPE_CHECKING is only typing."""
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for statement in branch.body
        for node in ast.walk(statement)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_in_the_apps_only_adapters_import_boto3() -> None:
    importers = {
        relative(path)
        for path in product_modules()
        if relative(path).startswith(("apps/", "infra/", "packages/"))
        and runtime_imports(ast.parse(path.read_text())) & {"boto3", "botocore"}
    }

    assert importers <= AWS_ADAPTERS, f"not adapters: {sorted(importers - AWS_ADAPTERS)}"


def test_every_adapter_of_the_list_exists() -> None:
    assert {name for name in AWS_ADAPTERS if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("path", [p for p in product_modules() if relative(p).startswith("apps/")], ids=relative)
def test_an_app_reads_its_environment_only_in_settings(path: Path) -> None:
    if path.stem == "settings":
        return
    reads = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"os.environ", "os.getenv"}
    ]

    assert reads == []


def test_pulumi_configuration_is_read_only_in_settings() -> None:
    readers = {
        relative(path)
        for path in product_modules()
        if relative(path).startswith("infra/") and re.search(r"\bpulumi\.Config\b|\bos\.environ\b", path.read_text())
    }

    assert readers == {"infra/src/settings.py"}


def test_only_the_story_mentions_the_switches() -> None:
    mentioning = {
        relative(path)
        for path in product_modules()
        if relative(path).startswith("infra/") and re.search(r"compute_enabled|data_enabled", path.read_text())
    }

    assert mentioning == {"infra/__main__.py", "infra/src/settings.py"}


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [relative(path) for path in product_modules() if path.stem in UNTOLD_NAMES] == []


@pytest.mark.parametrize("lock", sorted(ROOT.glob("**/*.lock")), ids=relative)
def test_a_lock_pins_hashes_and_holds_no_address(lock: Path) -> None:
    if ".local" in lock.parts or ".venv" in lock.parts or "node_modules" in lock.parts:
        return
    text = lock.read_text()

    assert "://" not in text
    assert "--hash=sha256:" in text
