"""What AWS, or prudence, demands of a stage's settings: rules on one value, and rules on how they fit together.

A rule on one value returns it, or raises ValueError that says what is allowed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

# What CloudWatch Logs takes for retention, in days, up to two years.
LOG_RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731)

# Memory in MiB that Fargate takes with each CPU size (1024 = one core).
FARGATE_MEMORY_MIB: Mapping[int, tuple[int, ...]] = {
    256: (512, 1024, 2048),
    512: tuple(range(1024, 4096 + 1, 1024)),
    1024: tuple(range(2048, 8192 + 1, 1024)),
    2048: tuple(range(4096, 16384 + 1, 1024)),
    4096: tuple(range(8192, 30720 + 1, 1024)),
}

# Without a certificate passwords travel in the clear: only networks that somebody can answer for may come in.
WIDEST_PREFIX_WITHOUT_CERTIFICATE = 8


def log_retention(days: int) -> int:
    """Days that CloudWatch Logs keeps a group."""
    if days not in LOG_RETENTION_DAYS:
        raise ValueError(f"CloudWatch Logs takes {_listed(LOG_RETENTION_DAYS)}")
    return days


def origin(url: str) -> str:
    """An origin as browsers send it: scheme, host, perhaps a port."""
    if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?", url):
        raise ValueError("an origin is wanted, such as https://tickets.example.org, without a final slash or path")
    if re.fullmatch(r"http://.*:80|https://.*:443", url):
        raise ValueError("browsers leave the usual port out, so the API would take every change for another site's")
    return url


def cidr(text: str) -> str:
    """An IPv4 network; the VPC has no IPv6."""
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"{text} is no IPv4 network such as 203.0.113.0/24 ({error})") from error
    return str(network)


def recovery_days(days: int) -> int:
    """Days that Secrets Manager keeps a deleted secret."""
    if days != 0 and not 7 <= days <= 30:
        raise ValueError("Secrets Manager takes 0 (delete at once) or 7 to 30 days")
    return days


def absent_if_empty(text: str | None) -> str | None:
    """None for an empty text: the command line cannot leave a declared key out, so its default is empty."""
    return text or None


def switch_problems(*, compute: bool, data: bool) -> Iterator[str]:
    """The API cannot run without its database."""
    if compute and not data:
        yield (
            "minitickets:computeEnabled is true and minitickets:dataEnabled is false: the API cannot run without its "
            "database. Set dataEnabled to true, or computeEnabled to false"
        )


def concurrency_problems(*, worker: int, tickets: int, account: int) -> Iterator[str]:
    """All mappings together must fit into the account's quota, or one starves the others."""
    if worker + tickets > account:
        yield (
            f"minitickets:workerMaxConcurrency {worker} + ticketsMaxConcurrency {tickets} = {worker + tickets}, more "
            f"than accountConcurrency {account}: lower one, or have AWS raise the quota"
        )


def exposure_problems(*, allowed_cidrs: Sequence[str], certificate_arn: str | None) -> Iterator[str]:
    """Without TLS nobody may open the door to the world."""
    for network in allowed_cidrs:
        if certificate_arn is None and IPv4Network(network).prefixlen < WIDEST_PREFIX_WITHOUT_CERTIFICATE:
            yield (
                f"minitickets:allowedCidrs has {network}, and minitickets:certificateArn is not set: without TLS "
                f"passwords travel in the clear. Set a certificate, or allow no network wider than /"
                f"{WIDEST_PREFIX_WITHOUT_CERTIFICATE}"
            )


def alias_problems(*, hosted_zone_id: str | None, public_url: str | None) -> Iterator[str]:
    """A record needs a name."""
    if hosted_zone_id is not None and public_url is None:
        yield (
            f"minitickets:hostedZoneId is {hosted_zone_id!r}, and minitickets:publicUrl is not set: the record in that "
            "zone is named as its host. Set publicUrl, or leave hostedZoneId out"
        )


