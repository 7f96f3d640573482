"""The database's lives under the real engine: born, ended in a snapshot, born from it again, whatever interrupts."""

import json
from collections.abc import Callable

import pytest

from local.engine.guests import lost
from tests.fixtures.deployed_stage import DATABASE, DeployedStage

pytestmark = pytest.mark.engine


def _has_written_its_life_down(stage: DeployedStage, ended_in: str) -> bool:
    return bool(stage.life()["final"] != ended_in)


def _makes_its_database(stage: DeployedStage, ended_in: str) -> bool:
    return stage.makes(DATABASE)


@pytest.mark.parametrize("moment", [_has_written_its_life_down, _makes_its_database])
def test_a_birth_that_was_killed_is_finished_from_the_same_snapshot(
    awake: DeployedStage, moment: Callable[[DeployedStage, str], bool]
) -> None:
    held, stored = awake.held(), awake.stored()
    awake.deploy("sleep")
    ended_in = awake.life()["final"]
    awake.set_switches(compute=False, data=True)
    awake.kill_up(when=lambda: moment(awake, ended_in))
    begun = awake.life()
    assert begun["bornFrom"] == ended_in

    run = awake.deploy("up")

    assert "was cut off" in run.output
    assert awake.life() == begun, "the life that was written down is the one that is lived"
    awake.deploy("compute-on")
    assert lost(held, awake.held()) == []
    assert lost(stored, awake.stored()) == []
    assert awake.stage.resources().count(DATABASE) == 1
    assert awake.stage.plan().steps == ()


def test_an_end_that_was_killed_is_finished_and_keeps_everything(awake: DeployedStage) -> None:
    held = awake.held()
    ends_in = awake.life()["final"]
    awake.set_switches(compute=False, data=False)
    awake.kill_up(when=lambda: "aws:ecs/service:Service api" not in awake.stage.resources())
    assert DATABASE in awake.stage.resources(), "killed before the database's end"

    awake.deploy("up")

    assert ends_in in awake.snapshots()
    assert DATABASE not in awake.stage.resources()
    awake.deploy("wake")
    assert awake.life()["bornFrom"] == ends_in
    assert lost(held, awake.held()) == []


def test_lost_snapshots_stop_the_birth_until_another_is_named_and_that_one_rewinds_once(awake: DeployedStage) -> None:
    held = awake.held()
    awake.deploy("compute-off")
    awake.deploy("data-off")
    kept = awake.life()["final"]
    awake.deploy("data-on")
    awake.rows("create table later_than_the_snapshot ()")
    for flip in ("data-off", "data-on", "data-off"):
        awake.deploy(flip)
    life = awake.life()
    for snapshot in (life["bornFrom"], life["final"]):
        awake.delete_snapshot(snapshot)

    said = awake.refused("data-on")
    assert f"ended in snapshot {life['final']}, which is gone" in said
    assert "RESTORE_FROM=<snapshot>" in said
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
