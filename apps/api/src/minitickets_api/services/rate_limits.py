"""How often an account or an address may try. Counted in Valkey for all processes, and here for when it is down."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.cache import Cache

_MAX_LOCAL_COUNTERS = 50_000


@dataclass(frozen=True, kw_only=True)
class Limit:
    """At most ``attempts`` in each window of ``seconds``."""

    name: str
    attempts: int
    seconds: int


_QUARTER_HOUR = 15 * 60
# By address they must let a whole campus behind one address in; by account they stop guessing: 40 an hour.
LOGIN_BY_ADDRESS = Limit(name="login-address", attempts=600, seconds=_QUARTER_HOUR)
LOGIN_BY_ACCOUNT_AND_ADDRESS = Limit(name="login-account-address", attempts=10, seconds=_QUARTER_HOUR)
# Many addresses may guess at one account, so it has a limit of its own; wide, so that it is no way to lock it.
LOGIN_BY_ACCOUNT = Limit(name="login-account", attempts=100, seconds=_QUARTER_HOUR)
REGISTER_BY_ADDRESS = Limit(name="register-address", attempts=600, seconds=_QUARTER_HOUR)
REGISTER_BY_ACCOUNT = Limit(name="register-account", attempts=10, seconds=_QUARTER_HOUR)
# Each is a mail to somebody who may not have asked for it.
RESET_BY_ADDRESS = Limit(name="reset-address", attempts=100, seconds=_QUARTER_HOUR)
RESET_BY_ACCOUNT = Limit(name="reset-account", attempts=5, seconds=3600)
RESEND_BY_BOOKING = Limit(name="resend-booking", attempts=5, seconds=_QUARTER_HOUR)
RESEND_BY_USER = Limit(name="resend-user", attempts=100, seconds=_QUARTER_HOUR)
# A large print is a quarter of a second of work; nobody prints that often, and a script must not keep a core busy.
PRINT_BY_USER = Limit(name="print-user", attempts=60, seconds=_QUARTER_HOUR)


class RateLimits:
    """Counters in fixed windows. What is counted by is hashed: the cache holds nobody's address."""

    def __init__(self, *, cache: Cache, clock: Callable[[], float] = time.time) -> None:
        self._cache = cache
        self._clock = clock
        self._local: dict[str, int] = {}

    async def spend(self, *attempts: tuple[Limit, str]) -> None:
        """Count one attempt against each limit. Raises Refusal (TOO_MANY_REQUESTS) if any is used up."""
        now = self._clock()
        keys = [(self._key(limit, subject, now), limit.seconds) for limit, subject in attempts]
        # Counted here in any case: an attacker gains nothing from the moment at which the cache goes or comes back.
        here = [self._count_here(key) for key, _ in keys]
        everywhere = await self._cache.count(keys) or here
        waits = [
            limit.seconds - int(now) % limit.seconds
            for (limit, _), *counts in zip(attempts, here, everywhere, strict=True)
            if max(counts) > limit.attempts
        ]
        if waits:
            minutes = -(-max(waits) // 60)
            raise Refusal(
                Code.TOO_MANY_REQUESTS, f"Too many attempts. Try again in {minutes} min.", retryAfterSeconds=max(waits)
            )

    async def reset(self, limit: Limit, subject: str) -> None:
        """Forget the attempts of this window."""
        key = self._key(limit, subject, self._clock())
        self._local.pop(key, None)
        await self._cache.forget(key)

    def _key(self, limit: Limit, subject: str, now: float) -> str:
        digest = hashlib.sha256(f"{limit.name}\n{subject}".encode()).hexdigest()[:32]
        return f"rate:{digest}:{int(now) // limit.seconds}"

    def _count_here(self, key: str) -> int:
        count = self._local.pop(key, 0) + 1
        if len(self._local) >= _MAX_LOCAL_COUNTERS:  # the one that was touched longest ago goes
            del self._local[next(iter(self._local))]
        self._local[key] = count
        return count
