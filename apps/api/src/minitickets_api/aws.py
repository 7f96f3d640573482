"""Calls to AWS from the event loop: boto3's clients, once a process, in a bounded pool of threads."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from minitickets_api.refusals import Code, Refusal

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

CONNECT_SECONDS = 2
READ_SECONDS = 3
_THREADS = 16
# Running and waiting: with all of them unanswered the last one is told so after 64 / 16 * 3 s.
_MAX_WAITING = 64
# Without these, presigned URLs name the global host, which redirects: signed requests do not survive that.
_REGIONAL = {"us_east_1_regional_endpoint": "regional", "addressing_style": "virtual"}

T = TypeVar("T")


class Aws:
    """The clients of one region. Importing boto3 takes half a second, so it happens in ``warm``, or at first use."""

    def __init__(self, *, region: str) -> None:
        self._region = region
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="aws")
        self._signers = ThreadPoolExecutor(2, thread_name_prefix="aws-sign")
        self._waiting = 0
        self._making = threading.Lock()
        self._clients: dict[str, Any] = {}

    async def run(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises, from a thread that keeps the request's correlation id.

        Raises Refusal (SERVICE_UNAVAILABLE) when too many wait: AWS is slow, and a queue would only be slower.
        """
        if self._waiting >= _MAX_WAITING:
            raise Refusal(
                Code.SERVICE_UNAVAILABLE, "This takes too long just now. Try again shortly.", retryAfterSeconds=5
            )
        self._waiting += 1
        try:
            return await self._in_thread(self._threads, work)
        finally:
            self._waiting -= 1

    async def sign(self, work: Callable[[], T]) -> T:
        """As ``run``, for ``work`` that calls nobody. In threads of its own: an outage of AWS holds up all others, and
        what needs no more than a signature must not wait for it."""
        return await self._in_thread(self._signers, work)

    async def _in_thread(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, contextvars.copy_context().run, work)

    async def warm(self) -> None:
        """Make the clients, so that no request waits for it."""

        def make() -> None:
            _ = self.dynamodb
            _ = self.s3

        await self.run(make)

    def close(self) -> None:
        """End the threads and connections; what waits is dropped."""
        for threads in (self._threads, self._signers):
            threads.shutdown(wait=False, cancel_futures=True)
        with self._making:
            for client in self._clients.values():
                client.close()

    @property
    def dynamodb(self) -> "DynamoDBClient":
        """One attempt a call: the caller decides what a failure means. Only from a thread of ``run`` or ``sign``."""
        client: DynamoDBClient = self._client("dynamodb")
        return client

    @property
    def s3(self) -> "S3Client":
        """Signs for the regional host. Only from a thread of ``run`` or ``sign``."""
        client: S3Client = self._client("s3", signature_version="s3v4", s3=_REGIONAL)
        return client

    def _client(self, service: str, **options: Any) -> Any:
        with self._making:
            if service not in self._clients:
                import boto3
                from botocore.config import Config

                config = Config(
                    connect_timeout=CONNECT_SECONDS,
                    read_timeout=READ_SECONDS,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=_THREADS,
                    **options,
                )
                session: Any = boto3.Session(region_name=self._region)
                self._clients[service] = session.client(service, config=config)
            return self._clients[service]
