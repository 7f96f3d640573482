"""Who may open an organiser's page, and of which event."""

from minitickets_api.database import connection
from minitickets_api.organisers import require_organiser, require_own_event
from minitickets_api.pages.forms import read_input
from minitickets_api.pages.visit import Visit
from minitickets_api.procedures import events
from minitickets_api.procedures.events import EventWithSeats
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.accounts import User


async def organiser(visit: Visit) -> User:
    """Who asks. Raises Refusal: UNAUTHORIZED for nobody, FORBIDDEN with what to ask for, for who is no organiser."""
    person = await visit.call.require_session()
    if not person.is_organiser:
        raise Refusal(
            Code.FORBIDDEN,
            "These pages are for organisers. To become one, ask whoever runs this site to make your account"
            f" ({person.email}) an organiser's.",
        )
    return person


async def own_event(visit: Visit) -> EventWithSeats:
    """The event of the path. Raises Refusal as ``organiser`` does, and NOT_FOUND for one that is not theirs."""
    organiser_id = require_organiser(await organiser(visit))
    event_id = visit.id("eventId")
    async with connection(visit.call.services.database.pool) as database:
        await require_own_event(database, organiser_id=organiser_id, event_id=event_id)
    return await events.by_id(visit.call, read_input(events.EventId, {"eventId": event_id}))
