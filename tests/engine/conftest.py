"""Stages that the real Pulumi engine deploys to this machine, with a guest's booking in them."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.engine.guests import book, open_event
from local.stage_folder import REPOSITORY
from tests.fixtures.deployed_stage import SEATS, DeployedStage, label_of, new_stage


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory, cli: Path) -> Iterator[DeployedStage]:
    """One platform and one stack for all tests that leave a stage as it was."""
    with new_stage(tmp_path_factory.mktemp("engine"), cli) as stage:
        run = stage.deploy("up")
        assert run.exit_code == 0, run.output
        session = stage.session()
        guest = book(session, event_id=open_event(session), number=1, seats=SEATS)
        yield DeployedStage(stage=stage, guest=guest)


@pytest.fixture
def awake(deployed: DeployedStage) -> DeployedStage:
    """The stage with both switches on, whatever the test before left."""
    if "apiUrl" not in deployed.stage.pulumi.outputs():
        deployed.deploy("wake")
    return deployed


@pytest.fixture(scope="session")
def switch_tables() -> dict[str, set[str]]:
    """What each switch takes away, ``compute`` and ``data``: the tables that infra's own tests hold the program to."""
    tables = runpy.run_path(str(REPOSITORY / "infra" / "tests" / "test_infra_switches.py"))
    return {name.lower(): {label_of(key) for key in tables[name]} for name in ("COMPUTE", "DATA")}
