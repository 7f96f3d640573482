"""The time on the door: a moment as the clock at the venue shows it."""

from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones


def local_start(moment: datetime, time_zone: str) -> str:
    """``moment`` in ``time_zone`` with its UTC offset, to the second: ``2026-12-31T20:00:00-08:00``."""
    return moment.astimezone(zone(time_zone)).isoformat(timespec="seconds")


def moment_at(local: datetime, time_zone: str) -> datetime:
    """The moment at which clocks in ``time_zone`` show ``local``; one that has its own offset is taken as it is.

    An hour that comes twice (clocks go back) means the first. Raises ValueError for one that never comes (clocks go
    forward), and for no such zone.
    """
    there = zone(time_zone)
    if local.tzinfo is not None:
        return local
    moment = local.replace(tzinfo=there)
    if moment.astimezone(UTC).astimezone(there).replace(tzinfo=None) != local:
        raise ValueError(f"clocks in {time_zone} never show {local.isoformat()}: they go forward over it")
    return moment


def start_moment(local: datetime, time_zone: str) -> datetime:
    """As ``moment_at``; an offset must be the one that clocks in ``time_zone`` have then. It says which one is meant of
    an hour that comes twice."""
    moment = moment_at(local, time_zone)
    if local.tzinfo is not None and local.utcoffset() != moment.astimezone(zone(time_zone)).utcoffset():
        raise ValueError(f"clocks in {time_zone} have another UTC offset then; leave it out")
    return moment


@cache
def known_zones() -> frozenset[str]:
    """The IANA zones that an event may be in: those that mean the same on every machine."""
    return frozenset(available_timezones() - {"Factory", "localtime", "posixrules"})


@cache
def zone(name: str) -> ZoneInfo:
    """The IANA zone ``name``. Raises ValueError if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ValueError(f"{name!r} is no IANA time zone") from error
