"""What several tests of the API listen to."""

import io
import logging
from collections.abc import Iterator

import pytest

from minitickets_api.logs import JsonFormatter


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that the process logs, down to DEBUG of our own modules, as it would be written."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(lambda record: not record.name.startswith("http"))  # the test's own client
    root, ours = logging.getLogger(), logging.getLogger("minitickets_api")
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    ours.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(before)
    ours.setLevel(logging.NOTSET)