def fargate_problems(*, cpu: int, memory_mib: int) -> Iterator[str]:
    """Fargate sells CPU and memory in certain pairs only."""
    if cpu not in FARGATE_MEMORY_MIB:
        yield f"minitickets:apiCpu is {cpu}: Fargate takes {_listed(FARGATE_MEMORY_MIB)}"
    elif memory_mib not in FARGATE_MEMORY_MIB[cpu]:
        yield (
            f"minitickets:apiMemoryMib is {memory_mib}: with apiCpu {cpu} Fargate takes "
            f"{_listed(FARGATE_MEMORY_MIB[cpu])}"
        )


def scaling_problems(*, minimum: int, maximum: int) -> Iterator[str]:
    """The API scales between two numbers of tasks; equal ones mean that it does not."""
    if maximum < minimum:
        yield (
            f"minitickets:apiMaxTasks is {maximum}, less than apiMinTasks {minimum}: set it to {minimum} for a fixed "
            "number of tasks, or higher to scale"
        )


@dataclass(frozen=True, kw_only=True)
class _Demand:
    """What a production stage's setting must be, in code and in words, and why."""

    key: str
    met: Callable[[Any], bool]
    allowed: str
    why: str


def _is_set(value: Any) -> bool:
    return value is not None


def _at_least(least: int) -> Callable[[Any], bool]:
    return lambda value: bool(value >= least)


_PRODUCTION = (
    _Demand(key="certificateArn", met=_is_set, allowed="a certificate", why="passwords and tickets travel"),
    _Demand(
        key="publicUrl",
        met=lambda value: str(value).startswith("https://"),
        allowed="an https:// origin",
        why="mails link to it",
    ),
    _Demand(key="alarmEmail", met=_is_set, allowed="an address", why="somebody must hear when bookings stop"),
    _Demand(key="alarmKey", met=bool, allowed="true", why="what stops bookings is our business only"),
    _Demand(
        key="secretRotationReminderDays",
        met=lambda value: 1 <= value <= 90,
        allowed="1 to 90",
        why="keys that nothing rotates are forgotten",
    ),
    _Demand(key="natGateways", met=_at_least(1), allowed="1 or 2", why="tasks must have no public address"),
    _Demand(key="apiMinTasks", met=_at_least(2), allowed="at least 2", why="a zone may fail"),
    _Demand(key="databaseMultiAz", met=bool, allowed="true", why="a zone may fail"),
    _Demand(key="cacheReplicas", met=_at_least(1), allowed="at least 1", why="a zone may fail"),
    _Demand(key="databaseBackupDays", met=_at_least(7), allowed="7 to 35", why="a mistake is found days later"),
    _Demand(
        key="backupPlanDays",
        met=_at_least(7),
        allowed="7 or more",
        why="what RDS keeps by itself goes with the instance",
    ),
    _Demand(key="pointInTimeRecovery", met=bool, allowed="true", why="a mistake is found days later"),
    _Demand(key="deletionProtection", met=bool, allowed="true", why="bookings and tickets must outlive a slip"),
    _Demand(key="forceDestroy", met=lambda value: not value, allowed="false", why="tickets must outlive a slip"),
    _Demand(key="secretRecoveryDays", met=_at_least(7), allowed="7 to 30", why="lost keys void every ticket"),
    _Demand(key="logRetentionDays", met=_at_least(365), allowed="365 or more", why="evidence is asked for late"),
)


def production_problems(values: Mapping[str, Any]) -> Iterator[str]:
    """What a stage with real customers must not have; ``values`` are all settings by key.

    To take a production stage down, set ``production`` to false first: two edits that a reviewer sees.
    """
    for demand in _PRODUCTION:
        value = values[demand.key]
        if not demand.met(value):
            shown = "not set" if value is None else repr(value).lower() if isinstance(value, bool) else repr(value)
            yield (
                f"minitickets:{demand.key} is {shown}, and minitickets:production is true: it must be {demand.allowed} "
                f"({demand.why})"
            )


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
