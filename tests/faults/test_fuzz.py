"""Ten thousand malformed requests: each is refused, none is a fault of ours, and none leaves anything behind."""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any
from uuid import uuid4

import httpx
import pytest

from minitickets_api.app import registry
from tests.faults.malformed import from_bytes, from_description, from_examples, with_headers
from tests.fixtures.api_process import ApiProcess
from tests.fixtures.running_api import PASSWORD, RunningApi, api_environment
from tests.fixtures.servers import Cache

pytestmark = pytest.mark.faults

REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "10000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
PER_OPERATION = 40
AT_A_TIME = 16
# Who sends the end of a request late is another test's matter (test_connections.py); here it is hung up on.
REPLY_SECONDS = 5.0
UNANSWERED_SECONDS = 0.05
# A leak grows in every round, at a kilobyte a request by 1,000 kB. What the allocator keeps at hand comes in one or two
# of them, and may be large: the 19 MiB that hashed a password are kept for the next one.
ROUNDS = 10
GROWTH_BYTES_PER_REQUEST = 512
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_TRACES = (b"Traceback", b'File "/', b"asyncpg", b"site-packages", b"pydantic", b"select ", b"insert into")


class Replies:
    """What came back: how often each status (0: nothing), and whatever no reply may hold."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.wrong: list[str] = []

    def add(self, request: bytes, reply: bytes) -> None:
        statuses = [int(status) for status in _STATUS.findall(reply)]
        self.statuses.update(statuses or [0])
        if any(status >= 500 for status in statuses) or any(trace in reply for trace in _TRACES):
            self.wrong.append(f"{request[:1_000]!r} got {reply[-1_000:]!r}")


async def exchange(port: int, request: bytes) -> bytes:
    """All that comes back for ``request`` on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    reply = bytearray()
    try:
        with suppress(ConnectionError):
            writer.write(request)
            await writer.drain()
            patience = UNANSWERED_SECONDS
            with suppress(TimeoutError):
                while True:
                    async with asyncio.timeout(patience):
                        chunk = await reader.read(65_536)
                    if not chunk:
                        break
                    reply += chunk
                    patience = REPLY_SECONDS if is_incomplete(reply) else UNANSWERED_SECONDS / 5
    finally:
        writer.transport.abort()
    return bytes(reply)


def is_incomplete(reply: bytearray) -> bool:
    head, end, body = bytes(reply).partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return not end or (length is not None and len(body) < int(length[1]))


async def send(port: int, requests: Iterable[bytes], replies: Replies) -> None:
    waiting = iter(requests)

    async def sender() -> None:
        for request in waiting:
            replies.add(request, await exchange(port, request))

    await asyncio.gather(*(sender() for _ in range(AT_A_TIME)))


def faults_in(log: Path) -> list[str]:
    """Lines of the process's own log that tell of a fault: errors, traces, replies of 500 and above."""
    faults = []
    for line in log.read_text().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            faults.append(line)
            continue
        if entry["level"] in ("ERROR", "CRITICAL") or entry.get("status", 0) >= 500:
            faults.append(line)
    return faults


