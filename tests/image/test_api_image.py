"""The real image, really started: it migrates, serves a booking, ends when told, and cannot write or do more."""

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from local.processes import Child, wait_until
from tests.fixtures.running_api import PASSWORD, Person, api_environment
from tests.fixtures.servers import Cache, Database
from tests.image.container import Container

pytestmark = pytest.mark.integration

USER = 10001  # what the task definition names too (infra/src/compute/task.py)
STOP_SECONDS = 30  # between ECS's SIGTERM and its SIGKILL
SEATS = ["A-1", "A-2"]


@dataclass(frozen=True, kw_only=True)
class Served:
    """The image's process, serving a database that its own migrations and seed have filled."""

    process: Child
    url: str


@pytest.fixture
def environment(empty_database: Database, cache: Cache) -> dict[str, str]:
    """The task's environment. Nobody answers for AWS, which neither readiness nor a booking needs."""
    nobody = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return {**api_environment(empty_database, cache), **nobody}


@pytest.fixture
def served(container: Container, environment: dict[str, str]) -> Served:
    code, output = container.run(environment, "python", "-m", "minitickets_api.migrate")
    assert code == 0, output
    process = container.start(environment)
    url = f"http://127.0.0.1:{environment['PORT']}"

    def is_ready() -> bool:
        try:
            return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    wait_until("the image is ready", is_ready, seconds=60, alive=process)
    return Served(process=process, url=url)


@pytest.fixture
def customer(served: Served) -> Iterator[Person]:
    person = Person(served.url)
    registered = person.mutate(
        "auth.register", {"email": "ada@example.org", "name": "Ada Lovelace", "password": PASSWORD}
    )
    assert registered.status_code == 200, registered.text
    yield person
    person.http.close()


def seed_document() -> str:
    starts_at = (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT20:00:00")
    return json.dumps(
        {
            "accounts": [
                {"email": "grace@example.org", "name": "Grace Hopper", "password": PASSWORD, "organiser": True}
            ],
            "events": [
                {
                    "title": "Night of Engines",
                    "venue": "Old Mill",
                    "startsAt": starts_at,
                    "timeZone": "America/Los_Angeles",
                    "rows": [{"row": "A", "seats": 5}],
                    "priceMinor": 2500,
                    "currency": "USD",
                    "organiser": "grace@example.org",
                }
            ],
        }
    )


def test_it_serves_a_booking_on_a_database_that_its_own_migrations_made(
    container: Container, environment: dict[str, str], served: Served, customer: Person
) -> None:
    code, output = container.run({**environment, "SEED": seed_document()}, "python", "-m", "minitickets_api.seed")
    assert code == 0, output
    [event] = customer.query("events.list").json()["result"]["data"]["events"]
    assert event["title"] == "Night of Engines"
    booked = customer.book(event["eventId"], *SEATS)
    assert booked.status_code == 200, booked.text
    assert booked.json()["result"]["data"]["seats"] == SEATS

    again, output = container.run(environment, "python", "-m", "minitickets_api.migrate")
    assert (again, output) == (0, "migrate: nothing to do\n"), "beside tasks that serve, as in every deploy"


def test_the_operators_command_runs_in_it_beside_the_service(
    container: Container, environment: dict[str, str], customer: Person
) -> None:
    code, output = container.run(
        environment, "python", "-m", "minitickets_api.grant", "--", "ada@example.org", "organiser"
    )
    assert code == 0, output
    assert customer.query("auth.me").json()["result"]["data"]["user"]["isOrganiser"] is True


def test_sigterm_ends_it_with_exit_code_0_within_its_grace_period(served: Served, customer: Person) -> None:
    assert customer.query("events.list").status_code == 200, "a connection is open when the signal comes"
    told = time.monotonic()
    served.process.send(signal.SIGTERM)
    assert served.process.wait(STOP_SECONDS) == 0, served.process.log_tail()
    assert time.monotonic() - told < STOP_SECONDS
    assert '"message": "ended"' in served.process.log_tail()


def test_it_is_nobody_without_capabilities_on_a_root_that_cannot_be_written(served: Served) -> None:
    lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    assert status["Uid"] == [str(USER)] * 4
    assert status["Gid"] == [str(USER)] * 4
    assert [int(status[held][0], 16) for held in ("CapPrm", "CapEff", "CapBnd")] == [0, 0, 0]
    assert os.statvfs(f"/proc/{served.process.pid}/root").f_flag & os.ST_RDONLY


def test_a_write_anywhere_in_it_is_refused(container: Container, environment: dict[str, str]) -> None:
    script = (
        "import pathlib\n"
        "for place in ('/tmp', '/opt/api/src', '/', '/var/tmp', '/run'):\n"
        "    try:\n"
        "        pathlib.Path(place, 'x').write_text('x')\n"
        "    except OSError as error:\n"
        "        print(place, error.strerror)\n"
        "    else:\n"
        "        print(place, 'WRITTEN')\n"
    )
    code, output = container.run(environment, "python", "-c", script)
    assert code == 0, output
    assert len(output.splitlines()) == 5
    assert "WRITTEN" not in output
    assert "/tmp Read-only file system" in output, "and not for want of rights alone"  # noqa: S108 - a text, no file


def test_its_user_owns_nothing_and_nobody_may_change_its_program(container: Container) -> None:
    for path in (container.root / "opt/api").rglob("*"):
        found = path.lstat()
        assert found.st_uid == 0, path
        assert path.is_symlink() or not found.st_mode & 0o022, path


def test_it_says_itself_how_it_is_run(container: Container) -> None:
    assert container.config["User"] == f"{USER}:{USER}"
    assert container.config["Cmd"] == ["python", "-m", "minitickets_api"]
    assert container.config["StopSignal"] == "SIGTERM"
    assert list(container.config["ExposedPorts"]) == ["8000/tcp"]
    assert "Entrypoint" not in container.config, "the task definition's commands would become its arguments"


def test_it_holds_the_program_compiled_and_nothing_of_the_build(container: Container) -> None:
    source = container.root / "opt/api/src"
    assert {path.name for path in source.iterdir()} == {"minitickets_api", "minitickets_contracts"}
    modules = list(source.rglob("*.py"))
    assert len(modules) > 40
    for module in modules:
        assert list(module.parent.glob(f"__pycache__/{module.stem}.cpython-*.pyc")), module
    assert not (container.root / "build").exists()
    assert not list((container.root / "opt/api/lib").glob("python3*/site-packages/pip*"))


def test_it_trusts_amazons_roots_for_databases_beside_the_systems(
    container: Container, environment: dict[str, str]
) -> None:
    script = (
        "from minitickets_api.database import tls\n"
        "roots = [str(root['subject']) for root in tls('verify-full').get_ca_certs()]\n"
        "print(sum('Amazon RDS' in root for root in roots), len(roots))\n"
    )
    code, output = container.run(environment, "python", "-c", script)
    assert code == 0, output
    of_rds, all_of_them = map(int, output.split())
    assert of_rds >= 3
    assert all_of_them > of_rds
