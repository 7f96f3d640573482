"""The grant command: who becomes an organiser, who does not, and what its exit code says."""

import os
import subprocess
import sys
from uuid import uuid4

import pytest

from minitickets_api.grant import NO_SUCH_ACCOUNT, main
from tests.fixtures.running_api import Person, RunningApi
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration


def run_grant(database: Database, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    variables = {
        "PATH": os.environ["PATH"],
        "DB_HOST": database.host,
        "DB_PORT": str(database.port),
        "DB_NAME": database.name,
        "DB_USER": database.user,
        "DB_PASSWORD": database.password,
        "DB_SSLMODE": "disable",
        **changes,
    }
    return subprocess.run(
        [sys.executable, "-m", "minitickets_api.grant", *arguments],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def organisers(api: RunningApi) -> list[str]:
    return [row["email"] for row in api.sql("select email from users where is_organiser order by email")]


def test_a_session_that_is_open_becomes_an_organisers_and_stops_being_one(api: RunningApi) -> None:
    ada, grace = api.customer("ada@example.org"), api.customer("grace@example.org")

    def is_organiser(person: Person) -> bool:
        return bool(person.query("auth.me").json()["result"]["data"]["user"]["isOrganiser"])

    assert not is_organiser(ada)
    granted = run_grant(api.database, "ada@example.org", "organiser")
    assert (granted.returncode, granted.stderr) == (0, "")
    assert granted.stdout == f"grant: account {ada.user_id} is an organiser now\n"
    assert is_organiser(ada)
    assert not is_organiser(grace), "nobody else's account is touched"

    revoked = run_grant(api.database, "--revoke", "--", "ada@example.org", "organiser")
    assert (revoked.returncode, revoked.stdout) == (0, f"grant: account {ada.user_id} is not an organiser now\n")
    assert not is_organiser(ada)


def test_a_second_run_changes_nothing_and_says_so(api: RunningApi) -> None:
    ada = api.customer("ada@example.org")
    run_grant(api.database, "ada@example.org", "organiser")
    before = api.sql("select xmin, * from users")
    again = run_grant(api.database, "ada@example.org", "organiser")
    assert (again.returncode, again.stdout) == (0, f"grant: account {ada.user_id} is an organiser, as before\n")
    assert api.sql("select xmin, * from users") == before, "the row is not even written"


def test_an_address_counts_however_it_is_spelt(api: RunningApi) -> None:
    api.customer("Ada@Example.org")
    assert run_grant(api.database, "  ADA@example.ORG ", "organiser").returncode == 0
    assert len(organisers(api)) == 1


def test_an_address_that_nobody_registered_is_told_by_its_own_exit_code(api: RunningApi) -> None:
    api.customer("ada@example.org")
    refused = run_grant(api.database, "adam@example.org", "organiser")
    assert (refused.returncode, refused.stdout) == (NO_SUCH_ACCOUNT, "")
    assert refused.stderr == "grant: nobody has registered with that address\n"
    assert organisers(api) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["ada", "organiser"], "argument email: must be a mail address such as ada@example.org"),
        (["ada@example.org", "admin"], "invalid choice: 'admin'"),
        (["ada@example.org"], "the following arguments are required: role"),
        (["ada@example.org", "organiser", "--rev"], "unrecognized arguments: --rev"),
        (["%", "organiser"], "argument email"),
    ],
    ids=["no address", "no such role", "no role", "an abbreviation", "a wildcard"],
)
def test_wrong_arguments_are_refused_before_the_database_is_asked(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DB_HOST", raising=False)  # going on would end with exit code 1
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err


def test_an_address_that_begins_like_an_option_is_still_an_address(api: RunningApi) -> None:
    email = f"-{uuid4().hex}@example.org"
    api.customer(email)
    assert run_grant(api.database, "--", email, "organiser").returncode == 0
    assert organisers(api) == [email]


def test_what_is_written_names_no_address(api: RunningApi) -> None:
    api.customer("ada@example.org")
    for email in ("ada@example.org", "adam@example.org", "grace@"):
        ended = run_grant(api.database, email, "organiser")
        assert email not in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"DB_PASSWORD": "wrong"}, "grant: The database cannot be used just now"),
        ({"DB_PORT": "9"}, "grant: The database cannot be used just now"),
        ({"DB_HOST": ""}, "environment: DB_HOST is missing"),
    ],
    ids=["password", "port", "environment"],
)
def test_a_database_that_cannot_be_used_is_one_line(
    migrated_database: Database, changes: dict[str, str], reason: str
) -> None:
    failed = run_grant(migrated_database, "ada@example.org", "organiser", **changes)
    assert failed.returncode == 1
    assert reason in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_database_without_a_schema_is_told_with_what_to_do(empty_database: Database) -> None:
    failed = run_grant(empty_database, "ada@example.org", "organiser")
    assert failed.returncode == 1
    assert failed.stderr == ("grant: the database has no schema yet; run `python -m minitickets_api.migrate` first\n")
