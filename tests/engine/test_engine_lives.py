"""The database's lives under the real engine: born, ended in a snapshot, born from it again, whatever interrupts."""

import json

import pytest

from local.engine.guests import lost
from local.engine.holds import Hold, Moment
from local.engine.operations import CREATE, DELETE, UPDATE
from tests.fixtures.deployed_stage import DATABASE, ROWS, DeployedStage

pytestmark = pytest.mark.engine

LIFE = "aws:ssm/parameter:Parameter database-life"
UP = "aws:ssm/parameter:Parameter database-up"


@pytest.fixture
def without_api(deployed: DeployedStage) -> DeployedStage:
    """The stage with its database alone, whatever the test before left."""
    outputs = deployed.stage.pulumi.outputs()
    if "apiUrl" in outputs:
        deployed.deploy("compute-off")
    elif "databaseIdentifier" not in outputs:
        deployed.deploy("data-on")
    return deployed


@pytest.mark.parametrize(
    ("verb", "key", "moment"),
    [
        (UPDATE, LIFE, Moment.BEFORE),
        (UPDATE, LIFE, Moment.DURING),
        (CREATE, DATABASE, Moment.BEFORE),
        (CREATE, DATABASE, Moment.DURING),
        (UPDATE, UP, Moment.BEFORE),
    ],
)
def test_a_birth_that_was_killed_is_finished_from_the_same_snapshot(
    without_api: DeployedStage, verb: str, key: str, moment: Moment
) -> None:
    stage = without_api
    rows = stage.rows(ROWS)
    stage.deploy("data-off")
    slept = stage.life()

    assert stage.killed("data-on", Hold(verb=verb, moments={key: moment})) == {key}
    begun = stage.life()
    run = stage.deploy("up")

    assert "was cut off" in run.output
    was_written_down = (key, moment) != (LIFE, Moment.BEFORE)
    assert (begun != slept) == (stage.life() == begun) == was_written_down
    assert stage.life()["bornFrom"] == slept["final"]
    assert rows
    assert stage.rows(ROWS) == rows
    assert stage.stage.resources().count(DATABASE) == 1


@pytest.mark.parametrize("moment", Moment)
def test_an_end_that_was_killed_is_finished_and_keeps_everything(without_api: DeployedStage, moment: Moment) -> None:
    stage = without_api
    rows, ends_in = stage.rows(ROWS), stage.life()["final"]
    assert stage.killed("data-off", Hold(verb=DELETE, moments={DATABASE: moment})) == {DATABASE}

    stage.deploy("up")

    assert ends_in in stage.snapshots()
    assert DATABASE not in stage.stage.resources()
    stage.deploy("data-on")
    assert stage.life()["bornFrom"] == ends_in
    assert stage.rows(ROWS) == rows


def test_a_lost_snapshot_stops_the_birth_until_another_is_named_and_that_one_rewinds_once(
    awake: DeployedStage,
) -> None:
    held = awake.held()
    awake.deploy("sleep")
    kept = awake.life()["final"]
    awake.deploy("data-on")
    awake.rows("create table later_than_the_snapshot ()")
    awake.deploy("data-off")
    life = awake.life()
    assert life["bornFrom"] == kept
    awake.delete_snapshot(life["final"])

    said = awake.refused("data-on")
    assert f"ended in snapshot {life['final']}, which is gone" in said
    assert f"{kept} is what it came from" in said, "which would be a rewind, and is not taken unasked"
    assert awake.life() == life
    assert "no snapshot has that name" in awake.refused("data-on", restore_from="minitickets-dev-db-final-never")

    awake.deploy("data-on", restore_from=kept)
    assert awake.life()["bornFrom"] == kept
    assert awake.rows("select to_regclass('later_than_the_snapshot') as found") == [{"found": None}]
    assert awake.stage.plan().steps == (), "the wish was for one run"
    assert "is refused while database minitickets-dev-db is there" in awake.refused("up", restore_from=kept)

    awake.deploy("compute-on")
    assert lost(held, awake.held()) == []
    assert _environment(awake)["SESSIONS_VOID_BEFORE"] == awake.life()["rewoundAt"]


def _environment(stage: DeployedStage) -> dict[str, str]:
    """What the API's container is given."""
    arn = stage.stage.pulumi.outputs()["apiTaskDefinition"]
    definition = stage.ask(lambda aws: aws("ecs").describe_task_definition(taskDefinition=arn)["taskDefinition"])
    [api] = [found for found in json.loads(json.dumps(definition["containerDefinitions"])) if found["name"] == "api"]
    return {entry["name"]: entry["value"] for entry in api["environment"]}
