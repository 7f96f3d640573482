"""A database keeps its rows through snapshots, restores and restarts; a cache its port and its token."""

import asyncio
import json
import secrets
from typing import Any

import asyncpg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from local.emulator import Clients
from local.handlers.handler import HandlerError
from local.handlers.rds_files import DatabaseFiles
from local.processes import accepts_connections, free_port, wait_until
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

INSTANCE, CACHE = "rds/instance:Instance", "elasticache/replicationGroup:ReplicationGroup"


@pytest.fixture
def name() -> str:
    return f"t-{secrets.token_hex(4)}"


def _database(name: str, **more: Any) -> dict[str, Any]:
    return {
        "identifier": name,
        "engine": "postgres",
        "engineVersion": "18",
        "instanceClass": "db.t4g.micro",
        "allocatedStorage": 20.0,
        "dbName": "minitickets",
        "username": "minitickets",
        "manageMasterUserPassword": True,
        "backupRetentionPeriod": 1.0,
        "storageEncrypted": True,
        "finalSnapshotIdentifier": f"{name}-final",
        "skipFinalSnapshot": False,
        **more,
    }


def _password(stage: HandledStage, database: dict[str, Any]) -> str:
    (secret,) = database["masterUserSecrets"]
    value = stage.aws("secretsmanager").get_secret_value(SecretId=secret["secretArn"])["SecretString"]
    return str(json.loads(value)["password"])


def _query(stage: HandledStage, database: dict[str, Any], sql: str, *, password: str | None = None) -> list[tuple[Any]]:
    async def run() -> list[tuple[Any]]:
        connection = await asyncpg.connect(
            host=database["address"],
            port=int(database["port"]),
            user="minitickets",
            password=_password(stage, database) if password is None else password,
            database="minitickets",
            timeout=10,
        )
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    return asyncio.run(run())


def test_rows_survive_the_final_snapshot_and_the_restore_under_a_new_password(stage: HandledStage, name: str) -> None:
    first = stage.create(INSTANCE, "db", **_database(name))
    _query(stage, first, "create table booking (seat text)")
    _query(stage, first, "insert into booking values ('A1')")
    first_password = _password(stage, first)
    stage.delete(INSTANCE, "db")
    assert not accepts_connections(first["port"])
    snapshot = stage.provider.invoke("aws:rds/getSnapshot:getSnapshot", {"dbSnapshotIdentifier": f"{name}-final"})
    assert snapshot["status"] == "available"

    second = stage.create(
        INSTANCE,
        "db",
        **_database(name, snapshotIdentifier=f"{name}-final", finalSnapshotIdentifier=f"{name}-final-2"),
    )

    assert _query(stage, second, "select seat from booking") == [("A1",)]
    assert _password(stage, second) != first_password
    with pytest.raises(asyncpg.InvalidPasswordError):
        _query(stage, second, "select 1", password=first_password)


def test_the_master_user_makes_databases_and_is_no_superuser(stage: HandledStage, name: str) -> None:
    database = stage.create(INSTANCE, "db", **_database(name, skipFinalSnapshot=True))

    roles = _query(
        stage,
        database,
        "select (rolsuper, rolcreatedb, rolcreaterole)::text from pg_roles where rolname = current_user",
    )
    assert roles == [("(f,t,t)",)]
    with pytest.raises(asyncpg.InvalidPasswordError):
        _query(stage, database, "select 1", password="guess")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        _query(stage, database, "copy (select 1) to program 'true'")


def test_the_control_plane_knows_the_database_as_the_program_wrote_it(stage: HandledStage, name: str) -> None:
    database = stage.create(INSTANCE, "db", **_database(name, tags={"stage": "dev"}, skipFinalSnapshot=True))

    (live,) = stage.aws("rds").describe_db_instances(DBInstanceIdentifier=name)["DBInstances"]
    assert live["Endpoint"]["Port"] == database["port"]
    assert (live["StorageEncrypted"], live["BackupRetentionPeriod"]) == (True, 1)
    found = stage.provider.invoke(
        "aws:rds/getInstances:getInstances", {"filters": [{"name": "db-instance-id", "values": [name]}]}
    )
    assert found["instanceIdentifiers"] == [name]
    (secret,) = database["masterUserSecrets"]
    assert ":secret:rds!db-" in secret["secretArn"]


def test_a_protected_database_refuses_to_go_and_keeps_serving(stage: HandledStage, name: str) -> None:
    database = stage.create(INSTANCE, "db", **_database(name, deletionProtection=True))

    with pytest.raises(HandlerError, match="Cannot delete protected DB Instance, please disable deletion protection"):
        stage.delete(INSTANCE, "db")
    assert _query(stage, database, "select 1") == [(1,)]

    # What counts is the live database's: an input that is gone turns it off.
    stage.update(INSTANCE, "db", **_database(name))
    stage.delete(INSTANCE, "db")


