"""All that a stage may choose: the only reader of the stack's configuration and of the run's environment.

Pulumi.yaml declares the same keys for the command line, with the same defaults (infra/tests/test_settings.py compares
them); ``pulumi config set <key> <value>`` writes a stage's choice into Pulumi.<stage>.yaml.

Default tags are the provider's own setting, ``aws:defaultTags`` in the stage file: the provider puts them on every
resource, which no program can forget. What the program does is refuse a stage file that lacks them or tells lies.
"""

import difflib
import json
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any

import pulumi
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from src.naming import PROJECT, stage_problem
from src.setting_rules import (
    absent_if_empty,
    alias_problems,
    cidr,
    concurrency_problems,
    exposure_problems,
    fargate_problems,
    log_retention,
    origin,
    production_problems,
    recovery_days,
    scaling_problems,
    switch_problems,
)

RESTORE_FROM_VARIABLE = "RESTORE_FROM"


class SettingsError(pulumi.RunError):
    """The stage's settings do not hold; the message has a line for each that is wrong."""


Address = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$")]
Cidr = Annotated[str, AfterValidator(cidr)]
Origin = Annotated[str, AfterValidator(origin)]
CertificateArn = Annotated[str, StringConstraints(pattern=r"^arn:aws:acm:[a-z0-9-]+:\d{12}:certificate/.+$")]
HostedZone = Annotated[str, StringConstraints(pattern=r"^Z[A-Z0-9]{1,31}$")]
Image = Annotated[str, StringConstraints(pattern=r"^\S+$")]
IamPrincipal = Annotated[str, StringConstraints(pattern=r"^arn:aws:iam::\d{12}:(role|user)/[\w+=,.@/-]+$")]
AbsentIfEmpty = BeforeValidator(absent_if_empty)


