"""Rows of the outbox that one relay has taken for one publication, under a lease."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import asyncpg

from minitickets_api.database import acquired, until_decided
from minitickets_api.services.topic import MAX_BYTES, MAX_MESSAGES

# No cursor by id or time: transactions commit in another order than they begin.
CLAIM = """
with due as (
    select outbox_id, octet_length(body) as bytes, next_attempt_at, created_at
    from outbox
    where sent_at is null and parked_at is null and next_attempt_at <= now()
        and (lease_until is null or lease_until < now())
    order by next_attempt_at, created_at
    limit $3
    for update skip locked
), packed as (
    select outbox_id,
        sum(bytes) over places as bytes_so_far,
        row_number() over places as place
    from due
    window places as (order by next_attempt_at, created_at, outbox_id rows unbounded preceding)
)
update outbox
set owner = $1, lease_until = clock_timestamp() + $2::interval, attempts = attempts + 1
from packed
where outbox.outbox_id = packed.outbox_id and (bytes_so_far <= $4 or place = 1)
returning outbox.outbox_id, booking_id, body, correlation_id, attempts
"""


@dataclass(frozen=True, kw_only=True)
class ClaimedRow:
    """``attempts`` counts this one."""

    message_id: UUID
    booking_id: UUID | None
    body: str
    correlation_id: str
    attempts: int


@dataclass(frozen=True, kw_only=True)
class Claim:
    """At most one PublishBatch. ``owner`` is drawn for each claim: whoever held an earlier one cannot mark its rows."""

    owner: UUID
    rows: tuple[ClaimedRow, ...]


@dataclass(frozen=True, kw_only=True)
class Delay:
    """``seconds`` until the next attempt."""

    message_id: UUID
    seconds: float
    reason: str


class OutboxClaims:
    """The outbox as a relay sees it. Raises asyncpg's errors."""

    def __init__(self, *, pool: asyncpg.Pool, lease: timedelta) -> None:
        self._pool = pool
        self._lease = lease

    async def take(self) -> Claim:
        """Rows that are due and free, the longest due first; possibly none."""
        owner = uuid.uuid4()
        async with acquired(self._pool) as connection:
            found = await connection.fetch(CLAIM, owner, self._lease, MAX_MESSAGES, MAX_BYTES)
        rows = tuple(
            ClaimedRow(
                message_id=row["outbox_id"],
                booking_id=row["booking_id"],
                body=row["body"],
                correlation_id=row["correlation_id"],
                attempts=row["attempts"],
            )
            for row in found
        )
        return Claim(owner=owner, rows=rows)

    async def mark_sent(self, claim: Claim, message_ids: Sequence[UUID]) -> None:
        """They are published, and the secrets among them forgotten. Rows that were claimed anew meanwhile are left to
        their new owner."""
        await self._update(
            "update outbox set sent_at = clock_timestamp(), owner = null, lease_until = null, last_error = null,"
            " body = case when is_secret then '' else body end"
            " where outbox_id = any($1::uuid[]) and owner = $2 and sent_at is null",
            list(message_ids),
            claim.owner,
        )

    async def mark_delayed(self, claim: Claim, delays: Sequence[Delay]) -> None:
        """They are free again, each after its own time."""
        await self._update(
            "update outbox set owner = null, lease_until = null, last_error = delayed.reason,"
            " next_attempt_at = clock_timestamp() + make_interval(secs => delayed.seconds)"
            " from unnest($1::uuid[], $2::float8[], $3::text[]) as delayed(outbox_id, seconds, reason)"
            " where outbox.outbox_id = delayed.outbox_id and owner = $4 and sent_at is null",
            [delay.message_id for delay in delays],
            [delay.seconds for delay in delays],
            [delay.reason for delay in delays],
            claim.owner,
        )

    async def park(self, claim: Claim, message_id: UUID, reason: str) -> None:
        """It can never be published: nobody takes it again until an operator has seen to it."""
        await self._update(
            "update outbox set parked_at = clock_timestamp(), owner = null, lease_until = null, last_error = $3"
            " where outbox_id = $1 and owner = $2 and sent_at is null",
            message_id,
            claim.owner,
            reason,
        )

    async def release(self, claim: Claim) -> None:
        """Whatever of it is not marked is free at once; the attempt does not count."""
        await self._update(
            "update outbox set owner = null, lease_until = null, attempts = greatest(attempts - 1, 0)"
            " where outbox_id = any($1::uuid[]) and owner = $2 and sent_at is null",
            [row.message_id for row in claim.rows],
            claim.owner,
        )

    async def _update(self, statement: str, *arguments: object) -> None:
        async def attempt() -> None:
            async with acquired(self._pool) as connection:
                await connection.execute(statement, *arguments)

        await until_decided(attempt)
