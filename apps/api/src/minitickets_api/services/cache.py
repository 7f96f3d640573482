"""Valkey, for what may be lost. When it is down, nobody waits for it."""

import asyncio
import importlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from redis.asyncio import Redis

OPERATION_SECONDS = 0.25
PAUSE_SECONDS = 2.0
_MAX_CONNECTIONS = 20
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Cache:
    """Every operation returns None instead of failing; after a failure all do so at once for PAUSE_SECONDS.

    Until ``warm`` has run it counts as down: importing the client takes longer than the rest of the start.
    """

    def __init__(self, *, host: str, port: int, token: str, tls: bool) -> None:
        self._host = host
        self._port = port
        self._token = token
        self._tls = tls
        self._redis: Redis | None = None
        self._is_up = True
        self._asked_again_at = 0.0

    async def warm(self) -> None:
        """Load the client, in a thread."""
        await asyncio.to_thread(importlib.import_module, "redis.asyncio")
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        self._redis = Redis(
            host=self._host,
            port=self._port,
            password=self._token,
            ssl=self._tls,
            socket_connect_timeout=OPERATION_SECONDS,
            socket_timeout=OPERATION_SECONDS,
            retry=Retry(NoBackoff(), 0),
            max_connections=_MAX_CONNECTIONS,
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._redis is not None:
            await self._redis.aclose()

    async def get(self, key: str) -> bytes | None:
        """The value under ``key``."""

        async def get(redis: "Redis") -> bytes | None:
            value = await redis.get(key)
            return value.encode() if isinstance(value, str) else value  # the client decodes only where it is told to

        return await self._ask(get)

    async def put(self, key: str, value: bytes, *, milliseconds: int) -> None:
        """Keep ``value`` for that long, perhaps."""

        async def put(redis: "Redis") -> bool | None:
            return bool(await redis.set(key, value, px=milliseconds))

        await self._ask(put)

    async def forget(self, key: str) -> None:
        """Drop ``key``."""

        async def forget(redis: "Redis") -> int:
            return int(await redis.delete(key))

        await self._ask(forget)

    async def count(self, keys: Sequence[tuple[str, int]]) -> list[int] | None:
        """Add one to each counter (key, seconds that it lives) and return them all, in one round trip."""

        async def count(redis: "Redis") -> list[int]:
            async with redis.pipeline(transaction=False) as pipeline:
                for key, seconds in keys:
                    pipeline.incr(key)
                    pipeline.expire(key, seconds)
                return [int(result) for result in (await pipeline.execute())[::2]]

        return await self._ask(count)

    async def _ask(self, operation: "Callable[[Redis], Awaitable[T]]") -> T | None:
        if self._redis is None:
            return None
        now = time.monotonic()
        if not self._is_up:
            if now < self._asked_again_at:
                return None
            self._asked_again_at = now + PAUSE_SECONDS  # this one asks; the others go on without
        from redis.exceptions import RedisError

        try:
            async with asyncio.timeout(OPERATION_SECONDS):
                result = await operation(self._redis)
        except (RedisError, OSError, TimeoutError) as error:
            if self._is_up:
                _log.warning("the cache does not answer; going on without it", extra={"failure": type(error).__name__})
            self._is_up = False
            self._asked_again_at = time.monotonic() + PAUSE_SECONDS
            return None
        if not self._is_up:
            self._is_up = True
            _log.info("the cache answers again")
        return result
