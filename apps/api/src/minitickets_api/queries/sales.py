"""How an event sells."""

from dataclasses import dataclass
from datetime import date
from uuid import UUID

import asyncpg

from minitickets_api.database import connection
from minitickets_api.organisers import no_such_event


@dataclass(frozen=True, kw_only=True)
class SalesDay:
    """What was booked on a day of the venue's calendar and not cancelled since; money in minor units."""

    day: date
    bookings: int
    seats: int
    revenue_minor: int


@dataclass(frozen=True, kw_only=True)
class Sales:
    """``sold`` and ``left`` are seats; ``days`` are those with bookings, in order, and add up to the rest."""

    event_id: str
    sold: int
    left: int
    bookings: int
    cancelled_bookings: int
    revenue_minor: int
    currency: str
    days: tuple[SalesDay, ...]


_EVENT = """
select currency, time_zone,
    (select count(*) from seats s where s.event_id = e.event_id) as seats_total,
    (select count(*) from bookings b where b.event_id = e.event_id and cancelled_at is not null) as cancelled_bookings
from events e where event_id = $1 and organiser_id = $2
"""
_DAYS = """
select (created_at at time zone $2)::date as day, count(*) as bookings, sum(cardinality(seats)) as seats,
    sum(total_minor)::bigint as revenue_minor
from bookings where event_id = $1 and cancelled_at is null group by 1 order by 1
"""


async def sales(pool: asyncpg.Pool, *, organiser_id: UUID, event_id: str) -> Sales:
    """The sales of the organiser's event. Raises Refusal: NOT_FOUND, SERVICE_UNAVAILABLE."""
    # One snapshot, so that the sums and the days agree.
    async with connection(pool) as database, database.transaction(isolation="repeatable_read", readonly=True):
        event = await database.fetchrow(_EVENT, event_id, organiser_id)
        if event is None:
            raise no_such_event()
        days = tuple(SalesDay(**dict(row)) for row in await database.fetch(_DAYS, event_id, event["time_zone"]))
    sold = sum(day.seats for day in days)
    return Sales(
        event_id=event_id,
        sold=sold,
        left=event["seats_total"] - sold,
        bookings=sum(day.bookings for day in days),
        cancelled_bookings=event["cancelled_bookings"],
        revenue_minor=sum(day.revenue_minor for day in days),
        currency=event["currency"],
        days=days,
    )
