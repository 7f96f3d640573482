"""What the documents say of the program: snippets that work, links that lead somewhere, tests that exist."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minitickets_contracts.token import SigningKeys, TicketToken

pytestmark = pytest.mark.unit

RUNBOOK = (Path(__file__).resolve().parents[2] / "docs" / "runbook.md").read_text()
BOOKING = "3f0c2a4e-8f6b-4c53-9e0e-0d9c2c1f7a11"
EVENT = "8a5f1b7e-2f0d-4b8e-9a55-5f3c0f4f1c22"


def _rotation() -> str:
    snippet = re.search(r"python3 -c '\n(.*?)' \|\n", RUNBOOK, re.DOTALL)
    assert snippet
    return snippet[1]


def _rotate(secret: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _rotation()], input=secret, capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout


def _token(key_id: str) -> TicketToken:
    return TicketToken(
        ticket_id=f"{BOOKING}:A-1", event_id=EVENT, seat="A-1", key_id=key_id, issued_at=1_796_000_000, nonce="0" * 16
    )


def test_rotating_twice_signs_with_the_newest_key_and_leaves_every_old_ticket_valid() -> None:
    first = SigningKeys(current="k1", keys={"k1": "a" * 64})
    sold = _token("k1").sign(first)

    second = SigningKeys.from_json(_rotate(first.to_json()))
    third = SigningKeys.from_json(_rotate(second.to_json()))

    assert (second.current, third.current) == ("k2", "k3")
    assert third.keys.keys() == {"k1", "k2", "k3"}
    assert len(set(third.keys.values())) == 3
    assert TicketToken.verify(sold, third) == _token("k1")
    newer = _token(third.current).sign(third)
    assert TicketToken.verify(newer, third) == _token("k3")


def test_the_statement_runner_is_valid_json_with_valid_python_that_the_image_can_run() -> None:
    overrides = re.search(r"<<'JSON'\n(.*?)\nJSON\n", RUNBOOK, re.DOTALL)
    assert overrides
    (container,) = json.loads(overrides[1])["containerOverrides"]
    program, flag, code = container["command"]
    assert (container["name"], program, flag) == ("api", "python", "-c")
    compile(code, "runbook", "exec")
    names = set(re.findall(r"e\['(\w+)'\]", code))
    assert names - {"SQL"} == {"DB_HOST", "DB_PORT", "DB_NAME", "DB_USER", "DB_PASSWORD", "DB_SSLMODE"}


def test_every_link_within_the_runbook_leads_to_a_heading() -> None:
    headings = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#{2,3} (.+)$", RUNBOOK, re.MULTILINE)
    }
    links = set(re.findall(r"\]\(#([^)]+)\)", RUNBOOK))
    assert links
    assert links <= headings


def test_every_test_that_the_list_of_aws_facts_names_is_there() -> None:
    root = Path(__file__).resolve().parents[2]
    named = set(re.findall(r"`(test_\w+)`", (root / "docs" / "aws-facts.md").read_text()))
    folders = ("apps", "infra", "local", "ops", "packages", "tests")
    sources = [path.read_text() for folder in folders for path in (root / folder).rglob("test_*.py")]
    there = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    assert len(named) > 25
    assert named - there == set()
