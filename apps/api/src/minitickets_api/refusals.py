"""Why a request is refused, in words for the person who made it. Whatever else is raised is a fault of ours (500)."""

from enum import Enum


class Code(Enum):
    """tRPC's error codes: the JSON-RPC number and the HTTP status of each."""

    PARSE_ERROR = (-32700, 400)
    BAD_REQUEST = (-32600, 400)
    UNAUTHORIZED = (-32001, 401)
    FORBIDDEN = (-32003, 403)
    NOT_FOUND = (-32004, 404)
    METHOD_NOT_SUPPORTED = (-32005, 405)
    CONFLICT = (-32009, 409)
    PAYLOAD_TOO_LARGE = (-32013, 413)
    UNSUPPORTED_MEDIA_TYPE = (-32015, 415)
    TOO_MANY_REQUESTS = (-32029, 429)
    INTERNAL_SERVER_ERROR = (-32603, 500)
    SERVICE_UNAVAILABLE = (-32603, 503)

    @property
    def number(self) -> int:
        return self.value[0]

    @property
    def http_status(self) -> int:
        return self.value[1]


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """The request is refused and has changed nothing.

    ``message`` is shown to the person: what is wrong, and what to do. ``details`` is what a program needs to go on
    (the seats that are taken, say), JSON-ready; it stands beside the code in the reply.
    """

    def __init__(self, code: Code, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def wrong_field(path: str, problem: str, *, code: Code = Code.BAD_REQUEST, **details: object) -> Refusal:
    """The refusal of one field of the input, told as the registry tells those that it finds by itself."""
    return Refusal(code, f"{path}: {problem}", issues=[{"path": path, "message": problem}], **details)
