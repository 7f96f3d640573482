"""One id that ties together every log line, message and mail that a request leads to."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from uuid import uuid4

HEADER = "x-correlation-id"
# Hexadecimal only: nobody can smuggle an address or a line break into a log through it.
_WELL_FORMED = re.compile(r"[0-9A-Fa-f][0-9A-Fa-f-]{14,126}[0-9A-Fa-f]")
_TRACE_ROOT = re.compile(r"(?:^|;)\s*Root=(1-[0-9a-f]{8}-[0-9a-f]{24})(?:;|$)")

current: ContextVar[str] = ContextVar("correlation_id", default="")


def correlation_id(headers: Mapping[str, str]) -> str:
    """The caller's id if it is well-formed (16 to 128 hexadecimal digits and hyphens), else the load balancer's.

    Without either, a new one.
    """
    given = headers.get(HEADER, "")
    if _WELL_FORMED.fullmatch(given):
        return given
    trace = _TRACE_ROOT.search(headers.get("x-amzn-trace-id", ""))
    return trace.group(1) if trace else str(uuid4())
