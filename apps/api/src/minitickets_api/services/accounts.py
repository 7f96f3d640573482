"""People's accounts."""

import re
import stringprep
import unicodedata
from dataclasses import dataclass
from uuid import uuid4

import asyncpg

from minitickets_api.database import connection
from minitickets_api.readable_text import readable
from minitickets_api.refusals import Code, Refusal
from minitickets_contracts import fields

MAX_EMAIL_CHARACTERS = 254  # RFC 5321's path less its brackets
MAX_NAME_CHARACTERS = 200  # what a message may carry (contracts)
_LOCAL_PART = re.compile(r"[^\s@<>()\[\]\\,;:\"]{1,64}")


@dataclass(frozen=True, kw_only=True)
class User:
    """Somebody who is signed in. ``email`` is lower case."""

    user_id: str
    email: str
    name: str
    is_organiser: bool


@dataclass(frozen=True, kw_only=True)
class Account:
    """A user with what their password is compared with."""

    user: User
    password_hash: str


def normalise_email(text: str) -> str:
    """The one spelling under which an address is kept: trimmed, lower case, its domain in ordinary letters and dots.

    Raises ValueError for what is no address, or could not be carried by a message.
    """
    local, _, domain = text.strip().lower().rpartition("@")
    # Wide letters and ideographic full stops lead to the same mailbox, so they must not make a second account.
    domain = unicodedata.normalize("NFKC", domain).replace("\u3002", ".")
    email = f"{local}@{domain}"
    try:
        fields.text("email", email, longest=MAX_EMAIL_CHARACTERS)
        # The codec refuses empty and overlong labels; it is what the domain will be written in on the wire.
        encoded = domain.encode("idna")
    except (fields.ContractError, UnicodeError):
        raise ValueError("must be a mail address such as ada@example.org") from None
    labels = encoded.split(b".")
    if (
        not _LOCAL_PART.fullmatch(local)
        # What nobody sees, and the codec leaves out, would make it look like another account's.
        or not email.isprintable()
        or any(map(stringprep.in_table_b1, email))
        or local.startswith(".")
        or local.endswith(".")
        or ".." in local
        or len(labels) < 2
        or not all(re.fullmatch(rb"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?", label) for label in labels)
    ):
        raise ValueError("must be a mail address such as ada@example.org")
    return email


def normalise_name(text: str) -> str:
    """A person's name, trimmed. Raises ValueError for one that a message could not carry, or that nobody could read."""
    return readable(text, longest=MAX_NAME_CHARACTERS)


class Accounts:
    """The table of users."""

    def __init__(self, *, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def create(self, *, email: str, name: str, password_hash: str) -> User:
        """A new customer. Raises Refusal (CONFLICT) if the address is taken."""
        user_id = uuid4()
        async with connection(self._pool) as database:
            made = await database.fetchval(
                "insert into users (user_id, email, name, password_hash) values ($1, $2, $3, $4)"
                " on conflict do nothing returning user_id",
                user_id,
                email,
                name,
                password_hash,
            )
        if made is None:
            raise Refusal(Code.CONFLICT, "There is an account with this address already. Log in instead.")
        return User(user_id=str(user_id), email=email, name=name, is_organiser=False)

    async def find(self, *, email: str) -> Account | None:
        """The account with this address."""
        async with connection(self._pool) as database:
            row = await database.fetchrow(
                "select user_id, email, name, is_organiser, password_hash from users where lower(email) = $1", email
            )
        if row is None:
            return None
        user = User(user_id=str(row["user_id"]), email=row["email"], name=row["name"], is_organiser=row["is_organiser"])
        return Account(user=user, password_hash=row["password_hash"])

    async def replace_hash(self, *, user_id: str, old: str, new: str) -> None:
        """Keep ``new`` instead of ``old``, unless the password was changed meanwhile."""
        async with connection(self._pool) as database:
            await database.execute(
                "update users set password_hash = $3 where user_id = $1 and password_hash = $2", user_id, old, new
            )
