"""What a mutation did under a client's key, committed with its effect. Refusals are not remembered."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from minitickets_api.refusals import Code, Refusal

_KEY = re.compile(r"[\x21-\x7e]{1,128}")


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """``result`` is the JSON of the answer that was given; ``input_hash`` is of the input that it was given to."""

    input_hash: bytes
    result: str

    def answer(self, input_hash: bytes) -> str:
        """The remembered result, for the same input. Raises Refusal(CONFLICT) for another."""
        if self.input_hash != input_hash:
            raise Refusal(
                Code.CONFLICT,
                "idempotencyKey: it was used for another request before; use a new key for each new request",
            )
        return self.result


def checked_key(key: str) -> str:
    """``key`` if it is 1 to 128 printable ASCII characters without spaces. Raises Refusal(BAD_REQUEST)."""
    if not _KEY.fullmatch(key):
        raise Refusal(
            Code.BAD_REQUEST,
            "idempotencyKey: must be 1 to 128 printable ASCII characters without spaces, such as a UUID",
        )
    return key


def hash_input(input_: Mapping[str, object]) -> bytes:
    """SHA-256 of the canonical JSON of a mutation's input, without its key."""
    return hashlib.sha256(json.dumps(input_, sort_keys=True, separators=(",", ":")).encode()).digest()


async def find(
    connection: Any, *, procedure: str, keys: Collection[tuple[UUID, str]]
) -> dict[tuple[UUID, str], Remembered]:
    """What ``procedure`` remembers under ``keys``, each a user's id and that user's key.

    Look after the locks are taken that the mutation needs: only then is a concurrent one with the same key over.
    """
    rows = await connection.fetch(FIND, procedure, [user_id for user_id, _ in keys], [key for _, key in keys])
    return {
        (row["user_id"], row["key"]): Remembered(input_hash=row["input_hash"], result=row["result"]) for row in rows
    }


FIND = """
select k.user_id, k.key, k.input_hash, k.result
from unnest($2::uuid[], $3::text[]) as wanted(user_id, key)
join idempotency_keys k on k.user_id = wanted.user_id and k.procedure = $1 and k.key = wanted.key
"""


async def remember(connection: Any, *, procedure: str, user_id: UUID, key: str, input_hash: bytes, result: str) -> None:
    """Keep ``result`` (JSON) in the transaction of its effect.

    Raises asyncpg.UniqueViolationError when the same key has just been used for something else: look it up again.
    """
    await connection.execute(
        "insert into idempotency_keys (user_id, procedure, key, input_hash, result) values ($1, $2, $3, $4, $5)",
        user_id,
        procedure,
        key,
        input_hash,
        result,
    )


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What one mutation did under one person's key. Use it in the transaction of the effect, in this order: ``lock``
    (unless the mutation locks a row that every try locks too), ``recall``, the effect, ``keep``."""

    procedure: str
    user_id: UUID
    key: str
    input_hash: bytes

    async def lock(self, database: Any) -> None:
        """Let one transaction at a time act under this key."""
        name = f"{self.procedure}\n{self.user_id}\n{self.key}"
        await database.execute("select pg_advisory_xact_lock(hashtextextended($1, 0))", name)

    async def recall(self, database: Any) -> dict[str, Any] | None:
        """What was kept. Raises Refusal (CONFLICT) if the key was used with another input."""
        found = await find(database, procedure=self.procedure, keys=[(self.user_id, self.key)])
        remembered = found.get((self.user_id, self.key))
        if remembered is None:
            return None
        result: dict[str, Any] = json.loads(remembered.answer(self.input_hash))
        return result

    async def keep(self, database: Any, result: Mapping[str, object]) -> None:
        """Keep ``result``, which must be JSON-ready."""
        await remember(
            database,
            procedure=self.procedure,
            user_id=self.user_id,
            key=self.key,
            input_hash=self.input_hash,
            result=json.dumps(result),
        )
