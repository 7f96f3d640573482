"""Pages of a list that is ordered by a time and then an id: the next page begins after the last row of the one before,
whatever came or went meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from minitickets_api import cursors
from minitickets_api.refusals import Code, Refusal

MAX_PAGE = 100


@dataclass(frozen=True, kw_only=True)
class Keyset:
    """The list ``query`` as ``owner`` sees it, by its columns ``time`` and ``id``.

    A cursor of another list or owner is refused, so ``owner`` names all that decides which rows there are.
    """

    query: str
    owner: str
    time: str
    id: str

    def position(self, cursor: str | None, *, limit: int) -> tuple[datetime | None, UUID | None]:
        """Time and id of the row after which the page begins; None and None for the first page.

        Raises Refusal (BAD_REQUEST) for a cursor of another list, and for a ``limit`` that is not 1 to 100.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise Refusal(Code.BAD_REQUEST, f"limit: must be from 1 to {MAX_PAGE}")
        if cursor is None:
            return None, None
        time, id_ = cursors.decode(cursor, query=self.query, owner=self.owner, length=2)
        return cursors.position_time(time), cursors.position_uuid(id_)

    def page(self, rows: Sequence[Any], *, limit: int) -> tuple[Sequence[Any], str | None]:
        """The page's rows and the next page's cursor, None on the last. The query asked for ``limit`` + 1 rows."""
        if len(rows) <= limit:
            return rows, None
        last = rows[limit - 1]
        position = [last[self.time].isoformat(), str(last[self.id])]
        return rows[:limit], cursors.encode(query=self.query, owner=self.owner, position=position)
