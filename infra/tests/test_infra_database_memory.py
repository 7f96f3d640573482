"""The stage remembers its database: look-ups, the parameter, and whole runs between two lives."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from src.data.database_life import DatabaseLifeError, Life
from src.data.database_memory import parse_life

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

INSTANCE = "aws:rds/instance:Instance"
PARAMETER = "aws:ssm/parameter:Parameter"
NAME = "/minitickets-dev/database-life"
UP = "/minitickets-dev/database-up"
DATABASE = "minitickets-dev-db"

FIRST = '{"bornFrom":null,"final":"F1","rewoundAt":null}'
SECOND = '{"bornFrom":"F1","final":"F2","rewoundAt":null}'
OFF = {"computeEnabled": "false", "dataEnabled": "false"}


def _remembers(recording: "Recording") -> dict[str, Any]:
    life: dict[str, Any] = json.loads(recording.one(PARAMETER, "database-life").inputs["insecureValue"])
    return life


def test_a_stage_that_never_had_a_database_remembers_nothing(both_off: "Recording") -> None:
    assert both_off.one(PARAMETER, "database-life").inputs["name"] == NAME
    assert _remembers(both_off) == {"final": None, "bornFrom": None, "rewoundAt": None}


def test_a_database_that_is_on_is_declared_as_it_is(record: "Record") -> None:
    recording = record({}, instances=[DATABASE], parameters={NAME: SECOND}, snapshots={"F1": "available"})
    database = recording.one(INSTANCE, "db").inputs
    assert recording.one(PARAMETER, "database-life").inputs["insecureValue"] == SECOND
    assert (database["snapshotIdentifier"], database["finalSnapshotIdentifier"]) == ("F1", "F2")


def test_switching_data_off_keeps_the_memory(record: "Record") -> None:
    recording = record(OFF, instances=[DATABASE], parameters={NAME: SECOND})
    assert recording.one(PARAMETER, "database-life").inputs["insecureValue"] == SECOND
    assert not recording.of(INSTANCE)


def test_switching_data_on_again_restores_exactly_the_remembered_snapshot(record: "Record") -> None:
    snapshots = {"F1": "available", "F2": "available", "a-newer-one": "available"}
    recording = record({}, parameters={NAME: SECOND}, snapshots=snapshots)
    database = recording.one(INSTANCE, "db").inputs
    assert database["snapshotIdentifier"] == "F2"
    assert database["finalSnapshotIdentifier"] not in snapshots
    assert _remembers(recording) == {
        "final": database["finalSnapshotIdentifier"],
        "bornFrom": "F2",
        "rewoundAt": None,
    }


def test_an_interrupted_birth_goes_on_with_the_same_inputs(record: "Record") -> None:
    born = record({}, parameters={NAME: FIRST}, snapshots={"F1": "available"})
    memory = {NAME: born.one(PARAMETER, "database-life").inputs["insecureValue"]}
    again = record({}, parameters=memory, snapshots={"F1": "available"})
    assert again.resources == born.resources


def test_restore_from_is_asked_of_one_run_and_remembered(record: "Record", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTORE_FROM", "S0")
    recording = record({}, parameters={NAME: FIRST}, snapshots={"F1": "available", "S0": "available"})
    assert recording.one(INSTANCE, "db").inputs["snapshotIdentifier"] == "S0"
    assert _remembers(recording)["bornFrom"] == "S0"
    void_before = _remembers(recording)["rewoundAt"]
    containers = json.loads(
        recording.one("aws:ecs/taskDefinition:TaskDefinition", "api").inputs["containerDefinitions"]
    )
    assert {"name": "SESSIONS_VOID_BEFORE", "value": void_before} in containers[-1]["environment"]


@pytest.mark.parametrize("snapshots", [{}, {"F1": "available"}], ids=["all are gone", "the one before is there"])
def test_a_lost_snapshot_stops_the_run_before_anything_is_written(
    record: "Record", program_failed: type[Any], snapshots: dict[str, str]
) -> None:
    with pytest.raises(program_failed, match="F2, which is gone") as failure:
        record({}, parameters={NAME: SECOND, UP: "F2"}, snapshots=snapshots)
    assert failure.value.resources == {}


def test_that_a_database_is_up_is_written_down_when_it_is_and_before_anything_writes_into_it(
    record: "Record",
) -> None:
    recording = record({}, parameters={NAME: FIRST, UP: "F1"}, snapshots={"F1": "available"})
    written = recording.one(PARAMETER, "database-up")
    assert written.inputs["name"] == UP
    assert written.inputs["insecureValue"] == _remembers(recording)["final"] != "F1"
    assert f"{INSTANCE} db" in written.depends_on
    assert f"{PARAMETER} database-up" in recording.one("aws:ecs/service:Service", "api").depends_on


@pytest.mark.parametrize(("remembered", "written"), [({NAME: SECOND, UP: "F2"}, "F2"), ({}, "none")])
def test_a_run_without_a_database_leaves_that_memory_as_it_is(
    record: "Record", remembered: dict[str, str], written: str
) -> None:
    parameter = record(OFF, parameters=remembered).one(PARAMETER, "database-up")
    assert parameter.inputs["insecureValue"] == written
    assert not [other for other in parameter.depends_on if other.startswith(INSTANCE)]


def test_a_memory_of_none_is_no_life_s(record: "Record") -> None:
    recording = record({}, parameters={NAME: FIRST, UP: "none"})
    assert _remembers(recording)["final"] == "F1", "its first birth was interrupted"
    assert "snapshotIdentifier" not in recording.one(INSTANCE, "db").inputs


@pytest.mark.parametrize(
    "lookup",
    [
        "aws:rds/getInstances:getInstances",
        "aws:ssm/getParametersByPath:getParametersByPath",
        "aws:rds/getSnapshot:getSnapshot",
    ],
)
def test_a_look_up_that_fails_stops_the_run_instead_of_meaning_that_nothing_is_there(
    record: "Record", program_failed: type[Any], lookup: str
) -> None:
    with pytest.raises(program_failed, match="AccessDenied"):
        record({}, parameters={NAME: FIRST}, snapshots={"F1": "available"}, refused={lookup})


def test_a_snapshot_is_asked_for_by_its_name_and_never_the_newest(record: "Record") -> None:
    recording = record({}, parameters={NAME: FIRST}, snapshots={"F1": "available"})
    questions = [args for token, args in recording.lookups if token.endswith(":getSnapshot")]
    assert questions
    assert all(question == {"dbSnapshotIdentifier": "F1"} for question in questions)


def test_a_first_run_looks_for_no_snapshot(both_on: "Recording") -> None:
    assert not [token for token, _ in both_on.lookups if token.endswith(":getSnapshot")]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"final":1,"bornFrom":null,"rewoundAt":null}'])
def test_a_memory_that_the_program_did_not_write_stops_the_run(text: str) -> None:
    with pytest.raises(DatabaseLifeError, match="which the program did not write"):
        parse_life(text, parameter=NAME)


def test_a_memory_is_read_as_it_was_written() -> None:
    life = parse_life('{"bornFrom":"S0","final":"F3","rewoundAt":"2026-11-29T15:00:00Z"}', parameter=NAME)
    assert life == Life(final="F3", born_from="S0", rewound_at="2026-11-29T15:00:00Z")
