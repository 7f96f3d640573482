"""RDS: real PostgreSQL servers, registered in the emulator's control plane too.

The emulator decides what AWS refuses (names, groups, protection, snapshots); the data is this machine's.
"""

import contextlib
import json
import secrets
import threading
import time
from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs, PlatformServices
from local.handlers.rds_files import DatabaseFacts, DatabaseFiles
from local.handlers.rds_groups import retag
from local.handlers.refusals import found, gone, refusals
from local.handlers.shapes import chosen, physical_name, tag_list, tags_of
from local.servers.postgres import PostgresServer, cluster_template

_PASSWORD_BYTES = 24
_LONGEST_PAUSE_SECONDS = 16.0  # between two attempts to start a server that ended by itself

_MODIFIABLE = {
    "allocatedStorage": "AllocatedStorage",
    "autoMinorVersionUpgrade": "AutoMinorVersionUpgrade",
    "backupRetentionPeriod": "BackupRetentionPeriod",
    "backupWindow": "PreferredBackupWindow",
    "caCertIdentifier": "CACertificateIdentifier",
    "copyTagsToSnapshot": "CopyTagsToSnapshot",
    "deletionProtection": "DeletionProtection",
    "engineVersion": "EngineVersion",
    "instanceClass": "DBInstanceClass",
    "iops": "Iops",
    "maintenanceWindow": "PreferredMaintenanceWindow",
    "maxAllocatedStorage": "MaxAllocatedStorage",
    "monitoringInterval": "MonitoringInterval",
    "multiAz": "MultiAZ",
    "parameterGroupName": "DBParameterGroupName",
    "publiclyAccessible": "PubliclyAccessible",
    "storageType": "StorageType",
    "vpcSecurityGroupIds": "VpcSecurityGroupIds",
}
_AT_CREATION = {
    **_MODIFIABLE,
    "availabilityZone": "AvailabilityZone",
    "dbSubnetGroupName": "DBSubnetGroupName",
    "engine": "Engine",
    "kmsKeyId": "KmsKeyId",
    "storageEncrypted": "StorageEncrypted",
}


