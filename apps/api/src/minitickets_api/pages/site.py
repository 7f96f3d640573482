"""The pages that exist: handlers by path. Every request of a page passes here."""

import logging
from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from minitickets_api.pages.static_files import StaticFiles
from minitickets_api.pages.templating import environment
from minitickets_api.pages.visit import Frame, Visit
from minitickets_api.procedures.call import Call
from minitickets_api.refusals import Code, Refusal
from minitickets_api.trpc import origins

Handler = Callable[[Visit], Awaitable[Response]]
_FAULT = Refusal(
    Code.INTERNAL_SERVER_ERROR,
    "Nothing is lost that was there before. Try again; if it stays, tell us the number below.",
)
_log = logging.getLogger(__name__)


class Site:
    """``open_call`` makes the context of a request; ``public_url`` as in ``origins.check``; ``mailbox_url`` is where
    the local platform shows the mails that it accepted."""

    def __init__(
        self, *, open_call: Callable[[Scope], Call], public_url: str | None, stage: str, mailbox_url: str | None
    ) -> None:
        self._open_call = open_call
        self._public_url = public_url
        self._mailbox_url = mailbox_url
        self._static = StaticFiles()
        self._frame = Frame(
            templates=environment(self._static), public_url=public_url, stage=stage, mailbox_url=mailbox_url
        )
        self._routes: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}

    def get(self, path: str, *, session: bool = False) -> Callable[[Handler], Handler]:
        """Register the decorated handler for GET and HEAD. ``session``: only for who is logged in; others log in first
        and come back."""
        return self._register("GET", path, session=session)

    def post(self, path: str, *, session: bool = False) -> Callable[[Handler], Handler]:
        """Register the decorated handler for forms posted from our own pages.

        There is a GET of the same path: whoever must log in first is led back there.
        """
        return self._register("POST", path, session=session)

    def routes(self) -> list[Route]:
        """All that was registered, with the static files, the service worker and the local mailbox."""

        async def mail(request: Request) -> Response:
            if self._mailbox_url is None:
                return await self.refuse(
                    request, Refusal(Code.NOT_FOUND, "Mails are shown on the local platform alone.")
                )
            return RedirectResponse(self._mailbox_url, status_code=302, headers={"cache-control": "no-store"})

        return [
            *(_route(path, handlers) for path, handlers in self._routes.items()),
            Route("/static/{version}/{name}", self._static.serve),
            Route("/sw.js", self._static.serve_worker),
            Route("/mail", mail),
        ]

    async def refuse(self, request: Request, reason: Refusal) -> Response:
        """The page that tells of a refusal."""
        return await self._visit(request).refused(reason)

    async def not_found(self, request: Request, error: Exception) -> Response:
        """For Starlette: what no route answers, or not with this method."""
        if isinstance(error, HTTPException) and error.status_code == Code.METHOD_NOT_SUPPORTED.http_status:
            response = await self.refuse(
                request, Refusal(Code.METHOD_NOT_SUPPORTED, "Open it by its address, or send its own form.")
            )
            response.headers.update(error.headers or {})
            return response
        return await self.refuse(request, Refusal(Code.NOT_FOUND, "Check the address, or start again from the events."))

    def _visit(self, request: Request) -> Visit:
        return Visit(request, call=self._open_call(request.scope), frame=self._frame)

    def _register(self, method: str, path: str, *, session: bool) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            @wraps(handler)
            async def answer(request: Request) -> Response:
                visit = self._visit(request)
                try:
                    if method == "POST":
                        origins.check(request.headers, public_url=self._public_url)
                    if session:
                        await visit.call.require_session()
                    response = await handler(visit)
                except Refusal as reason:
                    response = await visit.refused(reason)
                except Exception:  # noqa: BLE001 - the last place that can answer with a page
                    _log.exception("a page failed", extra={"page": path})
                    response = await visit.refused(_FAULT)
                response.raw_headers.extend(visit.call.reply_headers)
                return response

            handlers = self._routes.setdefault(path, {})
            if method in handlers:
                raise ValueError(f"page {method} {path} is registered twice")
            handlers[method] = answer
            return handler

        return register


def _route(path: str, handlers: dict[str, Callable[[Request], Awaitable[Response]]]) -> Route:
    async def dispatch(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    # The request log names the route by it.
    dispatch.__name__ = next(iter(handlers.values())).__name__
    return Route(path, dispatch, methods=list(handlers))
