"""Deletes what nobody needs any more."""

import asyncio
import logging
import random
from datetime import timedelta

import asyncpg

from minitickets_api.database import acquired

KEEP_SENT = timedelta(days=7)
# A client that asks again after that long has lost its patience, not its reply.
KEEP_IDEMPOTENCY_KEYS = timedelta(days=7)
EVERY_SECONDS = 3600.0
# Small enough that no statement holds its locks for long.
CHUNK = 1_000

_PURGE_OUTBOX = """
delete from outbox where outbox_id in (
    select outbox_id from outbox where sent_at < now() - $1::interval limit $2 for update skip locked
)
"""
_PURGE_KEYS = """
delete from idempotency_keys where (user_id, procedure, key) in (
    select user_id, procedure, key from idempotency_keys
    where created_at < now() - $1::interval limit $2 for update skip locked
)
"""
_PURGE_SESSIONS = """
delete from sessions where token_hash in (
    select token_hash from sessions where expires_at < now() - $1::interval limit $2 for update skip locked
)
"""
# A secret's body goes when it is sent; this is for what a task of an older version sent, and for what is parked or was
# never sent: its token has expired.
_FORGET_SECRETS = """
update outbox set body = '' from (
    select o.outbox_id from password_resets r join outbox o using (outbox_id)
    where o.body <> '' and o.sent_at is not null and r.created_at < now() - $1::interval
    limit $2 for update of o skip locked
) as sent where outbox.outbox_id = sent.outbox_id
"""
_PURGE_UNSENT_SECRETS = """
delete from outbox where outbox_id in (
    select o.outbox_id from password_resets r join outbox o using (outbox_id)
    where o.sent_at is null and (o.lease_until is null or o.lease_until < now()) and r.expires_at < now() - $1::interval
    limit $2 for update of o skip locked
)
"""
_PURGE_RESETS = """
delete from password_resets where token_hash in (
    select token_hash from password_resets where expires_at < now() - $1::interval limit $2 for update skip locked
)
"""
_PURGES = {
    "sent outbox rows": (_PURGE_OUTBOX, KEEP_SENT),
    "idempotency keys": (_PURGE_KEYS, KEEP_IDEMPOTENCY_KEYS),
    "expired sessions": (_PURGE_SESSIONS, timedelta(0)),
    "secrets that were sent": (_FORGET_SECRETS, timedelta(0)),
    "secrets that expired": (_PURGE_UNSENT_SECRETS, timedelta(0)),
    # Later than their messages, which are found through them.
    "password resets": (_PURGE_RESETS, timedelta(days=1)),
}

_log = logging.getLogger(__name__)


class Retention:
    """A running purge."""

    def __init__(self, *, pool: asyncpg.Pool, every_seconds: float) -> None:
        self._task = asyncio.get_running_loop().create_task(_purge_for_ever(pool, every_seconds), name="retention")

    async def stop(self) -> None:
        """End it; a chunk that is being deleted is rolled back."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def start_retention(*, pool: asyncpg.Pool, every_seconds: float = EVERY_SECONDS) -> Retention:
    """Purge in the background, about once in ``every_seconds``; several processes may do so side by side."""
    return Retention(pool=pool, every_seconds=every_seconds)


async def purge(pool: asyncpg.Pool) -> dict[str, int]:
    """Delete what is old enough, in chunks; how many of each. Raises asyncpg's errors."""
    purged = {}
    for name, (statement, age) in _PURGES.items():
        purged[name] = 0
        while True:
            async with acquired(pool) as connection:
                status: str = await connection.execute(statement, age, CHUNK)
            deleted = int(status.split()[-1])
            purged[name] += deleted
            if deleted < CHUNK:
                break
    return purged


async def _purge_for_ever(pool: asyncpg.Pool, every_seconds: float) -> None:
    while True:
        # Drawn, so that the processes of one deployment do not do it together.
        await asyncio.sleep(every_seconds * (0.5 + random.random()))  # noqa: S311 - a pause is no secret
        try:
            purged = await purge(pool)
        except Exception as error:  # noqa: BLE001 - the next turn tries again
            _log.warning("purging failed: %s", type(error).__name__)
        else:
            if any(purged.values()):
                _log.info("purged %s", ", ".join(f"{count} {name}" for name, count in purged.items()))
