"""Who may act as an organiser, and on which events."""

from typing import Any
from uuid import UUID

from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.accounts import User


def require_organiser(user: User) -> UUID:
    """The user's id. Raises Refusal (FORBIDDEN) for anybody who is no organiser."""
    if not user.is_organiser:
        raise Refusal(
            Code.FORBIDDEN,
            "Only organisers can do this. Ask whoever runs this site to make your account an organiser's.",
        )
    return UUID(user.user_id)


async def require_own_event(database: Any, *, organiser_id: UUID, event_id: str) -> None:
    """Raises Refusal (NOT_FOUND) unless the event is there and belongs to the organiser."""
    owned = await database.fetchval(
        "select 1 from events where event_id = $1 and organiser_id = $2", event_id, organiser_id
    )
    if owned is None:
        raise no_such_event()


def no_such_event() -> Refusal:
    """What is said of an event that is not there, and of one that is somebody else's."""
    return Refusal(Code.NOT_FOUND, "There is no such event of yours.")
