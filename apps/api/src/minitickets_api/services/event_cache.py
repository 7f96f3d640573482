"""The list of events, which everybody asks for: read from PostgreSQL once in two seconds, not once a visitor."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from minitickets_api.services.cache import Cache

T = TypeVar("T")

FRESH_MILLISECONDS = 2000


class EventCache:
    """First pages of the list, in Valkey; without it, requests that come together still share one read."""

    def __init__(self, *, cache: Cache) -> None:
        self._cache = cache
        self._loading: dict[int, asyncio.Task[bytes]] = {}

    async def first_page(self, *, limit: int, load: Callable[[], Awaitable[bytes]], read: Callable[[bytes], T]) -> T:
        """The first page of ``limit`` events as ``load`` returned it at most 2 s ago.

        ``read`` raises ValueError for one that it does not understand: during a deployment another version of this
        program fills the cache too.
        """
        key = f"events:1:{limit}"
        cached = await self._cache.get(key)
        if cached is not None:
            with suppress(ValueError):
                return read(cached)
        loading = self._loading.get(limit)
        if loading is None:
            loading = asyncio.create_task(self._load(key, load))
            self._loading[limit] = loading
            loading.add_done_callback(lambda _: self._loading.pop(limit, None))
        # A visitor who leaves does not take the page from those who wait for it too.
        return read(await asyncio.shield(loading))

    async def _load(self, key: str, load: Callable[[], Awaitable[bytes]]) -> bytes:
        page = await load()
        await self._cache.put(key, page, milliseconds=FRESH_MILLISECONDS)
        return page
