"""One-off tasks of a stage that runs on this machine, for the operator's commands that need one."""

from collections.abc import Sequence

from local.control_client import ControlClient, NothingFoundError, RefusedError
from local.processes import ProcessError
from local.stage_folder import StageFolder
from ops.grant.role_grant import TaskEnd
from ops.refusal import Failure, Refusal

_LONGEST_SECONDS = 60.0
# What the platform may take beyond that to end a task that does not end by itself.
_ANSWER_SECONDS = 90.0


class StageTasks:
    """Runs commands beside the API of the platform that holds ``folder``."""

    def __init__(self, folder: StageFolder) -> None:
        self._folder = folder

    def __call__(self, command: Sequence[str]) -> TaskEnd:
        """Run ``command`` to its end. Refusal where no platform, or no API, runs; Failure where it did not end."""
        try:
            client = ControlClient.of(self._folder)
        except ProcessError as error:
            raise Refusal(str(error)) from error
        wanted = {"command": list(command), "environment": {}, "seconds": _LONGEST_SECONDS}
        try:
            done = client.post("/tasks", wanted, seconds=_ANSWER_SECONDS)
        except NothingFoundError as error:
            raise Refusal(f"Nothing was changed: {error}. Stop the stage and start it with COMPUTE=on") from error
        except (ProcessError, RefusedError) as error:
            raise Failure(f"The task could not be run: {error}") from error
        finally:
            client.close()
        return TaskEnd(exit_code=int(done["exitCode"]), lines=str(done["output"]).splitlines())
