"""docs/api.md and the OpenAPI description tell the procedures that there are."""

import re
from pathlib import Path

import pytest

from minitickets_api.app import registry
from minitickets_api.trpc import openapi
from minitickets_api.trpc.registry import Kind

pytestmark = pytest.mark.unit

_PAGE = Path(__file__).parents[3] / "docs" / "api.md"
_ROW = re.compile(r"\| (?P<names>`[a-z]+\.[^|]*) \| (?P<kind>[^|]+) \| (?P<who>[^|]+) \|")


def told() -> dict[str, tuple[str, str]]:
    """By procedure: its kind and who may call it."""
    return {
        name: (row["kind"], row["who"])
        for row in _ROW.finditer(_PAGE.read_text(encoding="utf-8"))
        for name in re.findall(r"`([A-Za-z.]+)`", row["names"])
    }


def test_the_page_lists_every_procedure_with_its_kind_and_whom_it_is_for() -> None:
    expected = {}
    for procedure in registry():
        has_key = "idempotency_key" in procedure.input.model_fields
        kind = "query" if procedure.kind is Kind.QUERY else "mutation with key" if has_key else "mutation"
        expected[procedure.name] = kind, procedure.session
    assert {name: (kind, not who.startswith("anybody")) for name, (kind, who) in told().items()} == expected


def test_every_mutation_but_those_of_accounts_takes_an_idempotency_key() -> None:
    without = {
        procedure.name
        for procedure in registry()
        if procedure.kind is Kind.MUTATION and "idempotency_key" not in procedure.input.model_fields
    }
    assert {name.partition(".")[0] for name in without} == {"auth"}


def test_the_description_tells_every_procedure_and_each_field_in_camel_case() -> None:
    description = openapi.describe(registry(), version="1", session_cookie="session")

    assert set(description["paths"]) == {f"/trpc/{procedure.name}" for procedure in registry()}
    for name, schema in description["components"]["schemas"].items():
        assert not [field for field in schema.get("properties", {}) if "_" in field], name
    create = description["components"]["schemas"]["CreateEvent"]
    assert set(create["required"]) == {
        "title",
        "venue",
        "startsAt",
        "timeZone",
        "rows",
        "priceMinor",
        "currency",
        "idempotencyKey",
    }
    assert create["properties"]["rows"]["maxItems"] == 100
