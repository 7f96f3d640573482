"""The seats of an event in the database. The caller has locked the event's row, as everybody does who books them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from minitickets_api.refusals import Code, wrong_field

_NAMED_SEATS = 10  # in the text of a refusal; its details name all

_SOLD_OUTSIDE = """
select seat from booked_seats join seats using (event_id, seat)
where event_id = $1 and seat not in (select unnest($2::text[])) order by position, seat
"""
_DELETE_OUTSIDE = "delete from seats where event_id = $1 and seat not in (select unnest($2::text[]))"
_PUT = """
insert into seats (event_id, seat, position, aisle_after)
select $1, seat, place, aisle_after
from unnest($2::text[], $3::boolean[]) with ordinality as named(seat, aisle_after, place)
on conflict (event_id, seat) do update set position = excluded.position, aisle_after = excluded.aisle_after
    where (seats.position, seats.aisle_after) <> (excluded.position, excluded.aisle_after)
"""


async def put_seats(database: Any, event_id: UUID, seats: Sequence[tuple[str, bool]]) -> None:
    """Add ``seats``, each a name and whether an aisle comes after it, in the order in which people read them; those
    that are there take their new places."""
    await database.execute(_PUT, event_id, [name for name, _ in seats], [aisle for _, aisle in seats])


async def replace_seats(database: Any, event_id: UUID, seats: Sequence[tuple[str, bool]]) -> None:
    """Leave ``seats`` alone. Raises Refusal (CONFLICT; ``seats`` in its details) if one that is sold would go."""
    names = [name for name, _ in seats]
    sold = [row["seat"] for row in await database.fetch(_SOLD_OUTSIDE, event_id, names)]
    if sold:
        more = f" and {len(sold) - _NAMED_SEATS} more" if len(sold) > _NAMED_SEATS else ""
        problem = f"must keep the seats that are sold: {', '.join(sold[:_NAMED_SEATS])}{more}"
        raise wrong_field("rows", problem, code=Code.CONFLICT, seats=sold)
    await database.execute(_DELETE_OUTSIDE, event_id, names)
    await put_seats(database, event_id, seats)
