"""A stage's folder: one holder, lasting ports, files that only their owner reads."""

import fcntl
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from local.processes import ProcessError
from local.stage_folder import FolderError, StageFolder, StageInUseError, read_json, stage_folder, write_json

pytestmark = pytest.mark.unit


def test_a_second_holder_is_refused_and_hears_where_the_first_one_is(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "dev")
    with folder.held():
        folder.announce({"pid": 4711, "control": "http://127.0.0.1:20123"})

        with pytest.raises(StageInUseError, match=r"20123.*4711"), StageFolder(folder.path).held():
            pass

    with StageFolder(folder.path).held():
        pass


def test_a_folder_is_held_only_while_somebody_holds_it(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "dev")
    assert not folder.is_held()
    with folder.held():
        assert folder.is_held()
    assert not folder.is_held()


def test_what_a_crashed_platform_said_about_itself_is_gone_at_the_next_start(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path)
    folder.announce({"pid": 1, "control": "http://127.0.0.1:1"})

    with folder.held():
        assert folder.running() is None


def test_a_port_is_the_same_at_every_start(tmp_path: Path) -> None:
    emulator = StageFolder(tmp_path).port("emulator")
    mail = StageFolder(tmp_path).port("mail")

    assert StageFolder(tmp_path).port("emulator") == emulator
    assert StageFolder(tmp_path).port("mail") == mail != emulator


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    write_json(tmp_path / "file.json", {"a": 1})

    assert stat.S_IMODE((tmp_path / "file.json").stat().st_mode) == 0o600
    assert read_json(tmp_path / "file.json") == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_a_held_folder_cannot_be_emptied(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "dev")
    with folder.held(), pytest.raises(StageInUseError), StageFolder(folder.path).emptied():
        pass

    with folder.emptied():
        write_json(folder.path / "file.json", {})
        (folder.path / "rds").mkdir()
    assert not folder.path.exists()


def test_nobody_gets_a_folder_while_another_empties_it(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "dev")
    with folder.held():
        pass

    with folder.emptied(), pytest.raises(StageInUseError), StageFolder(folder.path).held():
        pass


def test_a_lock_that_was_removed_before_it_was_had_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StageFolder(tmp_path / "dev")
    lock = fcntl.flock
    removals: list[Path] = []

    def emptied_by_another_in_between(file: Any, operation: int) -> None:
        if not removals:
            removals.append(folder.path / "lock")
            removals[0].unlink()
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", emptied_by_another_in_between)

    with folder.held():
        assert removals
        assert StageFolder(folder.path).is_held()


def test_many_at_once_never_hold_one_folder_together_though_it_is_emptied_between(tmp_path: Path) -> None:
    inside, most, held = 0, 0, 0
    counter = threading.Lock()

    def enter(number: int) -> None:
        nonlocal inside, most, held
        folder = StageFolder(tmp_path / "dev")
        try:
            with folder.emptied() if number % 2 else folder.held():
                with counter:
                    inside, held = inside + 1, held + 1
                    most = max(most, inside)
                with counter:
                    inside -= 1
        except StageInUseError:
            pass

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(enter, range(400)))

    assert held > 0
    assert most == 1


@pytest.mark.parametrize("name", ["", ".", "..", "../..", "/", "/home", "dev/../..", "Dev", "dev ", "-dev", "dév"])
def test_no_stage_has_a_name_under_which_a_reset_would_reach_other_folders(name: str) -> None:
    with pytest.raises(FolderError, match="no stage's name"):
        stage_folder(name)


@pytest.mark.parametrize("lock", [None, "a lock of somebody else's"])
def test_a_folder_with_somebody_elses_files_is_neither_held_nor_emptied(tmp_path: Path, lock: str | None) -> None:
    (tmp_path / "thesis.tex").write_text("three years of work")
    if lock is not None:
        (tmp_path / "lock").write_text(lock)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    for verb in (StageFolder(tmp_path).held, StageFolder(tmp_path).emptied):
        with pytest.raises(FolderError, match="Nothing was changed"), verb():
            pass

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_a_folder_with_nothing_but_what_comes_before_the_lock_is_taken(tmp_path: Path) -> None:
    folder = StageFolder(tmp_path / "dev")
    (folder.path / "logs").mkdir(parents=True)
    (folder.path / "logs" / "driver.log").write_text("first")
    folder.port("control")

    with folder.held():
        assert (folder.path / "logs" / "driver.log").exists()


def test_where_a_file_or_nothing_writable_is_the_folder_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing-can-be-made-here")):
        for verb in (StageFolder(path).held, StageFolder(path).emptied):
            with pytest.raises(FolderError, match=path.name), verb():
                pass


def test_a_file_that_a_crash_of_the_machine_cut_off_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "resources.json").write_text('[{"type": "aws:')

    with pytest.raises(ProcessError, match=r"resources\.json is damaged .*make local-reset"):
        read_json(tmp_path / "resources.json")