def test_a_final_snapshot_whose_name_is_taken_stops_the_deletion_before_anything_happens(
    stage: HandledStage, name: str
) -> None:
    stage.create(INSTANCE, "db", **_database(name))
    stage.delete(INSTANCE, "db")
    database = stage.create(INSTANCE, "db", **_database(name))
    _query(stage, database, "create table kept ()")

    with pytest.raises(HandlerError, match="DBSnapshotAlreadyExists"):
        stage.delete(INSTANCE, "db")

    assert _query(stage, database, "select count(*) from kept") == [(0,)]
    stage.update(INSTANCE, "db", **_database(name, finalSnapshotIdentifier=f"{name}-other"))
    stage.delete(INSTANCE, "db")


def test_a_deletion_without_a_name_for_its_final_snapshot_is_refused(stage: HandledStage, name: str) -> None:
    inputs = _database(name)
    del inputs["finalSnapshotIdentifier"]
    stage.create(INSTANCE, "db", **inputs)

    with pytest.raises(HandlerError, match="final_snapshot_identifier is required when skip_final_snapshot is false"):
        stage.delete(INSTANCE, "db")
    stage.update(INSTANCE, "db", **inputs | {"skipFinalSnapshot": True})


def test_a_database_identifier_in_use_and_an_unknown_snapshot_are_refused(stage: HandledStage, name: str) -> None:
    stage.create(INSTANCE, "db", **_database(name, skipFinalSnapshot=True))

    with pytest.raises(HandlerError, match="DBInstanceAlreadyExists"):
        stage.create(INSTANCE, "again", **_database(name))
    with pytest.raises(HandlerError, match="DBSnapshotNotFound: DBSnapshot not found: no-such"):
        stage.create(INSTANCE, "other", **_database(f"{name}-other", snapshotIdentifier="no-such"))
    listed = stage.aws("rds").describe_db_instances()["DBInstances"]
    assert f"{name}-other" not in [entry["DBInstanceIdentifier"] for entry in listed]


def test_a_restart_brings_the_database_back_on_its_port_with_its_rows(stage: HandledStage, name: str) -> None:
    database = stage.create(INSTANCE, "db", **_database(name, skipFinalSnapshot=True))
    _query(stage, database, "create table booking as select 'A1'::text as seat")

    stage.restart()

    assert _query(stage, database, "select seat from booking") == [("A1",)]


def test_a_database_that_crashes_is_started_again(stage: HandledStage, name: str) -> None:
    database = stage.create(INSTANCE, "db", **_database(name, skipFinalSnapshot=True))
    _query(stage, database, "create table booking as select 'A1'::text as seat")
    child = stage.children.get(f"postgres:{database['port']}")
    assert child is not None

    child.end_group()

    wait_until("it is said", lambda: any("starting it again" in line for line in stage.said.lines), seconds=10)
    wait_until("it runs again", lambda: stage.children.get(f"postgres:{database['port']}") is not None, seconds=10)
    assert _query(stage, database, "select seat from booking") == [("A1",)]


def test_a_database_that_does_not_come_up_is_tried_until_it_does(stage: HandledStage, name: str) -> None:
    database = stage.create(INSTANCE, "db", **_database(name, skipFinalSnapshot=True))
    _query(stage, database, "create table booking as select 'A1'::text as seat")
    child = stage.children.get(f"postgres:{database['port']}")
    assert child is not None
    control = stage.folder / "rds" / name / "data" / "global" / "pg_control"
    content = control.read_bytes()

    control.unlink()
    child.end_group()
    wait_until("it is said", lambda: any("did not start" in line for line in stage.said.lines), seconds=20)
    control.write_bytes(content)

    wait_until("it runs again", lambda: stage.children.get(f"postgres:{database['port']}") is not None, seconds=20)
    assert _query(stage, database, "select seat from booking") == [("A1",)]


