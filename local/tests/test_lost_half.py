"""The emulator's half and the rest of a stage are known to fit together, or not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.emulator import Clients
from local.generation import LostHalfError, check_generation, forget_generation
from local.processes import free_port
from local.stage_folder import read_json, write_json
from tests.fixtures.emulator import RunningEmulator

pytestmark = pytest.mark.integration


@pytest.fixture
def root(emulator: RunningEmulator) -> Iterator[Clients]:
    yield emulator.aws
    emulator.aws("ssm").delete_parameter(Name="/local-platform/generation")


def test_starts_that_follow_a_clean_end_pass(root: Clients, tmp_path: Path) -> None:
    for _ in range(3):
        check_generation(root, tmp_path / "generation.json")


def test_an_emulator_that_came_back_older_is_noticed(root: Clients, tmp_path: Path) -> None:
    file = tmp_path / "generation.json"
    check_generation(root, file)
    first = root("ssm").get_parameter(Name="/local-platform/generation")["Parameter"]["Value"]
    check_generation(root, file)

    # Killed during the second start, it comes back as the first one left it.
    root("ssm").put_parameter(Name="/local-platform/generation", Value=first, Type="String", Overwrite=True)

    with pytest.raises(LostHalfError, match="killed"):
        check_generation(root, file)


def test_an_emulator_that_came_back_empty_is_noticed(root: Clients, tmp_path: Path) -> None:
    write_json(tmp_path / "generation.json", ["mark of the last start"])

    with pytest.raises(LostHalfError):
        check_generation(root, tmp_path / "generation.json")
    check_generation(root, tmp_path / "other.json")  # leaves the parameter that the fixture deletes


def test_a_crash_between_the_two_marks_does_not_look_like_a_loss(root: Clients, tmp_path: Path) -> None:
    file = tmp_path / "generation.json"
    check_generation(root, file)
    (mark,) = read_json(file)
    write_json(file, ["mark of a start that crashed before it told the emulator", mark])

    check_generation(root, file)


def test_a_refused_start_changes_no_mark(root: Clients, tmp_path: Path) -> None:
    file = tmp_path / "generation.json"
    check_generation(root, file)
    write_json(file, ["something else"])

    for _ in range(2):
        with pytest.raises(LostHalfError):
            check_generation(root, file)


def test_an_emulator_that_could_not_write_its_half_is_a_loss_at_the_next_start(root: Clients, tmp_path: Path) -> None:
    file = tmp_path / "generation.json"
    check_generation(root, file)
    size = file.stat().st_size

    forget_generation(file)

    assert file.stat().st_size < size  # a full disk has no room for more
    with pytest.raises(LostHalfError, match="could not write"):
        check_generation(root, file)


def test_there_is_nothing_to_forget_of_a_stage_that_never_came_up(tmp_path: Path) -> None:
    forget_generation(tmp_path / "generation.json")

    assert list(tmp_path.iterdir()) == []


def test_an_emulator_that_is_not_there_is_no_loss(tmp_path: Path) -> None:
    clients = Clients(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(Exception, match="Could not connect"):
        check_generation(clients, tmp_path / "generation.json")
    clients.close()
