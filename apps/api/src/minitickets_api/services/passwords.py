"""Passwords: how they are kept and compared. Argon2id, outside the event loop, a few at a time."""

import asyncio
import base64
import contextvars
import os
import secrets
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import argon2

from minitickets_api.refusals import Code, Refusal

MIN_CHARACTERS = 8
MAX_CHARACTERS = 128
# OWASP's Password Storage Cheat Sheet, second choice: 19 MiB, two passes, one lane; about 25 ms of one core.
_MEMORY_KIB = 19 * 1024
_PASSES = 2
_LANES = 1
_hasher = argon2.PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=_LANES)

# Waiting ones are turned away rather than queued past anybody's patience: 64 of 25 ms on one core are 1.6 s.
MAX_WAITING = 64

T = TypeVar("T")


def normalise(password: str) -> str:
    """One spelling for what looks the same (NFKC). Raises ValueError unless it has 8 to 128 characters."""
    normal = unicodedata.normalize("NFKC", password)
    if not MIN_CHARACTERS <= len(password) <= MAX_CHARACTERS or not MIN_CHARACTERS <= len(normal) <= MAX_CHARACTERS:
        raise ValueError(f"must have {MIN_CHARACTERS} to {MAX_CHARACTERS} characters")
    return normal


class Passwords:
    """Hashes and compares off the event loop, as many at once as there are cores."""

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(threads or os.cpu_count() or 1, thread_name_prefix="passwords")
        self._waiting = 0
        # No password has this hash, but comparing with it takes as long as with a real one.
        self._nobody = (
            f"$argon2id$v=19$m={_MEMORY_KIB},t={_PASSES},p={_LANES}"
            f"${_unpadded(secrets.token_bytes(16))}${_unpadded(secrets.token_bytes(32))}"
        )

    async def hash(self, password: str) -> str:
        """The hash to store. Raises Refusal: BAD_REQUEST, or SERVICE_UNAVAILABLE when too many wait."""
        try:
            normal = normalise(password)
        except ValueError as error:
            raise Refusal(Code.BAD_REQUEST, f"password: {error}") from None
        return await self._off_loop(lambda: _hasher.hash(normal))

    async def is_right(self, password: str, stored: str | None) -> bool:
        """Whether ``password`` is the one behind ``stored``. Takes as long when there is none (None)."""

        def compare() -> bool:
            try:
                return _hasher.verify(stored or self._nobody, unicodedata.normalize("NFKC", password))
            except argon2.exceptions.VerificationError:
                return False

        return await self._off_loop(compare) and stored is not None

    def is_outdated(self, stored: str) -> bool:
        """Whether ``stored`` was made with weaker settings than today's."""
        return _hasher.check_needs_rehash(stored)

    def close(self) -> None:
        """End the threads; what waits is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _off_loop(self, work: Callable[[], T]) -> T:
        if self._waiting >= MAX_WAITING:
            raise Refusal(
                Code.SERVICE_UNAVAILABLE,
                "Too many people sign in just now. Try again in a moment.",
                retryAfterSeconds=2,
            )
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, contextvars.copy_context().run, work)
        finally:
            self._waiting -= 1


def _unpadded(raw: bytes) -> str:
    return base64.b64encode(raw).rstrip(b"=").decode()
