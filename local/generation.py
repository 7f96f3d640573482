"""Whether the emulator still has its half of the stage.

The emulator writes its state only when it is asked to end. Killed, it comes back as it was at its last start: bookings
in PostgreSQL would then have no tickets. So each start draws a mark and keeps it in both halves; at the next start they
must be the same.
"""

import contextlib
import secrets
from pathlib import Path

from botocore.exceptions import ClientError

from local.emulator import Clients
from local.stage_folder import read_json, write_json

_PARAMETER = "/local-platform/generation"


class LostHalfError(RuntimeError):
    """The emulator's state is older than the rest of the stage."""


def check_generation(root: Clients, file: Path) -> None:
    """LostHalfError unless the emulator has the mark of the last start; then mark this start.

    The file first holds both marks: a crash between the two writes must not look like a loss.
    """
    accepted: list[str] | None = read_json(file)
    found = _mark(root)
    if accepted is not None and found not in accepted:
        raise LostHalfError(
            "the emulator was killed, or could not write its state, and has lost what it held since its start: its "
            "queues, tickets and secrets no longer fit the database"
        )
    mark = secrets.token_hex(16)
    write_json(file, [mark] if found is None else [mark, found])
    root("ssm").put_parameter(Name=_PARAMETER, Value=mark, Type="String", Overwrite=True)
    write_json(file, [mark])


def forget_generation(file: Path) -> None:
    """Have the next start refuse: the emulator has ended without writing all of its half.

    Written over, because a full disk has no room for a new file.
    """
    with contextlib.suppress(FileNotFoundError), file.open("r+") as kept:
        kept.write("[]")
        kept.truncate()


def _mark(root: Clients) -> str | None:
    try:
        return str(root("ssm").get_parameter(Name=_PARAMETER)["Parameter"]["Value"])
    except ClientError as error:
        if error.response["Error"]["Code"] == "ParameterNotFound":
            return None
        raise