def test_a_database_that_crashes_while_the_emulator_is_away_is_tried_until_it_is_back(
    stage: HandledStage, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = stage.create("rds/parameterGroup:ParameterGroup", "db", name=name, family="postgres18")
    database = stage.create(INSTANCE, "db", **_database(name, skipFinalSnapshot=True, parameterGroupName=group["name"]))
    child = stage.children.get(f"postgres:{database['port']}")
    assert child is not None

    with monkeypatch.context() as away:
        away.setattr(stage.platform, "_clients", Clients(f"http://127.0.0.1:{free_port()}"))
        child.end_group()
        wait_until("it is said", lambda: any("did not start" in line for line in stage.said.lines), seconds=20)

    wait_until("it runs again", lambda: stage.children.get(f"postgres:{database['port']}") is not None, seconds=20)
    assert _query(stage, database, "select 1") == [(1,)]


def test_a_birth_that_a_crash_interrupted_begins_anew(stage: HandledStage, name: str) -> None:
    stage.aws("rds").create_db_instance(
        DBInstanceIdentifier=name,
        Engine="postgres",
        DBInstanceClass="db.t4g.micro",
        MasterUsername="minitickets",
        ManageMasterUserPassword=True,
        AllocatedStorage=20,
    )
    half_made = stage.folder / "rds" / name / "data"
    half_made.mkdir(parents=True)
    (half_made / "PG_VERSION").write_text("18")

    database = stage.create(INSTANCE, "db", **_database(name, skipFinalSnapshot=True))

    assert _query(stage, database, "select 1") == [(1,)]


def test_a_deletion_that_a_crash_interrupted_lets_the_platform_start_and_is_finished_by_the_next(
    stage: HandledStage, name: str
) -> None:
    database = stage.create(INSTANCE, "db", **_database(name))
    _query(stage, database, "create table booking as select 'A1'::text as seat")
    stage.children.stop_all(stage.children.names(), seconds=10)
    DatabaseFiles(stage.folder).move_to_snapshot(name, f"{name}-final")

    stage.restart()
    assert any("was being deleted" in line for line in stage.said.lines)
    stage.delete(INSTANCE, "db")
    again = stage.create(INSTANCE, "db", **_database(name, snapshotIdentifier=f"{name}-final", skipFinalSnapshot=True))

    assert _query(stage, again, "select seat from booking") == [("A1",)]


def test_a_parameter_group_reaches_the_server(stage: HandledStage, name: str) -> None:
    stage.create(
        "rds/parameterGroup:ParameterGroup",
        "db",
        name=name,
        family="postgres18",
        parameters=[
            {"name": "rds.force_ssl", "value": "1"},
            {"name": "log_min_duration_statement", "value": "500"},
        ],
    )
    database = stage.create(INSTANCE, "db", **_database(name, parameterGroupName=name, skipFinalSnapshot=True))

    assert _query(stage, database, "show log_min_duration_statement") == [("500ms",)]
    listed = stage.aws("rds").describe_db_parameters(DBParameterGroupName=name, Source="user")["Parameters"]
    assert {entry["ParameterName"]: entry["ParameterValue"] for entry in listed}["rds.force_ssl"] == "1"


def _cache(name: str, token: str) -> dict[str, Any]:
    return {
        "replicationGroupId": name,
        "description": "rate limits",
        "engine": "valkey",
        "nodeType": "cache.t4g.micro",
        "numCacheClusters": 1.0,
        "automaticFailoverEnabled": False,
        "transitEncryptionEnabled": True,
        "atRestEncryptionEnabled": True,
        "authToken": token,
    }


def _ping(cache: dict[str, Any], token: str) -> bool:
    address = cache["primaryEndpointAddress"]
    once = Retry(NoBackoff(), 0)
    with redis.Redis(host=address, port=int(cache["port"]), password=token, retry=once) as client:
        return bool(client.ping())


def test_a_cache_asks_for_its_token_and_answers_on_its_port_after_a_restart(stage: HandledStage, name: str) -> None:
    token = secrets.token_hex(16)
    cache = stage.create(CACHE, "redis", **_cache(name, token))

    assert _ping(cache, token)
    with pytest.raises(redis.AuthenticationError):
        _ping(cache, "guess")
    stage.restart()
    assert _ping(cache, token)

    stage.delete(CACHE, "redis")
    assert not accepts_connections(cache["port"])


def test_a_cache_that_does_not_come_up_is_tried_until_it_does(stage: HandledStage, name: str) -> None:
    token = secrets.token_hex(16)
    cache = stage.create(CACHE, "redis", **_cache(name, token))
    child = stage.children.get(f"valkey:{cache['port']}")
    assert child is not None

    configuration = stage.folder / "elasticache" / name / "valkey.conf"
    configuration.unlink()
    configuration.mkdir()
    child.end_group()
    wait_until("it is said", lambda: any("did not start" in line for line in stage.said.lines), seconds=20)
    configuration.rmdir()

    wait_until("it runs again", lambda: stage.children.get(f"valkey:{cache['port']}") is not None, seconds=20)
    assert _ping(cache, token)


def test_a_new_token_replaces_the_old_one_in_place(stage: HandledStage, name: str) -> None:
    old, new = secrets.token_hex(16), secrets.token_hex(16)
    stage.create(CACHE, "redis", **_cache(name, old))

    cache = stage.update(CACHE, "redis", **_cache(name, new))

    assert _ping(cache, new)
    with pytest.raises(redis.AuthenticationError):
        _ping(cache, old)


def test_a_token_without_encryption_in_transit_and_a_name_in_use_are_refused(stage: HandledStage, name: str) -> None:
    token = secrets.token_hex(16)
    stage.create(CACHE, "redis", **_cache(name, token))

    with pytest.raises(HandlerError, match="ReplicationGroupAlreadyExists"):
        stage.create(CACHE, "again", **_cache(name, token))
    with pytest.raises(HandlerError, match="AUTH token is only supported when encryption-in-transit"):
        stage.create(CACHE, "plain", **_cache(f"{name}-2", token) | {"transitEncryptionEnabled": False})
