"""The real tRPC client, from the npm registry, does all that a customer does."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.running_api import RunningApi

pytestmark = pytest.mark.integration

_SOURCE = Path(__file__).parent / "trpc_client"
_CACHE = Path(__file__).parents[2] / ".local" / "cache" / "trpc_client"
_INSTALL_SECONDS = 180
_RUN_SECONDS = 60


@pytest.fixture(scope="module")
def client_folder() -> Path:
    """The client, installed once for these versions."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on PATH: the real tRPC client needs Node 20 or newer")
    package = (_SOURCE / "package.json").read_bytes()
    folder = _CACHE / hashlib.sha256(package).hexdigest()[:12]
    stamp = folder / ".installed"
    if not stamp.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_bytes(package)
        # No lock, which would hold addresses; no peers, of which the client needs only what package.json names.
        command = ["npm", "install", "--no-package-lock", "--ignore-scripts", "--legacy-peer-deps", "--no-audit"]
        done = subprocess.run(
            [*command, "--no-fund"], cwd=folder, capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
        if done.returncode != 0:
            if os.environ.get("CI"):
                pytest.fail(f"npm could not install the client:\n{done.stderr[-2000:]}")
            pytest.skip(f"npm could not install the client (offline?): {done.stderr.strip().splitlines()[-1:]}")
        stamp.touch()
    shutil.copy(_SOURCE / "journey.mjs", folder)
    return folder


def journey(folder: Path, api: RunningApi, kind: str, event_id: str) -> dict[str, Any]:
    done = subprocess.run(
        ["node", "journey.mjs", api.base_url, kind, event_id],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_RUN_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.mark.parametrize("kind", ["plain", "batch"])
def test_the_real_client_registers_books_lists_and_gets_typed_errors(
    client_folder: Path, api_on_aws: RunningApi, kind: str
) -> None:
    event_id = api_on_aws.event(api_on_aws.organiser())

    seen = journey(client_folder, api_on_aws, kind, event_id)

    assert seen["me"]["user"] == seen["registered"]["user"]
    assert [event["eventId"] for event in seen["events"]["events"]] == [event_id]
    assert len(seen["event"]["seats"]) == 20
    assert seen["mine"] == {"bookings": [seen["booked"]], "nextCursor": None}
    assert seen["tickets"] == {"tickets": []}
    assert seen["loggedOut"] == {}

    def told(name: str) -> tuple[str, int, int, str]:
        error = seen[name]
        return error["code"], error["httpStatus"], error["shape"], error["path"]

    assert told("noSession") == ("UNAUTHORIZED", 401, -32001, "bookings.create")
    assert told("afterwards") == ("UNAUTHORIZED", 401, -32001, "bookings.mine")
    assert told("emailTaken") == ("CONFLICT", 409, -32009, "auth.register")
    assert told("seatTaken") == ("CONFLICT", 409, -32009, "bookings.create")
    assert seen["seatTaken"]["seats"] == seen["booked"]["seats"]
    assert told("badInput") == ("BAD_REQUEST", 400, -32600, "bookings.create")
    assert told("mixed") == ("BAD_REQUEST", 400, -32600, "events.byId")
    assert told("unknownEvent") == ("NOT_FOUND", 404, -32004, "events.byId")
    assert told("unknownProcedure") == ("NOT_FOUND", 404, -32004, "bookings.steal")

    batches = [request for request in seen["requests"] if "," in request["path"]]
    if kind == "batch":
        assert [request["status"] for request in batches] == [207]
        assert batches[0]["path"] == "/trpc/tickets.mine,bookings.mine,events.byId"
    else:
        assert batches == []
