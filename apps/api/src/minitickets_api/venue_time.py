"""The time on the door: a moment as the clock at the venue shows it."""

from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


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


@cache
def zone(name: str) -> ZoneInfo:
    """The IANA zone ``name``. Raises ValueError if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ValueError(f"{name!r} is no IANA time zone") from error
