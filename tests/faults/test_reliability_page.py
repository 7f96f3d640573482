"""docs/reliability.md names tests that there are."""

import re

import pytest

from tests.faults.mutations import REPOSITORY

pytestmark = pytest.mark.unit

_NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def test_every_test_that_the_page_names_is_there() -> None:
    named = _NAMED.findall((REPOSITORY / "docs/reliability.md").read_text())
    assert len(named) > 50
    gone = []
    for path, name in named:
        file = REPOSITORY / path
        if not file.exists() or f"def {name}(" not in file.read_text():
            gone.append(f"{path}::{name}")
    assert gone == []
