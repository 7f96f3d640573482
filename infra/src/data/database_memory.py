"""The stage's memory of its database: two parameters, always on and free, and the look-ups that a run begins with.

``…/database-life`` holds ``{"bornFrom":…,"final":…,"rewoundAt":…}``. The database depends on it, so a new life is
written down before anything is made of it, and an interrupted run finds it.

``…/database-up`` holds the ``final`` of the last life whose database came up. It depends on the database, and the API
on it, so a life that it does not name has never held a booking.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import pulumi
import pulumi_aws as aws

from src.data.database_life import DatabaseLifeError, Instance, Life, Observed, decide
from src.policies import compact_json

# How the provider says that no snapshot has the name; every other failure of the look-up stops the run.
_NO_RESULTS = "Your query returned no results"

_LIFE = "database-life"
_UP = "database-up"
_NEVER = "none"  # a parameter cannot be empty


@dataclass(frozen=True, kw_only=True)
class DatabaseMemory:
    """The life that this run decided on, and the parameter that remembers it.

    ``last_up`` is the ``final`` of the last life whose database came up, before this run; None if none ever did.
    """

    path: str
    identifier: str
    life: Life
    last_up: str | None
    parameter: aws.ssm.Parameter


def create_database_memory(name: str, *, is_wanted: bool, restore_from: str | None) -> DatabaseMemory:
    """Look, decide (`database_life.decide`) and remember: the parameter ``/<name>/database-life``.

    ``is_wanted`` is what the run wants, not what is there. Raises DatabaseLifeError where the run must stop, and
    whatever a look-up fails with.
    """
    identifier = f"{name}-db"
    path = f"/{name}"
    remembered = look_up_parameters(path)
    last_up = remembered.get(f"{path}/{_UP}")
    if last_up == _NEVER:
        last_up = None
    life = decide(
        Observed(
            identifier=identifier,
            is_wanted=is_wanted,
            instance=look_up_instance(identifier),
            remembered=parse_life(remembered.get(f"{path}/{_LIFE}"), parameter=f"{path}/{_LIFE}"),
            last_up=last_up,
            restore_from=restore_from,
            snapshot_status=look_up_snapshot_status,
            now=datetime.now(UTC),
        )
    )
    parameter = aws.ssm.Parameter(
        _LIFE,
        name=f"{path}/{_LIFE}",
        description="What the next database of this stage is born from; written by the program, not by hand",
        type="String",
        # Not a secret, and whoever reads a preview should see what a run is about to restore.
        insecure_value=compact_json({"final": life.final, "bornFrom": life.born_from, "rewoundAt": life.rewound_at}),
    )
    return DatabaseMemory(path=path, identifier=identifier, life=life, last_up=last_up, parameter=parameter)


def remember_database_up(memory: DatabaseMemory, *, instance: aws.rds.Instance | None) -> aws.ssm.Parameter:
    """Write down that this life's database is up, once ``instance`` is there: the parameter ``/<name>/database-up``.

    Without one it stays as it is. What could write into the database depends on this parameter: only while it does not
    name the life may a killed run's database be made again without asking.
    """
    return aws.ssm.Parameter(
        _UP,
        name=f"{memory.path}/{_UP}",
        description="The last life of this stage's database that began; written by the program, not by hand",
        type="String",
        insecure_value=(memory.life.final if instance is not None else memory.last_up) or _NEVER,
        opts=pulumi.ResourceOptions(depends_on=[instance] if instance is not None else []),
    )


def look_up_instance(identifier: str) -> Instance:
    """Whether RDS has an instance of this identifier, in whatever state. (The look-up does not tell which.)"""
    found = aws.rds.get_instances(filters=[{"name": "db-instance-id", "values": [identifier]}])
    return Instance.PRESENT if identifier in found.instance_identifiers else Instance.ABSENT


def look_up_parameters(path: str) -> dict[str, str]:
    """What the stage remembers: the values of the parameters below ``path``, by their names."""
    found = aws.ssm.get_parameters_by_path(path=path)
    return dict(zip(found.names, found.values, strict=True))


def parse_life(text: str | None, *, parameter: str) -> Life | None:
    """A remembered life; None if none is. Raises DatabaseLifeError if it is not what the program writes."""
    if text is None:
        return None
    try:
        value = json.loads(text)
        final, born_from, rewound_at = value["final"], value["bornFrom"], value["rewoundAt"]
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(parameter, text) from error
    for part in (final, born_from, rewound_at):
        if part is not None and not isinstance(part, str):
            raise _unreadable(parameter, text)
    return Life(final=final, born_from=born_from, rewound_at=rewound_at)


def look_up_snapshot_status(snapshot: str) -> str | None:
    """The status of a snapshot by its name, or None if there is none.

    By name, never ``most_recent``: that sorts a snapshot which is still being written as the oldest.
    """
    try:
        return aws.rds.get_snapshot(db_snapshot_identifier=snapshot).status
    except Exception as error:
        if _NO_RESULTS in str(error):  # the SDK knows one kind of exception for every failed look-up
            return None
        raise


def _unreadable(parameter: str, text: str) -> DatabaseLifeError:
    return DatabaseLifeError(
        f"parameter {parameter} holds {text!r}, which the program did not write: put back "
        '{"bornFrom":null,"final":"<its final snapshot>","rewoundAt":null} with the snapshot that the database ended '
        "in, or delete the parameter if this stage never had a database"
    )
