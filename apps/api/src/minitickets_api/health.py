"""Whether this process can serve."""

from dataclasses import dataclass

from minitickets_api.database import Database
from minitickets_api.services.outbox import OutboxRelay

REACHABLE_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Health:
    """What readiness depends on. SNS, Valkey, DynamoDB and S3 do not count: without them seats can still be booked."""

    database: Database
    relay: OutboxRelay

    async def problems(self) -> list[str]:
        """Why no request should come here; empty: nothing is in the way. Takes at most 2 s."""
        problems = []
        if self.database.password_refused:
            problems.append("the database refuses our password")
        if not await self.database.is_reachable(seconds=REACHABLE_SECONDS):
            problems.append("the database does not answer")
        if not self.relay.is_alive:
            problems.append("the outbox relay has ended")
        return problems
