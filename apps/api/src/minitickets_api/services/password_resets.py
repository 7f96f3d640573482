"""Passwords that were forgotten: a token by mail sets a new one, once, within an hour.

Only the token's hash is kept, but for its way to the mail: the message in the outbox holds it until that is sent.
"""

import hashlib
import logging
import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from minitickets_api.database import connection, transact
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.accounts import User
from minitickets_api.services.passwords import Passwords
from minitickets_contracts.messages import Customer, PasswordResetRequested

LIFETIME = timedelta(hours=1)
_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes in base64url

# An address without an account leaves a row, too, so that its transaction takes as long.
_REQUEST = """
with reset as (
    insert into password_resets (token_hash, user_id, outbox_id, created_at, expires_at) values ($1, $2, $3, $4, $5)
)
insert into outbox (outbox_id, body, correlation_id, is_secret) select $3, $6, $7, true where $2::uuid is not null
"""
_FIND_UNUSED = """
select 1 from password_resets
where token_hash = $1 and user_id is not null and used_at is null and expires_at > now()
"""
_FIND_OWNER = "select user_id from password_resets where token_hash = $1"
# Before the token is looked at: whoever resets the same account waits here, and whoever logs in to it (sessions.py).
_LOCK_ACCOUNT = "select password_hash from users where user_id = $1 for update"
_USE = "update password_resets set used_at = now() where token_hash = $1 and used_at is null and expires_at > now()"
_log = logging.getLogger(__name__)


class PasswordResets:
    """The table of resets. Its messages are not announced to the relay, which looks by itself: when a reply comes tells
    nothing of whether there was something to send."""

    def __init__(self, *, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def request(self, *, email: str, account: User | None, correlation_id: str) -> None:
        """Have a token mailed to ``account``; for None, the same work without a mail. ``email`` is normalised."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        outbox_id = uuid4()
        now = datetime.now(UTC)
        customer = account or User(user_id=str(uuid4()), email=email, name="Nobody", is_organiser=False)
        message = PasswordResetRequested(
            message_id=str(outbox_id),
            correlation_id=correlation_id,
            occurred_at=now.isoformat(),
            customer=Customer(user_id=customer.user_id, email=customer.email, name=customer.name),
            token=token,
            expires_at=(now + LIFETIME).isoformat(),
        )
        async with connection(self._pool) as database:
            await database.execute(
                _REQUEST,
                _digest(token),
                UUID(account.user_id) if account else None,
                outbox_id,
                now,
                now + LIFETIME,
                message.to_json(),
                correlation_id,
            )

    async def use(self, *, token: str, password: str, passwords: Passwords) -> None:
        """Set ``password``; every session and every other token of the account ends.

        Raises Refusal: BAD_REQUEST for a token that is unknown, used or expired (one answer for all), and for what is
        no password; SERVICE_UNAVAILABLE. The token is used up only if the password was set.
        """
        digest = _digest(token)
        # Before the hash, which is dear: nobody without a token may have it made.
        if not _TOKEN.fullmatch(token) or not await self._is_usable(digest):
            raise _refusal()
        password_hash = await passwords.hash(password)
        await transact(self._pool, lambda database: _set(database, digest, password_hash))

    async def _is_usable(self, digest: bytes) -> bool:
        async with connection(self._pool) as database:
            return await database.fetchval(_FIND_UNUSED, digest) is not None


async def _set(database: Any, digest: bytes, password_hash: str) -> None:
    user_id = await database.fetchval(_FIND_OWNER, digest)
    if user_id is None:
        raise _refusal()
    # Salted, so nobody else's: an attempt before this one, whose reply was lost, has set it.
    if await database.fetchval(_LOCK_ACCOUNT, user_id) == password_hash:
        return
    if await database.execute(_USE, digest) != "UPDATE 1":
        raise _refusal()
    await database.execute("update users set password_hash = $2 where user_id = $1", user_id, password_hash)
    await database.execute("update password_resets set used_at = now() where user_id = $1 and used_at is null", user_id)
    await database.execute("delete from sessions where user_id = $1", user_id)
    _log.info("a password was reset", extra={"userId": str(user_id)})


def _refusal() -> Refusal:
    return Refusal(
        Code.BAD_REQUEST, "This link has been used, or it is older than an hour. Ask for a new one.", reason="token"
    )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
