"""The AWS account that a stage lives in, as the operator's own credentials reach it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ops.aws_look_ups import LOOK_UPS
from ops.refusal import Failure, Refusal

# A call that gets no answer ends after about half a minute, retries included.
_PATIENCE = Config(connect_timeout=5, read_timeout=15, retries={"total_max_attempts": 2, "mode": "standard"})


@dataclass(frozen=True, kw_only=True)
class LiveDatabase:
    """A database as RDS shows it now. ``status`` is RDS's own word (``available``, ``deleting``, …)."""

    status: str
    deletion_protection: bool


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A snapshot made by hand or at a database's end. ``made`` is None while it is being written."""

    name: str
    status: str
    made: datetime | None


class AwsAccount:
    """Look-ups, and the few deletions that Pulumi knows nothing of. Failure where AWS refuses one."""

    def __init__(self, *, region: str, profile: str | None = None) -> None:
        try:
            self._session = boto3.Session(region_name=region, profile_name=profile)
        except BotoCoreError as error:
            raise Refusal(f"AWS credentials: {error}. Set AWS_PROFILE, or aws:profile in the stage file") from error
        self.region = region

    def number(self) -> str:
        """The account's twelve digits. Refusal without credentials that AWS accepts."""
        try:
            return str(self.client("sts").get_caller_identity()["Account"])
        except (BotoCoreError, ClientError) as error:
            raise Refusal(
                f"No AWS credentials that work ({_reason(error)}): set AWS_PROFILE, run aws sso login, "
                "or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ) from error

    def database(self, identifier: str) -> LiveDatabase | None:
        """The database, or None if there is none."""
        try:
            found = self.client("rds").describe_db_instances(DBInstanceIdentifier=identifier)["DBInstances"]
        except ClientError as error:
            if error_code(error).startswith("DBInstanceNotFound"):
                return None
            raise aws_failure(f"look up database {identifier}", error) from error
        except BotoCoreError as error:
            raise aws_failure(f"look up database {identifier}", error) from error
        if not found:
            return None
        return LiveDatabase(
            status=str(found[0]["DBInstanceStatus"]), deletion_protection=bool(found[0].get("DeletionProtection"))
        )

    def snapshots(self, identifier: str) -> list[Snapshot]:
        """The lasting snapshots of a database, which may be long gone."""
        try:
            pages = self.client("rds").get_paginator("describe_db_snapshots")
            return [
                Snapshot(
                    name=str(found["DBSnapshotIdentifier"]),
                    status=str(found["Status"]),
                    made=found.get("SnapshotCreateTime"),
                )
                for page in pages.paginate(DBInstanceIdentifier=identifier, SnapshotType="manual")
                for found in page["DBSnapshots"]
            ]
        except (BotoCoreError, ClientError) as error:
            raise aws_failure(f"list the snapshots of {identifier}", error) from error

    def snapshot(self, name: str) -> Snapshot | None:
        """One snapshot by its name, or None if there is none."""
        try:
            found = self.client("rds").describe_db_snapshots(DBSnapshotIdentifier=name)["DBSnapshots"]
        except ClientError as error:
            if error_code(error).startswith("DBSnapshotNotFound"):
                return None
            raise aws_failure(f"look up snapshot {name}", error) from error
        except BotoCoreError as error:
            raise aws_failure(f"look up snapshot {name}", error) from error
        if not found:
            return None
        return Snapshot(name=name, status=str(found[0]["Status"]), made=found[0].get("SnapshotCreateTime"))

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot; one that is gone already counts as deleted."""
        try:
            self.client("rds").delete_db_snapshot(DBSnapshotIdentifier=name)
        except ClientError as error:
            if not error_code(error).startswith("DBSnapshotNotFound"):
                raise aws_failure(f"delete snapshot {name}", error) from error
        except BotoCoreError as error:
            raise aws_failure(f"delete snapshot {name}", error) from error

    def remembered_snapshots(self, parameter: str) -> frozenset[str] | None:
        """The snapshots that a stage's memory names; None where there is no such parameter."""
        try:
            value = self.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
        except ClientError as error:
            if error_code(error) == "ParameterNotFound":
                return None
            raise aws_failure(f"read parameter {parameter}", error) from error
        except BotoCoreError as error:
            raise aws_failure(f"read parameter {parameter}", error) from error
        try:
            life = json.loads(value)
            return frozenset(str(life[part]) for part in ("final", "bornFrom") if life[part] is not None)
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(f"Parameter {parameter} holds {value!r}, which the program did not write") from error

    def candidates(self, kind: str, inputs: Mapping[str, Any]) -> list[str] | None:
        """The ids of all that may be what a create of this type was sent for; None where there is no look-up for it.

        KeyError if an input by which it would be known is missing.
        """
        look_up = LOOK_UPS.get(kind)
        if look_up is None:
            return None
        try:
            return list(look_up(self.client, inputs))
        except ClientError as error:
            if "NotFound" in error_code(error):  # what it belongs to is gone
                return []
            raise aws_failure(f"look for a {kind}", error) from error
        except BotoCoreError as error:
            raise aws_failure(f"look for a {kind}", error) from error

    def registry_login(self) -> str:
        """The registry's login for twelve hours, as ``user:password`` in base64."""
        try:
            answer = self.client("ecr").get_authorization_token()
        except (BotoCoreError, ClientError) as error:
            raise aws_failure("get a login to the image registry", error) from error
        return str(answer["authorizationData"][0]["authorizationToken"])

    def image_digest(self, repository: str, tag: str) -> str | None:
        """The digest (``sha256:…``) of a pushed image, or None if the repository has no such tag."""
        try:
            found: Sequence[Any] = self.client("ecr").describe_images(
                repositoryName=repository, imageIds=[{"imageTag": tag}]
            )["imageDetails"]
        except ClientError as error:
            if error_code(error) == "ImageNotFoundException":
                return None
            raise aws_failure(f"look up image {tag} in {repository}", error) from error
        except BotoCoreError as error:
            raise aws_failure(f"look up image {tag} in {repository}", error) from error
        return str(found[0]["imageDigest"]) if found else None

    def client(self, service: str) -> Any:
        """A client of a service, in this account and region, that never waits long for an answer."""
        return self._session.client(service, config=_PATIENCE)  # type: ignore[call-overload]  # a service known at run time


def aws_failure(what: str, error: BotoCoreError | ClientError) -> Failure:
    """The Failure that says what AWS did not let us do, and why."""
    return Failure(f"AWS did not let us {what} ({_reason(error)})")


def error_code(error: ClientError) -> str:
    """AWS's own word for what went wrong."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _reason(error: BotoCoreError | ClientError) -> str:
    text = " ".join(str(error).split())
    return (
        f"{error_code(error)}: {error.response['Error'].get('Message', '')}" if isinstance(error, ClientError) else text
    )
