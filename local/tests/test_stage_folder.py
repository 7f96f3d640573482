"""A stage's folder: one holder, lasting ports, files that only their owner reads."""

import fcntl
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from local.stage_folder import StageFolder, StageInUseError, read_json, write_json

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
