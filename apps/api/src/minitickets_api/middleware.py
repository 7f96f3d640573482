"""What holds for every request: its correlation id, its log line, and headers that keep browsers strict."""

import json
import logging
import time
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from minitickets_api import correlation

# For answers that are data: no script, style, image or frame of anybody's. Pages have a policy of their own
# (pages/visit.py).
CONTENT_SECURITY_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_ONE_YEAR_SECONDS = 365 * 24 * 3600
_QUIET_PATHS = ("/healthz", "/readyz")  # asked every few seconds
_log = logging.getLogger(__name__)


class RequestFrame:
    """The outermost ASGI application. An exception of ``app`` becomes a reply of 500 that tells nothing but its id."""

    def __init__(self, app: ASGIApp, *, is_https: bool) -> None:
        self._app = app
        self._headers = dict(_SECURITY_HEADERS)
        if is_https:
            self._headers["strict-transport-security"] = f"max-age={_ONE_YEAR_SECONDS}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; other scopes (the lifespan) pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = correlation.correlation_id(Headers(scope=scope))
        token = correlation.current.set(request_id)
        status = 0

        async def send_framed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[correlation.HEADER] = request_id
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_framed)
        except Exception:
            _log.exception("a request failed")
            if status:
                raise
            await _reply_failure(send_framed, request_id)
        finally:
            if scope["path"] not in _QUIET_PATHS or status != HTTPStatus.OK:
                milliseconds = round((time.perf_counter() - started) * 1000, 1)
                # Not the path: it, and the query even more, holds whatever a client puts there.
                _log.info(
                    "request",
                    extra={
                        "method": scope["method"] if scope["method"].isalpha() else "?",
                        "route": _route(scope),
                        "status": status,
                        "milliseconds": milliseconds,
                    },
                )
            correlation.current.reset(token)


def _route(scope: Scope) -> str:
    """Which of our own routes it was; the endpoint of procedures names them itself."""
    return str(scope.get("procedures") or getattr(scope.get("endpoint"), "__name__", "unknown"))


async def _reply_failure(send: Send, request_id: str) -> None:
    body = json.dumps({"error": "Something went wrong on our side.", "correlationId": request_id}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": body})
