"""Who is signed in: opaque random tokens, of which only a hash is kept."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg
from starlette.datastructures import Headers

from minitickets_api.database import connection
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.accounts import User

LIFETIME = timedelta(days=30)
_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes in base64url


# The lock waits for whoever sets another password (password_resets.py), and then looks at the hash again.
_BEGIN = """
with account as (
    select user_id from users where user_id = $2 and password_hash = $5 for key share
), ended as (
    delete from sessions where token_hash = $1 or (user_id = $2 and expires_at < now())
)
insert into sessions (token_hash, user_id, expires_at) select $3, user_id, now() + $4 from account returning true
"""


@dataclass(frozen=True, kw_only=True)
class SessionCookie:
    """The cookie that carries the token. Over https it is bound to the host and never sent in the clear."""

    is_https: bool

    @property
    def name(self) -> str:
        """``__Host-`` makes browsers refuse one that another subdomain, or plain http, tries to set."""
        return "__Host-session" if self.is_https else "session"

    def read(self, headers: Headers) -> str | None:
        """The token that a request carries; None if there is none of the right form."""
        for cookie in "; ".join(headers.getlist("cookie")).split(";"):
            name, _, value = cookie.strip().partition("=")
            if name == self.name and _TOKEN.fullmatch(value):
                return value
        return None

    def set(self, token: str) -> str:
        """The value of a Set-Cookie header that signs a browser in."""
        return self._header(token, int(LIFETIME.total_seconds()))

    def clear(self) -> str:
        """The value of a Set-Cookie header that makes a browser forget."""
        return self._header("", 0)

    def _header(self, value: str, seconds: int) -> str:
        secure = "; Secure" if self.is_https else ""
        return f"{self.name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


class Sessions:
    """The table of sessions. Those made before ``void_before`` count for nothing: the database was rewound then."""

    def __init__(self, *, pool: asyncpg.Pool, void_before: datetime | None) -> None:
        self._pool = pool
        self._void_before = void_before

    async def begin(self, *, user_id: str, password_hash: str, replaces: str | None) -> str:
        """A new session's token. The session of ``replaces`` ends with it, so that nobody keeps a planted one.

        ``password_hash`` is what the person's password was compared with. Raises Refusal (UNAUTHORIZED) if it holds no
        longer: a password that was set meanwhile has ended all sessions, and this one must not outlive it.
        """
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        async with connection(self._pool) as database:
            begun = await database.fetchval(
                _BEGIN, _digest(replaces or ""), user_id, _digest(token), LIFETIME, password_hash
            )
        if begun is None:
            raise Refusal(Code.UNAUTHORIZED, "The password was changed just now. Log in with the new one.")
        return token

    async def find(self, token: str) -> User | None:
        """Whose session it is; None for one that is unknown, expired, ended or void."""
        async with connection(self._pool) as database:
            row = await database.fetchrow(
                "select user_id, email, name, is_organiser from sessions join users using (user_id)"
                " where token_hash = $1 and expires_at > now()"
                " and ($2::timestamptz is null or sessions.created_at >= $2)",
                _digest(token),
                self._void_before,
            )
        if row is None:
            return None
        return User(user_id=str(row["user_id"]), email=row["email"], name=row["name"], is_organiser=row["is_organiser"])

    async def end(self, token: str) -> None:
        """End the session, if there is one."""
        async with connection(self._pool) as database:
            await database.execute("delete from sessions where token_hash = $1", _digest(token))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
