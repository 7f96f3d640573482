"""The time on the door: a moment as the clock at the venue shows it."""

from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def local_start(moment: datetime, time_zone: str) -> str:
    """``moment`` in ``time_zone`` with its UTC offset, to the second: ``2026-12-31T20:00:00-08:00``."""
    return moment.astimezone(zone(time_zone)).isoformat(timespec="seconds")


@cache
def zone(name: str) -> ZoneInfo:
    """The IANA zone ``name``. Raises ValueError if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ValueError(f"{name!r} is no IANA time zone") from error
