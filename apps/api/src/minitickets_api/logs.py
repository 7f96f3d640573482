"""Log lines of one JSON object each, with the request's correlation id and nothing that is a person's or a secret."""

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from types import TracebackType

from minitickets_api import correlation

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """One line a record. What ``extra`` holds becomes fields; an exception becomes its type and its frames.

    Its message is left out: a driver's holds the row it complains of, botocore's the parameters of the call.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        line: dict[str, object] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            # Its first line: in asyncio's second ones stands what an exception says.
            "message": record.getMessage().partition("\n")[0],
        }
        if request := correlation.current.get():
            line["correlation_id"] = request  # the name that the functions' logger gives it
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        if record.exc_info and record.exc_info[1] is not None:
            line["failure"] = failure(record.exc_info[1])
            line["frames"] = list(_frames(record.exc_info[2]))
        return json.dumps(line, default=str)


def failure(error: BaseException) -> str:
    """What kind of failure it is, without its message: its types from cause to last, with SQLSTATE or AWS's code."""
    names: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(names) < 5:
        response = getattr(cause, "response", None)
        code = getattr(cause, "sqlstate", None) or (
            response.get("Error", {}).get("Code") if isinstance(response, dict) else None
        )
        names.append(f"{type(cause).__name__}({code})" if code else type(cause).__name__)
        cause = cause.__cause__
    return " < ".join(names)


def _frames(trace: TracebackType | None) -> Iterator[str]:
    for frame in traceback.extract_tb(trace)[-12:]:
        yield f"{frame.filename}:{frame.lineno} {frame.name}"


def configure() -> None:
    """Send all logs to standard output as JSON lines; the server's own lines too."""
    handler = logging.StreamHandler(stream=sys.stdout)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
    # It would write whole paths and queries; middleware.py has a line of its own for each request.
    logging.getLogger("uvicorn.access").disabled = True
    # They tell of every request to AWS, and at DEBUG print its signature.
    for name in ("botocore", "boto3", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)
