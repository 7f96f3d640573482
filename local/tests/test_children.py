"""Children are remembered, watched and ended, whatever became of the platform that started them."""

import os
import queue
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from local.children import Children
from local.processes import kernel_start_time, start, wait_until
from local.stage_folder import read_json

pytestmark = pytest.mark.unit

_SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def _children(tmp_path: Path, said: list[str] | None = None) -> Children:
    return Children(tmp_path / "children.json", say=(said if said is not None else []).append, leftover_seconds=1)


def _is_gone(pid: int) -> bool:
    return kernel_start_time(pid) is None


def test_a_child_that_ends_by_itself_is_reported_with_its_exit_code(tmp_path: Path) -> None:
    codes: queue.Queue[int] = queue.Queue()
    child = start("short", [sys.executable, "-c", "raise SystemExit(7)"], env={}, log=tmp_path / "log")

    children = _children(tmp_path)
    children.watch(child, on_exit=codes.put)

    assert codes.get(timeout=5) == 7
    assert children.names() == []


def test_a_child_that_is_stopped_is_not_reported(tmp_path: Path) -> None:
    codes: queue.Queue[int] = queue.Queue()
    children = _children(tmp_path)
    child = start("long", _SLEEPER, env={}, log=tmp_path / "log")
    children.watch(child, on_exit=codes.put)

    children.stop("long", seconds=5)

    assert _is_gone(child.pid)
    assert children.names() == []
    with pytest.raises(queue.Empty):
        codes.get(timeout=0.2)


def test_a_child_that_ignores_its_stop_signal_is_killed_and_said_so(tmp_path: Path) -> None:
    said: list[str] = []
    children = _children(tmp_path, said)
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    child = start("stubborn", [sys.executable, "-c", program], env={}, log=tmp_path / "log")
    children.watch(child)
    wait_until("it ignores the signal", lambda: "up" in child.log_tail(), seconds=5, alive=child)

    children.stop("stubborn", seconds=0.3)

    assert _is_gone(child.pid)
    assert "stubborn" in said[0]


def test_what_a_killed_platform_left_is_ended_by_the_next_one(tmp_path: Path) -> None:
    # A platform that dies at once after its child was started, and whose child hears no death signal.
    dying = textwrap.dedent(f"""
        import os, sys
        from pathlib import Path
        import local.processes
        local.processes._ends_with = lambda *_: None
        from local.children import Children
        child = local.processes.start("left", {_SLEEPER!r}, env={{}}, log=Path({str(tmp_path / "log")!r}))
        Children(Path({str(tmp_path / "children.json")!r}), say=print).watch(child)
        print(child.pid, flush=True)
        os._exit(9)
    """)
    done = subprocess.run([sys.executable, "-c", dying], capture_output=True, text=True, timeout=30)
    pid = int(done.stdout)
    assert not _is_gone(pid)

    said: list[str] = []
    _children(tmp_path, said).end_leftovers()

    assert _is_gone(pid)
    assert "left" in said[0]
    assert read_json(tmp_path / "children.json") == []


def test_a_process_that_only_has_the_number_of_an_old_child_is_left_alone(tmp_path: Path) -> None:
    bystander = subprocess.Popen(_SLEEPER, start_new_session=True)
    children = _children(tmp_path)
    remembered = start("old", _SLEEPER, env={}, log=tmp_path / "log")
    children.watch(remembered)
    text = (tmp_path / "children.json").read_text()
    children.stop("old", seconds=5)
    (tmp_path / "children.json").write_text(text.replace(str(remembered.pid), str(bystander.pid)))

    _children(tmp_path).end_leftovers()

    assert bystander.poll() is None
    bystander.kill()
    bystander.wait(5)


def test_grandchildren_of_a_child_that_was_killed_are_ended_too(tmp_path: Path) -> None:
    children = _children(tmp_path)
    program = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    child = start("emulator", [sys.executable, "-c", program], env={}, log=tmp_path / "log")
    children.watch(child)
    wait_until("the grandchild runs", lambda: child.log_tail().strip().isdigit(), seconds=5, alive=child)
    grandchild = int(child.log_tail())

    os.kill(child.pid, signal.SIGKILL)

    wait_until("the grandchild has ended", lambda: _is_gone(grandchild), seconds=5)


def test_a_list_that_a_crash_of_the_machine_cut_off_keeps_nobody_from_starting_anew(tmp_path: Path) -> None:
    (tmp_path / "children.json").write_text('[{"name": "emu')
    said: list[str] = []

    _children(tmp_path, said).end_leftovers()

    assert "children.json is damaged" in said[0]
    assert read_json(tmp_path / "children.json") == []


def test_a_child_is_ended_though_the_list_can_no_longer_be_written(tmp_path: Path) -> None:
    children = Children(tmp_path / "state" / "children.json", say=lambda _: None)
    (tmp_path / "state").mkdir()
    child = start("long", _SLEEPER, env={}, log=None)
    children.watch(child)
    shutil.rmtree(tmp_path / "state")

    children.stop("long", seconds=5)

    assert _is_gone(child.pid)
    assert children.names() == []
