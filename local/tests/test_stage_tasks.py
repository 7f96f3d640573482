"""One-off tasks for the operator's commands: what a running platform answers, and what is said without one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.loopback import Reply, Request, json_reply, serve
from local.processes import free_port
from local.stage_folder import StageFolder, write_json
from local.stage_tasks import StageTasks
from ops.grant.role_grant import TaskEnd
from ops.refusal import Failure, Refusal

pytestmark = pytest.mark.integration

COMMAND = ["python", "-m", "minitickets_api.grant", "--", "ada@example.org", "organiser"]


class Platform:
    """A control API that answers as told; ``asked`` is what it was asked to run."""

    def __init__(self, folder: StageFolder) -> None:
        self.reply = json_reply({"exitCode": 3, "output": "one\ntwo\n"})
        self.asked: list[Any] = []
        port = free_port()
        self.stop = serve("platform", port=port, answer=self._answer)
        write_json(folder.running_file, {"controlPort": port, "token": "the token"})

    def _answer(self, request: Request) -> Reply:
        assert (request.method, request.path) == ("POST", "/tasks")
        assert request.header("Authorization") == "Bearer the token"
        self.asked.append(request.json())
        return self.reply


@pytest.fixture
def folder(tmp_path: Path) -> StageFolder:
    return StageFolder(tmp_path)


@pytest.fixture
def platform_there(folder: StageFolder) -> Iterator[Platform]:
    running = Platform(folder)
    yield running
    running.stop()


def test_a_tasks_end_comes_back_as_it_is(folder: StageFolder, platform_there: Platform) -> None:
    assert StageTasks(folder)(COMMAND) == TaskEnd(exit_code=3, lines=["one", "two"])
    assert platform_there.asked == [{"command": COMMAND, "environment": {}, "seconds": 60.0}]


@pytest.mark.parametrize("status", [503, 409])
def test_a_task_that_could_not_be_run_says_why(folder: StageFolder, platform_there: Platform, status: int) -> None:
    platform_there.reply = json_reply({"error": "compute is switched off"}, status=status)
    with pytest.raises(Failure, match="The task could not be run: compute is switched off"):
        StageTasks(folder)(COMMAND)


def test_where_compute_is_off_it_is_refused_with_what_to_do(folder: StageFolder, platform_there: Platform) -> None:
    platform_there.reply = json_reply({"error": "compute is switched off"}, status=404)
    with pytest.raises(Refusal, match=r"Nothing was changed: compute is switched off.*COMPUTE=on"):
        StageTasks(folder)(COMMAND)


def test_without_a_running_platform_it_is_refused_with_what_to_do(folder: StageFolder) -> None:
    with pytest.raises(Refusal, match=r"no platform runs on .*`make local` starts one"):
        StageTasks(folder)(COMMAND)


def test_a_platform_that_died_is_a_failure_and_no_traceback(folder: StageFolder) -> None:
    write_json(folder.running_file, {"controlPort": free_port(), "token": "x"})
    with pytest.raises(Failure, match="the platform is gone"):
        StageTasks(folder)(COMMAND)