class _Group(BaseModel):
    """Settings that belong together. Each field's key in the stage file is its name in camel case."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class PurposeSettings(_Group):
    """What the stage is for. Required, so that no stage is one by accident."""

    production: bool = Field(description="Refuse every setting that a stage with real customers must not have")


class Switches(_Group):
    """What costs money while idle."""

    compute_enabled: bool = Field(description="Run the API: ECS, load balancer, NAT gateways. Needs dataEnabled")
    data_enabled: bool = Field(description="Run the database and the cache; off leaves a final snapshot")


class MailSettings(_Group):
    """Who mails come from."""

    sender: Address = Field(description="Mail address that mails come from")
    verify_domain: bool = Field(default=False, description="Verify the sender's whole domain (by DNS), not the address")


class SiteSettings(_Group):
    """Where people find the system."""

    public_url: Annotated[Origin | None, AbsentIfEmpty] = Field(
        default=None,
        description="Origin that people see, such as https://tickets.example.org; empty: mails do not link",
    )
    certificate_arn: Annotated[CertificateArn | None, AbsentIfEmpty] = Field(
        default=None, description="ACM certificate of the load balancer; empty: plain HTTP to allowedCidrs only"
    )
    hosted_zone_id: Annotated[HostedZone | None, AbsentIfEmpty] = Field(
        default=None,
        description="Route 53 zone in which publicUrl's host follows the load balancer; empty: you keep that record",
    )
    allowed_cidrs: tuple[Cidr, ...] = Field(
        default=(), description="IPv4 networks that may reach the load balancer; empty: nobody"
    )
    nat_gateways: Annotated[int, Field(ge=0, le=2)] = Field(
        default=0, description="0: tasks in public subnets, reachable from the load balancer only; 1, 2: private ones"
    )


class QueueSettings(_Group):
    """Queues, and what may run at a time behind them."""

    max_receive_count: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=3, description="How often a message is tried before it becomes a dead letter"
    )
    account_concurrency: Annotated[int, Field(ge=1)] = Field(
        default=10, description="Concurrent Lambda executions that the account allows in the region"
    )
    worker_max_concurrency: Annotated[int, Field(ge=2, le=1000)] = Field(
        default=5, description="Batches of mails in work at a time"
    )
    tickets_max_concurrency: Annotated[int, Field(ge=2, le=1000)] = Field(
        default=2, description="Bookings whose tickets are drawn at a time"
    )
    worker_memory_mib: Annotated[int, Field(ge=128, le=10240)] = Field(
        default=256, description="Memory of the worker in MiB; its share of a core grows with it"
    )
    tickets_memory_mib: Annotated[int, Field(ge=128, le=10240)] = Field(
        default=256, description="Memory of the tickets function in MiB; its share of a core grows with it"
    )


class KeepingSettings(_Group):
    """How hard it is to lose something."""

    log_retention_days: Annotated[int, AfterValidator(log_retention)] = Field(
        default=30, description="Days that logs are kept"
    )
    deletion_protection: bool = Field(default=True, description="AWS refuses to delete the database and the tables")
    point_in_time_recovery: bool = Field(default=True, description="Tables can be put back to any second of 35 days")
    force_destroy: bool = Field(default=False, description="`destroy` takes a bucket and images that are not empty")
    secret_administrators: tuple[IamPrincipal, ...] = Field(
        default=(), description="Roles and users that alone may touch the secrets, yours too; empty: IAM decides"
    )
    secret_recovery_days: Annotated[int, AfterValidator(recovery_days)] = Field(
        default=30, description="Days that a deleted signing secret can be brought back, and blocks its name"
    )


class AlarmSettings(_Group):
    """Who hears when bookings stop, and from where on."""

    alarm_email: Annotated[Address | None, AbsentIfEmpty] = Field(
        default=None, description="Address that alarms are mailed to; empty: they show in CloudWatch only"
    )
    alarm_key: bool = Field(
        default=False, description="Encrypt alarms with a KMS key of our own, paid by the month; false: not encrypted"
    )
    secret_rotation_reminder_days: Annotated[int, Field(ge=0, le=365)] = Field(
        default=0, description="Days between reminders, told as alarms are, to rotate the signing keys; 0: none"
    )
    database_connections_alarm: Annotated[int, Field(ge=1)] = Field(
        default=60, description="Connections to the database that raise an alarm; db.t4g.micro takes about 80"
    )


class DataSettings(_Group):
    """Sizes of the database and the cache, and what is kept of them."""

    database_instance_class: Annotated[str, StringConstraints(pattern=r"^db\.[a-z0-9]+\.[a-z0-9]+$")] = Field(
        default="db.t4g.micro", description="RDS instance class"
    )
    database_storage_gib: Annotated[int, Field(ge=20, le=65536)] = Field(
        default=20, description="Storage of the database in GiB; it can grow, never shrink"
    )
    database_multi_az: bool = Field(default=False, description="A standby of the database in the second zone")
    database_backup_days: Annotated[int, Field(ge=1, le=35)] = Field(
        default=7, description="Days that automated backups are kept"
    )
    backup_plan_days: Annotated[int, Field(ge=0, le=36500)] = Field(
        default=0, description="Days that AWS Backup keeps a daily backup that outlives the database; 0: no plan"
    )
    keep_snapshots: Annotated[int, Field(ge=1, le=90)] = Field(
        default=5, description="Final snapshots that `make data-on` keeps; an account has room for 100"
    )
    cache_node_type: Annotated[str, StringConstraints(pattern=r"^cache\.[a-z0-9]+\.[a-z0-9]+$")] = Field(
        default="cache.t4g.micro", description="ElastiCache node type"
    )
    cache_replicas: Annotated[int, Field(ge=0, le=5)] = Field(
        default=0, description="Replicas of the cache that take over if it fails"
    )


class ApiSettings(_Group):
    """Size of the API."""

    image: Annotated[Image | None, AbsentIfEmpty] = Field(
        default=None, description="The API's image, by digest (`make push` sets it); empty: no service is declared"
    )
    api_cpu: int = Field(default=256, description="CPU of a task; 1024 is one core")
    api_memory_mib: int = Field(default=512, description="Memory of a task in MiB")
    api_min_tasks: Annotated[int, Field(ge=1, le=50)] = Field(default=1, description="Tasks that run at least")
    api_max_tasks: Annotated[int, Field(ge=1, le=50)] = Field(
        default=1, description="Tasks that run at most; more than apiMinTasks: CPU and requests decide"
    )


class BuildSettings(_Group):
    """Where the program finds what was built."""

    artifacts_dir: Annotated[str, StringConstraints(min_length=1)] = Field(
        default="dist", description="Folder of worker.zip and tickets.zip; a relative one starts at the project's"
    )


class Settings(BaseModel):
    """A stage. Modules are given the values that they need, never the whole."""

    model_config = ConfigDict(frozen=True)

    stage: str
    purpose: PurposeSettings
    switches: Switches
    mail: MailSettings
    site: SiteSettings
    queues: QueueSettings
    keeping: KeepingSettings
    alarms: AlarmSettings
    data: DataSettings
    api: ApiSettings
    build: BuildSettings
    restore_from: str | None = None  # of this one run, never of the stage: RESTORE_FROM


GROUPS: Mapping[str, type[_Group]] = {
    "purpose": PurposeSettings,
    "switches": Switches,
    "mail": MailSettings,
    "site": SiteSettings,
    "queues": QueueSettings,
    "keeping": KeepingSettings,
    "alarms": AlarmSettings,
    "data": DataSettings,
    "api": ApiSettings,
    "build": BuildSettings,
}


def setting_keys() -> dict[str, type[_Group]]:
    """Every key of a stage file, and the group that it belongs to."""
    return {field.alias or name: group for group in GROUPS.values() for name, field in group.model_fields.items()}


def load_settings() -> Settings:
    """The settings of the stack that runs. Raises SettingsError with a line for each wrong one, before any resource."""
    stage = pulumi.get_stack()
    config = pulumi.Config(PROJECT)
    values: dict[str, str] = {}
    for key in setting_keys():
        text = config.get(key)
        if text is not None:
            values[key] = text
    tags = pulumi.Config("aws").get("defaultTags")
    return parse_settings(
        stage=stage,
        values=values,
        unknown=_unknown_keys(),
        default_tags=tags,
        restore_from=os.environ.get(RESTORE_FROM_VARIABLE),
    )


def parse_settings(
    *,
    stage: str,
    values: Mapping[str, str],
    unknown: list[str] | None = None,
    default_tags: str | None,
    restore_from: str | None = None,
) -> Settings:
    """Settings from the texts of a stage file: ``values`` by key; lists and ``default_tags`` as JSON.

    Raises SettingsError that names each wrong key, its value, and what is allowed.
    """
    problems = [_unknown_problem(key) for key in unknown or []]
    if problem := stage_problem(stage):
        problems.append(f"stage {stage!r}: {problem}")
    problems += _tag_problems(stage, default_tags)
    if restore_from is not None and not re.fullmatch(r"(rds:)?[A-Za-z][A-Za-z0-9-]*", restore_from):
        problems.append(f"{RESTORE_FROM_VARIABLE} is {restore_from!r}: a snapshot's name is wanted, or none")

    groups: dict[str, Any] = {}
    for name, group in GROUPS.items():
        try:
            groups[name] = group.model_validate(_typed(group, values))
        except ValidationError as error:
            problems += [_field_problem(group, values, dict(detail)) for detail in error.errors()]
    if not problems:
        settings = Settings(stage=stage, restore_from=restore_from, **groups)
        problems = _contradictions(settings)
        if not problems:
            return settings
    raise SettingsError("\n".join([f"Stage {stage} cannot be described:", *(f"  {problem}" for problem in problems)]))


def _typed(group: type[_Group], values: Mapping[str, str]) -> dict[str, Any]:
    """The texts of a group; lists are read as JSON."""
    typed: dict[str, Any] = {}
    for name, field in group.model_fields.items():
        key = field.alias or name
        if key not in values:
            continue
        if isinstance(field.default, tuple):
            try:
                typed[key] = json.loads(values[key])
            except ValueError:
                typed[key] = values[key]  # refused by the model, with the text in the message
        else:
            typed[key] = values[key]
    return typed


def _field_problem(group: type[_Group], values: Mapping[str, str], detail: Mapping[str, Any]) -> str:
    key = str(detail["loc"][0])
    description = next(field.description for name, field in group.model_fields.items() if (field.alias or name) == key)
    if detail["type"] == "missing":
        return f"{PROJECT}:{key} is not set ({description}): `pulumi config set {key} <value>`"
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"{PROJECT}:{key} is {values[key]!r}: {message} ({description})"


def _unknown_keys() -> list[str]:
    """Keys of our namespace that no setting has: a switch that is spelt wrong must not silently stay as it is."""
    known = setting_keys()
    configured = {**pulumi.runtime.config.get_config_env(), **pulumi.runtime.config.CONFIG.get()}
    ours = (key.removeprefix(f"{PROJECT}:") for key in configured if key.startswith(f"{PROJECT}:"))
    return sorted(key for key in ours if key not in known)


def _unknown_problem(key: str) -> str:
    near = difflib.get_close_matches(key, setting_keys(), n=1)
    return f"{PROJECT}:{key} is no setting" + (f": do you mean {near[0]}?" if near else "; Pulumi.yaml lists them")


def _tag_problems(stage: str, default_tags: str | None) -> list[str]:
    wanted = {"Project": PROJECT, "Stage": stage, "ManagedBy": "pulumi"}
    try:
        tags = json.loads(default_tags or "{}").get("tags", {})
    except (ValueError, AttributeError):
        tags = {}
    return [
        f"aws:defaultTags: tag {tag} is {tags.get(tag)!r}, {value!r} is wanted: "
        f"`pulumi config set --path aws:defaultTags.tags.{tag} {value}`"
        for tag, value in wanted.items()
        if tags.get(tag) != value
    ]


def _contradictions(settings: Settings) -> list[str]:
    queues, api = settings.queues, settings.api
    problems = [
        *switch_problems(compute=settings.switches.compute_enabled, data=settings.switches.data_enabled),
        *concurrency_problems(
            worker=queues.worker_max_concurrency,
            tickets=queues.tickets_max_concurrency,
            account=queues.account_concurrency,
        ),
        *exposure_problems(allowed_cidrs=settings.site.allowed_cidrs, certificate_arn=settings.site.certificate_arn),
        *alias_problems(hosted_zone_id=settings.site.hosted_zone_id, public_url=settings.site.public_url),
        *fargate_problems(cpu=api.api_cpu, memory_mib=api.api_memory_mib),
        *scaling_problems(minimum=api.api_min_tasks, maximum=api.api_max_tasks),
    ]
    if settings.purpose.production:
        problems += production_problems(_by_key(settings))
    return problems


def _by_key(settings: Settings) -> dict[str, Any]:
    """Every setting under its key in the stage file."""
    return {key: value for name in GROUPS for key, value in getattr(settings, name).model_dump(by_alias=True).items()}
