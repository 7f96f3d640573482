"""What the real engine does to a stage with bookings in it: up, up again, the switches off and on."""

import json
from dataclasses import dataclass

import pytest

from local.engine.guests import Held, Stored, lost
from local.engine.stage import Run
from tests.fixtures.deployed_stage import ROWS, SEATS, DeployedStage, kinds

pytestmark = pytest.mark.engine

FLIPS = ("compute-off", "data-off", "data-on", "compute-on")
# Where a new life of the database is written down, and that it is up.
MEMORIES = ("ssm.Parameter database-life", "ssm.Parameter database-up")


@dataclass(frozen=True, kw_only=True)
class Flipped:
    """All four flips, one after the other: what each did, and what was there before the first and after the last."""

    runs: dict[str, Run]
    asleep: Stored
    before: tuple[Held, Stored]
    after: tuple[Held, Stored]
    rows_before: list[dict[str, object]]
    rows_after: list[dict[str, object]]


@pytest.fixture(scope="module")
def flipped(deployed: DeployedStage) -> Flipped:
    before, rows_before = (deployed.held(), deployed.stored()), deployed.rows(ROWS)
    runs: dict[str, Run] = {}
    for flip in FLIPS:
        runs[flip] = deployed.deploy(flip)
        if flip == "data-off":
            asleep = deployed.stored()
    return Flipped(
        runs=runs,
        asleep=asleep,
        before=before,
        after=(deployed.held(), deployed.stored()),
        rows_before=rows_before,
        rows_after=deployed.rows(ROWS),
    )


def test_up_makes_every_resource_of_the_state_and_no_other(deployed: DeployedStage) -> None:
    state = deployed.stage.pulumi.state() or {}
    declared = {
        f"{found['type']} {found['urn'].rpartition('::')[2]}"
        for found in state["resources"]
        if found["type"].startswith("aws:")
    }
    assert len(declared) > 60
    assert set(deployed.stage.resources()) == declared
    assert not state.get("pending_operations")


def test_a_second_up_changes_nothing(deployed: DeployedStage) -> None:
    run = deployed.deploy("up")
    assert not run.changes
    assert "nothing to change" in run.output


def test_a_refresh_finds_no_change_where_nobody_made_one_and_the_change_where_somebody_did(
    deployed: DeployedStage,
) -> None:
    def outputs() -> dict[str, object]:
        return {
            f"{found['type']} {found['name']}": found["outputs"] for found in deployed.stage.control.get("/resources")
        }

    before = outputs()
    assert deployed.stage.pulumi.refresh() == 0
    assert outputs() == before
    assert deployed.stage.plan().steps == ()

    database = {"DBInstanceIdentifier": "minitickets-dev-db", "ApplyImmediately": True}
    deployed.ask(lambda aws: aws("rds").modify_db_instance(**database, DeletionProtection=True))
    assert deployed.stage.pulumi.refresh() == 0
    [step] = deployed.stage.plan().steps
    assert (step.operation, step.name, step.changed) == ("update", "db", ("deletionProtection",))
    run = deployed.deploy("up")
    assert run.changes.updated == ("rds.Instance db",)
    [live] = deployed.ask(lambda aws: aws("rds").describe_db_instances()["DBInstances"])
    assert not live["DeletionProtection"]


def test_default_tags_are_on_what_takes_tags(deployed: DeployedStage) -> None:
    wanted = {"Project": "minitickets", "Stage": "dev", "ManagedBy": "pulumi"}
    url = deployed.stage.pulumi.outputs()["jobsQueueUrl"]
    assert deployed.ask(lambda aws: aws("sqs").list_queue_tags(QueueUrl=url)["Tags"]) == wanted
    listed = deployed.ask(lambda aws: aws("rds").describe_db_instances()["DBInstances"])
    assert {tag["Key"]: tag["Value"] for tag in listed[0]["TagList"]} == wanted


def test_the_state_file_holds_no_secret_in_plain_text(deployed: DeployedStage) -> None:
    state = deployed.stage.state_file.read_text()
    values = deployed.secrets()
    assert len(values) == 3, "the signing keys, the cache's token, the database's password"
    for name, value in values.items():
        for text in _texts(value):
            assert text not in state, name
    assert "ciphertext" in state


def _texts(value: str) -> set[str]:
    """A secret's text, and each long text in it where it is JSON."""
    try:
        document = json.loads(value)
    except ValueError:
        return {value}
    parts = [document]
    texts = set()
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            parts += part.values()
        elif isinstance(part, str) and len(part) >= 16:
            texts.add(part)
    assert texts
    return texts


@pytest.mark.parametrize("switch", ["compute", "data"])
def test_switching_off_deletes_exactly_the_switch_s_table(
    flipped: Flipped, switch_tables: dict[str, set[str]], switch: str
) -> None:
    changes = flipped.runs[f"{switch}-off"].changes
    assert set(changes.deleted) == switch_tables[switch]
    assert kinds(changes) == {"deleted"}


def test_switching_data_on_creates_exactly_its_table_and_writes_the_new_life_down(
    flipped: Flipped, switch_tables: dict[str, set[str]]
) -> None:
    changes = flipped.runs["data-on"].changes
    assert set(changes.created) == switch_tables["data"]
    assert changes.updated == MEMORIES
    assert kinds(changes) == {"created", "updated"}


def test_switching_compute_on_creates_exactly_its_table(flipped: Flipped, switch_tables: dict[str, set[str]]) -> None:
    changes = flipped.runs["compute-on"].changes
    assert set(changes.created) == switch_tables["compute"]
    assert kinds(changes) == {"created"}


def test_bookings_tickets_and_mails_are_after_the_flips_what_they_were_before(flipped: Flipped) -> None:
    held_before, stored_before = flipped.before
    held_after, stored_after = flipped.after
    assert lost(held_before, held_after) == []
    assert lost(stored_before, stored_after) == []
    assert len(held_before.tickets) == SEATS
    assert flipped.rows_before
    assert flipped.rows_after == flipped.rows_before


def test_tickets_and_mails_are_there_while_all_is_off(flipped: Flipped) -> None:
    assert flipped.asleep == flipped.before[1]


def test_a_preview_after_the_flips_is_empty(deployed: DeployedStage, flipped: Flipped) -> None:
    assert deployed.stage.plan().steps == ()
