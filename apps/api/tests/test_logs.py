"""What a log line never holds, whoever writes it."""

import asyncio
import gc
import json
import logging
from collections.abc import Iterator

import pytest

from minitickets_api.logs import JsonFormatter

pytestmark = pytest.mark.unit

CANARY = "ada@example.org"


class Lines(logging.Handler):
    """Keeps lines as they would be written."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.written.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_an_exception_that_nobody_fetched_is_told_without_its_message(lines: Lines) -> None:
    async def scene() -> None:
        forgotten: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        forgotten.set_exception(RuntimeError(f"duplicate key: Key (email)=({CANARY}) already exists"))
        del forgotten
        gc.collect()

    asyncio.run(scene())

    told = [json.loads(line) for line in lines.written if "never retrieved" in line]
    assert [(line["message"], line["failure"]) for line in told] == [
        ("Future exception was never retrieved", "RuntimeError")
    ]
    assert CANARY not in "".join(lines.written)


def test_a_failure_is_its_types_and_frames_without_their_words(lines: Lines) -> None:
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("test").exception("it failed")

    [line] = [json.loads(line) for line in lines.written]
    assert (line["message"], line["failure"]) == ("it failed", "ValueError")
    assert CANARY not in json.dumps(line)
