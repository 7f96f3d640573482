"""The ASGI application under ``/trpc/``: reads a request, calls its procedures, writes the reply."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from minitickets_api import correlation
from minitickets_api.refusals import Code, Refusal
from minitickets_api.request_body import read_body
from minitickets_api.trpc import origins, protocol
from minitickets_api.trpc.protocol import MAX_BYTES, Outcome
from minitickets_api.trpc.registry import Kind, Registry

_log = logging.getLogger(__name__)


class Caller(Protocol):
    """What the endpoint needs of the context that procedures are called with."""

    @property
    def reply_headers(self) -> Sequence[tuple[bytes, bytes]]:
        """Headers that procedures add to the reply (cookies)."""

    async def require_session(self) -> object:
        """Raises Refusal (UNAUTHORIZED) if nobody is signed in."""


C = TypeVar("C", bound=Caller)


class Endpoint(Generic[C]):
    """``open_caller`` makes the context of one request; ``public_url`` as in ``origins.check``."""

    def __init__(
        self,
        registry: Registry[C],
        *,
        open_caller: Callable[[Scope], C],
        public_url: str | None,
    ) -> None:
        self._registry = registry
        self._open_caller = open_caller
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. ``scope["path"]`` begins with ``/trpc/``; ``scope["procedures"]`` is set for the log."""
        method: str = scope["method"]
        path: str = scope["path"].removeprefix("/trpc/")
        headers: list[tuple[bytes, bytes]] = []
        if method == "HEAD":  # tRPC's clients ask so whether the server is there
            await _reply(send, 204, b"", headers)
            return
        is_batch = False
        try:
            request = protocol.read_request(path, scope["query_string"])
            scope["procedures"] = ",".join(name if name in self._registry else "unknown" for name in request.names)
            kind = _kind(method)
            if kind is Kind.MUTATION:
                origins.check(Headers(scope=scope), public_url=self._public_url)
                document: bytes | None = await _json_body(scope, receive)
            else:
                document = request.query_input
            inputs = protocol.read_inputs(request, document)
        except Refusal as reason:
            outcomes = [protocol.refusal(reason, path=None, correlation_id=correlation.current.get())]
            if reason.code is Code.METHOD_NOT_SUPPORTED:
                headers.append((b"allow", b"GET, HEAD, POST"))
        else:
            is_batch = request.is_batch
            caller = self._open_caller(scope)
            outcomes = await asyncio.gather(
                *(self._call(name, kind, value, caller) for name, value in zip(request.names, inputs, strict=True))
            )
            headers += caller.reply_headers
        if waits := [outcome.retry_after for outcome in outcomes if outcome.retry_after is not None]:
            headers.append((b"retry-after", str(max(waits)).encode()))
        status, body = protocol.write_outcomes(outcomes, is_batch=is_batch)
        await _reply(send, status, body, headers)

    async def _call(self, name: str, kind: Kind, value: object, caller: C) -> Outcome:
        try:
            procedure = self._registry.find(name)
            if procedure.kind is not kind:
                raise Refusal(Code.METHOD_NOT_SUPPORTED, f"This procedure is called by {procedure.kind.value}.")
            if procedure.session:
                await caller.require_session()
            return protocol.success(await procedure.handler(caller, procedure.read(value)))
        except Refusal as reason:
            return protocol.refusal(reason, path=name, correlation_id=correlation.current.get())
        except Exception:  # noqa: BLE001 - the last place that can answer this call without failing its batch
            _log.exception("a procedure failed", extra={"procedure": name})
            fault = Refusal(
                Code.INTERNAL_SERVER_ERROR,
                "Something went wrong on our side. Try again; if it stays, tell us the correlation id.",
            )
            return protocol.refusal(fault, path=name, correlation_id=correlation.current.get())


def _kind(method: str) -> Kind:
    try:
        return Kind(method)
    except ValueError:
        raise Refusal(Code.METHOD_NOT_SUPPORTED, "Queries are called by GET, mutations by POST.") from None


async def _json_body(scope: Scope, receive: Receive) -> bytes:
    headers = Headers(scope=scope)
    media_type, _, parameters = headers.get("content-type", "").lower().partition(";")
    if media_type.strip() != "application/json" or parameters.strip() not in ("", "charset=utf-8", 'charset="utf-8"'):
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "The content type must be application/json (UTF-8).")
    return await read_body(headers, receive, max_bytes=MAX_BYTES)


async def _reply(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    fixed = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"vary", b"cookie, origin"),
    ]
    await send(
        {"type": "http.response.start", "status": status, "headers": (fixed[2:] if status == 204 else fixed) + headers}
    )
    await send({"type": "http.response.body", "body": body})