def right_requests(event_id: str) -> list[tuple[str, str, Any]]:
    """One of each kind, as our pages send it."""
    some_id = "0b9f3f0e-1111-4222-8333-444455556666"
    credentials = {"email": "ada@example.org", "password": PASSWORD}
    offer = {"priceMinor": 2500, "currency": "USD", "startsAt": "2027-12-31T20:00:00-08:00", "venue": "Old Mill"}
    night = {
        "title": "Night of Engines",
        "venue": "Old Mill",
        "startsAt": "2027-12-31T20:00",
        "timeZone": "America/Los_Angeles",
        "priceMinor": 2500,
        "currency": "USD",
    }
    rows = [{"label": "A", "seats": 20, "aisleAfter": [10]}, {"label": "B", "seats": 4}]
    return [
        ("POST", "auth.register", {**credentials, "name": "Ada Lovelace"}),
        ("POST", "auth.login", credentials),
        ("GET", "events.list", {"limit": 5}),
        ("GET", "events.byId", {"eventId": event_id}),
        ("POST", "bookings.create", {"eventId": event_id, "seats": ["A-1", "A-2"], "idempotencyKey": "k"}),
        ("POST", "bookings.cancel", {"bookingId": some_id, "idempotencyKey": "k"}),
        ("GET", "bookings.mine", {"limit": 2, "cursor": "AAAA"}),
        ("POST", "bookings.create", {"eventId": event_id, "seats": ["A-3"], "offer": offer, "idempotencyKey": "k2"}),
        ("GET", "bookings.byId", {"bookingId": some_id}),
        ("POST", "bookings.resendMail", {"bookingId": some_id, "idempotencyKey": "k"}),
        ("POST", "auth.requestPasswordReset", {"email": "ada@example.org"}),
        ("POST", "auth.resetPassword", {"token": "t0ken-" + "x" * 37, "password": PASSWORD}),
        ("POST", "events.create", {**night, "rows": rows, "idempotencyKey": "k"}),
        ("POST", "events.update", {"eventId": event_id, **night, "idempotencyKey": "k"}),
        ("POST", "events.update", {"eventId": event_id, "rows": rows, "idempotencyKey": "k2"}),
        ("POST", "events.publish", {"eventId": event_id, "idempotencyKey": "k"}),
        ("GET", "events.mine", {"limit": 2}),
        ("GET", "events.sales", {"eventId": event_id}),
        ("GET", "events.bookings", {"eventId": event_id, "search": "lovelace", "limit": 2, "cursor": "AAAA"}),
        ("POST", "posters.requestUpload", {"eventId": event_id, "contentType": "image/png", "idempotencyKey": "k"}),
        ("POST", "posters.publish", {"eventId": event_id, "uploadId": some_id, "idempotencyKey": "k"}),
    ]


def test_each_procedure_that_takes_input_has_a_right_request_to_begin_with() -> None:
    procedures = registry()
    examples = right_requests(str(uuid4()))
    for _, name, input_ in examples:
        procedures.find(name).read(input_)  # a Refusal says what is not right
    taking = {procedure.name for procedure in procedures if procedure.input.model_fields}
    assert {name for _, name, _ in examples} == taking


def test_ten_thousand_malformed_requests_are_refused_without_a_fault(
    api: RunningApi, cache: Cache, aws_of_api: dict[str, str], tmp_path: Path
) -> None:
    organiser = api.organiser()
    event_id = api.event(organiser)
    cookie = f"session={organiser.http.cookies['session']}"
    description = organiser.http.get("/openapi.json").json()
    api.stop()
    random = Random(SEED)  # noqa: S311 - a run that can be repeated

    def somebody(requests: Iterable[bytes]) -> list[bytes]:
        """Half of them signed in, as an organiser with an event; from so many addresses that no limit is met."""
        return [
            with_headers(
                request.replace(b"e3e70682-c209-1cac-a29f-6fbed82c07cd", event_id.encode()),
                {
                    "x-forwarded-for": f"198.51.100.{random.randrange(256)}",
                    **({"cookie": cookie} if random.random() < 0.5 else {}),
                },
            )
            for request in requests
        ]

    described = from_description(description, per_operation=PER_OPERATION)
    examples = list(from_examples(right_requests(event_id), count=REQUESTS * 3 // 10, random=random))
    seeds = [*described, *examples]
    damaged = from_bytes(seeds, count=max(REQUESTS - len(seeds), 0), random=random)
    requests = somebody([*seeds, *damaged])
    random.shuffle(requests)
    process = ApiProcess(api_environment(api.database, cache, **aws_of_api), tmp_path / "api.log")
    try:
        process.wait()
        port = int(process.url.rpartition(":")[2])
        replies = Replies()
        resident = []
        for start in range(ROUNDS):
            asyncio.run(send(port, requests[start::ROUNDS], replies))
            resident.append(process.resident_bytes())
        # The first rounds load what is used for the first time.
        growths = [after - before for before, after in pairwise(resident[1:])]

        assert process.child.exit_code() is None
        assert httpx.get(f"{process.url}/readyz").status_code == 200
    finally:
        process.child.stop()
    kilobytes = [growth // 1024 for growth in growths]
    told = f"seed {SEED}: {len(requests)} requests, {dict(replies.statuses)}, kB more in each round: {kilobytes}"

    assert replies.wrong[:3] == [], told
    assert faults_in(tmp_path / "api.log")[:3] == [], told
    assert median(growths) < GROWTH_BYTES_PER_REQUEST * len(requests) / ROUNDS, told
    # It was not all turned away at the door: parsers, validation, sessions and procedures had their share.
    assert min(replies.statuses[status] for status in (200, 400, 401, 404)) > REQUESTS / 500, told
