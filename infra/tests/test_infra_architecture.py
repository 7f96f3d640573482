"""docs/architecture.md tells what each switch takes away, from the program itself.

`UPDATE_DOCS=1 python -m pytest infra/tests/test_infra_architecture.py` writes its tables anew.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Record

pytestmark = pytest.mark.infra

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"

# All that a stage can have, so that no row is missing.
EVERYTHING = {
    "natGateways": "2",
    "publicUrl": "https://tickets.example.org",
    "certificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/one",
    "allowedCidrs": '["0.0.0.0/0"]',
    "alarmEmail": "oncall@example.org",
    "alarmKey": "true",
    "backupPlanDays": "35",
    "secretRotationReminderDays": "90",
    "apiMaxTasks": "2",
    "hostedZoneId": "Z01234",
}


def _table(keys: Iterable[str]) -> str:
    """Resources by their type, as Pulumi shows them."""
    by_type: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        type_, name = key.split(" ")
        package, _, rest = type_.removeprefix("aws:").partition("/")
        by_type[f"{package}.{rest.partition(':')[2]}"].append(f"`{name}`")
    rows = [f"| {type_} | {', '.join(sorted(names))} |" for type_, names in sorted(by_type.items())]
    return "\n".join(["| resource | name in the program |", "|---|---|", *rows])


@pytest.fixture(scope="module")
def tables(record: "Record") -> dict[str, str]:
    """The tables by the name of their place in the page."""
    on = record(EVERYTHING).resources.keys()
    half = record({**EVERYTHING, "computeEnabled": "false"}).resources.keys()
    off = record({**EVERYTHING, "computeEnabled": "false", "dataEnabled": "false"}).resources.keys()
    assert off < half < on
    return {"computeEnabled": _table(on - half), "dataEnabled": _table(half - off), "always": _table(off)}


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- generated: {name} -->\n)(?:(?!<!-- end -->).)*(<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize("name", ["computeEnabled", "dataEnabled", "always"])
def test_the_page_says_what_a_switch_takes_away_and_what_stays(tables: dict[str, str], name: str) -> None:
    page = PAGE.read_text()
    if os.environ.get("UPDATE_DOCS") == "1":
        page = _place(name).sub(lambda match: f"{match[1]}{tables[name]}\n{match[2]}", page)
        PAGE.write_text(page)
    found = _place(name).search(page)
    assert found, f"docs/architecture.md has no place for the table {name}"
    assert found[0] == f"<!-- generated: {name} -->\n{tables[name]}\n<!-- end -->", (
        "docs/architecture.md is behind the program: UPDATE_DOCS=1 python -m pytest " + Path(__file__).name
    )
