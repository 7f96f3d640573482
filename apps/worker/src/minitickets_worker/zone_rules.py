"""A time zone's rules around a date, as a calendar file carries them (VTIMEZONE)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from icalendar import Timezone, TimezoneDaylight, TimezoneStandard

_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"})
# A year more on each side must exist, in every zone.
_FIRST_YEAR, _LAST_YEAR = 3, 9997
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)


def zone_of(time_zone: str, start: datetime) -> tzinfo:
    """The zone in which a calendar shows ``start`` (aware) at its own local time and at its own moment.

    That is the IANA zone of that name; UTC itself for its names; and ``start``'s plain offset where this machine's
    zone data does not know the name, or does not put that offset to that local time (a rule that changed after one of
    the two was published, or the second of two equal times when clocks go back, which a calendar file cannot name).
    """
    local = start.replace(tzinfo=None)
    zone: tzinfo
    if time_zone in _UTC_NAMES:
        zone = UTC
    else:
        try:
            zone = ZoneInfo(time_zone)
        except (KeyError, ValueError, OSError):  # no such name; a file that is no zone; a folder
            return _offset_of(start)
    if not _FIRST_YEAR <= local.year <= _LAST_YEAR or local.replace(tzinfo=zone).utcoffset() != start.utcoffset():
        return _offset_of(start)
    return zone


def zone_name(zone: tzinfo) -> str:
    """The name under which a file speaks of ``zone``: ``Europe/Berlin``, or ``UTC+0130`` for a plain offset."""
    return zone.key if isinstance(zone, ZoneInfo) else str(zone).replace(":", "")


def zone_rules(zone: tzinfo, *, year: int) -> Timezone:
    """The VTIMEZONE of ``zone`` from the year before ``year`` to the year after it.

    Written out change by change. (``icalendar``'s own ``Timezone.from_tzinfo`` puts the spring change an hour late:
    RFC 5545 counts a change's local time by the offset before it.)
    """
    rules = Timezone()
    rules.add("tzid", zone_name(zone))
    for change in _changes_around(zone, year):
        observance = TimezoneDaylight() if change.daylight else TimezoneStandard()
        observance.add("dtstart", change.local)
        observance.add("tzname", change.name)
        observance.TZOFFSETFROM = change.before
        observance.TZOFFSETTO = change.after
        rules.add_component(observance)
    return rules


@dataclass(frozen=True, kw_only=True)
class _Change:
    """From ``local``, a local time by the offset ``before``, the offset ``after`` holds."""

    local: datetime
    before: timedelta
    after: timedelta
    name: str
    daylight: bool


# One event's mails come together, and looking through three years takes a millisecond of a whole processor.
@lru_cache(maxsize=32)
def _changes_around(zone: tzinfo, year: int) -> tuple[_Change, ...]:
    if not isinstance(zone, ZoneInfo):
        start = datetime(year, 1, 1, tzinfo=zone)
        return (_change(start, before=start.utcoffset() or timedelta()),)
    first, last = datetime(year - 1, 1, 1, tzinfo=UTC), datetime(year + 2, 1, 1, tzinfo=UTC)
    return (
        _change(first.astimezone(zone), before=_offset(first, zone)),
        *(
            _change(moment.astimezone(zone), before=_offset(moment - _SECOND, zone))
            for moment in _moments_of_change(zone, first, last)
        ),
    )


def _change(moment: datetime, *, before: timedelta) -> _Change:
    """What begins at ``moment``, which is in its zone."""
    after = moment.utcoffset() or timedelta()
    return _Change(
        local=moment.replace(tzinfo=None) + (before - after),
        before=before,
        after=after,
        name=moment.tzname() or "",
        daylight=(moment.dst() or timedelta()) > timedelta(),
    )


def _moments_of_change(zone: tzinfo, first: datetime, last: datetime) -> Iterator[datetime]:
    """The first seconds (UTC) of other offsets. No zone changes twice a day."""
    day = first
    while day < last:
        if _offset(day, zone) != _offset(day + _DAY, zone):
            earlier, later = day, day + _DAY
            while later - earlier > _SECOND:
                middle = (earlier + (later - earlier) / 2).replace(microsecond=0)
                if _offset(middle, zone) == _offset(day, zone):
                    earlier = middle
                else:
                    later = middle
            yield later
        day += _DAY


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _offset_of(start: datetime) -> tzinfo:
    zone = start.tzinfo
    if zone is None:
        raise ValueError("start: must carry its UTC offset")
    return zone