class Instance(Handler):
    """A database: a PostgreSQL of its own, at the same port for all its life.

    Its master user is what RDS makes it: able to make databases and roles, no superuser. With
    ``manageMasterUserPassword`` the password is in a secret that AWS would own.
    """

    resource_type = "aws:rds/instance:Instance"
    replaced_by = frozenset(
        {
            "availabilityZone", "backupTarget", "characterSetName", "customIamInstanceProfile", "dbName", "engine",
            "kmsKeyId", "ncharCharacterSetName", "restoreToPointInTime", "snapshotIdentifier", "storageEncrypted",
            "timezone", "username",
        }
    )  # fmt: skip

    def __init__(self, platform: PlatformServices) -> None:
        super().__init__(platform)
        self._files = DatabaseFiles(platform.state)
        self._servers: dict[str, PostgresServer] = {}
        self._lock = threading.Lock()

    def create(self, name: str, inputs: Inputs) -> Made:
        identifier = physical_name(inputs, name, key="identifier", limit=63)
        if inputs.get("engine", "postgres") != "postgres":
            raise HandlerError(f"the local platform runs PostgreSQL only; {identifier} asks for {inputs['engine']}")
        snapshot = inputs.get("snapshotIdentifier")
        born_from = self._snapshot_facts(snapshot) if snapshot else None
        if self._files.instance_facts(identifier) is not None:
            raise HandlerError(f"DBInstanceAlreadyExists: DB instance already exists: {identifier}")
        self._clear_unfinished(identifier)
        username = born_from.username if born_from else inputs["username"]
        database = born_from.database if born_from else inputs.get("dbName")
        port = self.platform.free_port()
        registered = self._register(identifier, inputs, username=username, database=database, port=port)
        facts = DatabaseFacts(
            identifier=identifier,
            resource_id=registered["DbiResourceId"],
            engine_version=registered["EngineVersion"],
            username=username,
            database=database,
        )
        outputs = {
            **inputs,
            "identifier": identifier,
            "arn": registered["DBInstanceArn"],
            "resourceId": facts.resource_id,
            "address": "127.0.0.1",
            "endpoint": f"127.0.0.1:{port}",
            "port": port,
            "status": "available",
            "engine": "postgres",
            "engineVersionActual": facts.engine_version,
            "username": username,
            "dbName": database,
            "masterUserSecrets": [],
            "tagsAll": tags_of(inputs),
        }
        try:
            password, outputs["masterUserSecrets"] = self._password(facts, inputs)
            self._fill(facts, password, outputs, snapshot=snapshot)
        except BaseException:
            self._undo(identifier, outputs)
            raise
        return Made(identifier, outputs)

    def read(self, id: str, inputs: Inputs) -> Made | None:
        identifier = id or inputs.get("identifier")
        if not identifier:
            return None
        live = self._live(identifier)
        facts = self._files.instance_facts(identifier)
        if live is None or facts is None:
            return None
        port = live["Endpoint"]["Port"]
        secret = found(
            lambda: self.platform.aws("secretsmanager").describe_secret(SecretId=_secret_name(facts.resource_id))
        )
        outputs = {
            **inputs,
            "identifier": identifier,
            "arn": live["DBInstanceArn"],
            "resourceId": facts.resource_id,
            "address": "127.0.0.1",
            "endpoint": f"127.0.0.1:{port}",
            "port": port,
            "status": live["DBInstanceStatus"],
            "engine": "postgres",
            "engineVersionActual": facts.engine_version,
            "username": facts.username,
            "dbName": facts.database,
            "deletionProtection": bool(live.get("DeletionProtection")),
            "masterUserSecrets": [_master_secret(secret["ARN"])] if secret else [],
            "tagsAll": tags_of(inputs),
        }
        self.resume(identifier, outputs)
        return Made(identifier, outputs)

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        defaults = {"deletionProtection": False, "backupRetentionPeriod": 0, "copyTagsToSnapshot": False}
        removed = {key: value for key, value in defaults.items() if key not in new}
        self.platform.aws("rds").modify_db_instance(
            DBInstanceIdentifier=id, ApplyImmediately=True, **chosen({**removed, **new}, _MODIFIABLE)
        )
        if old.get("parameterGroupName") != new.get("parameterGroupName"):
            self._stop(id)
            self.resume(id, {**old, "parameterGroupName": new.get("parameterGroupName")})
        if new.get("password") and new["password"] != old.get("password"):
            self._set_password(id, old["username"], new["password"])
        retag(self.platform, old["arn"], old, new)
        kept = (
            "identifier", "arn", "resourceId", "address", "endpoint", "port", "status", "engine", "engineVersionActual",
            "username", "dbName", "masterUserSecrets",
        )  # fmt: skip
        return {**new, **{key: old[key] for key in kept}, "tagsAll": tags_of(new)}

    def delete(self, id: str, outputs: Outputs) -> None:
        live = self._live(id)
        final = None
        if not outputs.get("skipFinalSnapshot"):
            final = outputs.get("finalSnapshotIdentifier")
            if not final:
                raise HandlerError(
                    f"deleting RDS DB Instance ({id}): final_snapshot_identifier is required when skip_final_snapshot "
                    "is false"
                )
        if live is not None:
            self._refuse_delete(id, live, final)
        self._stop(id)
        if final and self._files.instance_facts(id):
            self._files.move_to_snapshot(id, final)
        if live is not None:
            ending = {"FinalDBSnapshotIdentifier": final} if final else {"SkipFinalSnapshot": True}
            self.platform.aws("rds").delete_db_instance(DBInstanceIdentifier=id, DeleteAutomatedBackups=True, **ending)
        self._files.remove(id)
        self._delete_secret(outputs)

    def resume(self, id: str, outputs: Outputs) -> None:
        with self._lock:
            if id in self._servers:
                return
        if self._files.instance_facts(id) is None:
            self.platform.say(
                f"the database {id} was being deleted when the platform ended; switch data off once more to finish it"
            )
            return
        self.platform.say(f"starting PostgreSQL {id}")
        self._serve(id, int(outputs["port"]), outputs.get("parameterGroupName"))

    def _live(self, identifier: str) -> dict[str, Any] | None:
        answer = found(lambda: self.platform.aws("rds").describe_db_instances(DBInstanceIdentifier=identifier))
        instances = answer["DBInstances"] if answer else []
        return instances[0] if instances else None

    def _snapshot_facts(self, snapshot: str) -> DatabaseFacts:
        rds = self.platform.aws("rds")
        answer = found(lambda: rds.describe_db_snapshots(DBSnapshotIdentifier=snapshot))
        listed = answer["DBSnapshots"] if answer else []
        if not listed:
            raise HandlerError(f"DBSnapshotNotFound: DBSnapshot not found: {snapshot}")
        if listed[0]["Status"] != "available":
            raise HandlerError(
                f"InvalidDBSnapshotState: the snapshot {snapshot} is {listed[0]['Status']}, not available; try again "
                "when it is"
            )
        facts = self._files.snapshot_facts(snapshot)
        if facts is None:
            raise HandlerError(
                f"the snapshot {snapshot} has no data on this machine, so nothing can be restored from it"
            )
        return facts

    def _register(
        self, identifier: str, inputs: Inputs, *, username: str, database: str | None, port: int
    ) -> dict[str, Any]:
        request = chosen(inputs, _AT_CREATION)
        request.setdefault("Engine", "postgres")
        if database:
            request["DBName"] = database
        if inputs.get("manageMasterUserPassword"):
            request["ManageMasterUserPassword"] = True
        elif inputs.get("password"):
            request["MasterUserPassword"] = inputs["password"]
        else:
            raise HandlerError(
                "InvalidParameterValue: a database needs manageMasterUserPassword or a password for its master user"
            )
        made: dict[str, Any] = self.platform.aws("rds").create_db_instance(
            DBInstanceIdentifier=identifier, MasterUsername=username, Port=port, Tags=tag_list(inputs), **request
        )["DBInstance"]
        return made

    def _password(self, facts: DatabaseFacts, inputs: Inputs) -> tuple[str, list[dict[str, str]]]:
        if not inputs.get("manageMasterUserPassword"):
            return str(inputs["password"]), []
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        client = self.platform.aws("secretsmanager")
        name = _secret_name(facts.resource_id)
        arn: str = client.create_secret(
            Name=name,
            Description=f"Secret associated with primary RDS DB instance: {inputs.get('identifier', facts.identifier)}",
            SecretString=json.dumps({"username": facts.username, "password": password}),
            Tags=[{"Key": "aws:rds:primaryDBInstanceArn", "Value": facts.identifier}],
        )["ARN"]
        return password, [_master_secret(arn)]

    def _fill(self, facts: DatabaseFacts, password: str, outputs: Outputs, *, snapshot: str | None) -> None:
        identifier = facts.identifier
        folder = self._files.begin(identifier, snapshot=snapshot)
        server = PostgresServer(folder, port=outputs["port"], log=self.platform.state / "logs" / f"{identifier}.log")
        if not server.is_prepared:
            self.platform.say(f"making the database {identifier}")
            server.prepare(template=cluster_template(self.platform.root))
        else:
            self.platform.say(f"restoring the database {identifier} from {snapshot}")
        running = self._serve(identifier, int(outputs["port"]), outputs.get("parameterGroupName"))
        if snapshot is None:
            running.run_sql(_first_roles(facts.username))
            if facts.database:
                running.run_sql(f"create database {_quoted(facts.database)} owner {_quoted(facts.username)}")
        self._set_password(identifier, facts.username, password)
        self._files.finish(facts)

    def _set_password(self, identifier: str, username: str, password: str) -> None:
        escaped = password.replace("'", "''")
        self._servers[identifier].run_sql(f"alter role {_quoted(username)} login password '{escaped}'")

    def _serve(self, identifier: str, port: int, parameter_group: str | None) -> PostgresServer:
        folder = self._files.instance(identifier)
        server = PostgresServer(folder, port=port, log=self.platform.state / "logs" / f"{identifier}.log")
        child = server.start(settings=self._settings(parameter_group))
        with self._lock:
            self._servers[identifier] = server
        self.platform.adopt_process(
            child, on_exit=lambda code: self._start_again(identifier, port, parameter_group, code)
        )
        return server

    def _start_again(self, identifier: str, port: int, parameter_group: str | None, code: int) -> None:
        """RDS restarts a server that crashed, and does not give up."""
        with self._lock:
            crashed = self._servers.get(identifier)
        pause = 1.0
        while True:
            with self._lock:
                if crashed is None or self._servers.get(identifier) is not crashed:
                    return  # stopped or deleted meanwhile
            self.platform.say(f"PostgreSQL {identifier} ended with exit code {code}; starting it again")
            try:
                with refusals():  # the emulator, which knows the parameters, may be away for a moment
                    self._serve(identifier, port, parameter_group)
            except HandlerError as error:
                self.platform.say(f"PostgreSQL {identifier} did not start: {error}; next attempt in {pause:g} s")
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            else:
                return

    def _settings(self, parameter_group: str | None) -> dict[str, str]:
        """The group's own settings that this server can have: not RDS's inventions, and none of TLS."""
        if not parameter_group:
            return {}
        rds = self.platform.aws("rds")
        answer = found(
            lambda: rds.describe_db_parameters(DBParameterGroupName=parameter_group, Source="user")["Parameters"]
        )
        return {
            entry["ParameterName"]: entry["ParameterValue"]
            for entry in answer or []
            if entry.get("ParameterValue")
            and "." not in entry["ParameterName"]
            and not entry["ParameterName"].startswith("ssl")
            and "{" not in entry["ParameterValue"]
        }

    def _stop(self, identifier: str) -> None:
        with self._lock:
            server = self._servers.pop(identifier, None)
        if server is not None:
            self.platform.stop_process(f"postgres:{server.port}", seconds=30)
            server.forget_sockets()

    def _refuse_delete(self, identifier: str, live: dict[str, Any], final: str | None) -> None:
        if live.get("DeletionProtection"):
            raise HandlerError(
                "InvalidParameterCombination: Cannot delete protected DB Instance, please disable deletion protection "
                f"and try again. ({identifier})"
            )
        rds = self.platform.aws("rds")
        if final and found(lambda: rds.describe_db_snapshots(DBSnapshotIdentifier=final)["DBSnapshots"]):
            raise HandlerError(
                f"DBSnapshotAlreadyExists: Cannot create the snapshot because a snapshot with the identifier {final} "
                "already exists."
            )

    def _delete_secret(self, outputs: Outputs) -> None:
        client = self.platform.aws("secretsmanager")
        for secret in outputs.get("masterUserSecrets") or []:
            with contextlib.suppress(client.exceptions.ResourceNotFoundException):
                client.delete_secret(SecretId=secret["secretArn"], ForceDeleteWithoutRecovery=True)

    def _clear_unfinished(self, identifier: str) -> None:
        """What a platform that was killed in the middle of a create registered without data."""
        live = self._live(identifier)
        if live is None:
            return
        client = self.platform.aws("secretsmanager")
        name = _secret_name(live["DbiResourceId"])
        secret = found(lambda: client.describe_secret(SecretId=name))
        self._undo(identifier, {"masterUserSecrets": [_master_secret(secret["ARN"])] if secret else []})

    def _undo(self, identifier: str, outputs: Outputs) -> None:
        """A birth that failed leaves nothing behind."""
        self._stop(identifier)
        self._files.remove(identifier)
        rds = self.platform.aws("rds")
        gone(lambda: rds.modify_db_instance(DBInstanceIdentifier=identifier, DeletionProtection=False))
        gone(lambda: rds.delete_db_instance(DBInstanceIdentifier=identifier, SkipFinalSnapshot=True))
        self._delete_secret(outputs)


def _first_roles(username: str) -> str:
    """What RDS makes before anybody connects: its master user has rds_superuser, which is no superuser."""
    user = _quoted(username)
    return (
        "create role rds_superuser nologin;"
        "grant pg_monitor, pg_signal_backend, pg_checkpoint to rds_superuser;"
        f"create role {user} login createdb createrole; grant rds_superuser to {user};"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _secret_name(resource_id: str) -> str:
    return f"rds!{resource_id.lower()}"


def _master_secret(arn: str) -> dict[str, str]:
    return {"secretArn": arn, "secretStatus": "active", "kmsKeyId": "alias/aws/secretsmanager"}
