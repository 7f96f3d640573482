"""One request of a page: who asks, what they filled in, and the ways to answer."""

import gzip
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from minitickets_api import correlation
from minitickets_api.pages.forms import Form, read_form
from minitickets_api.pages.return_path import account_path
from minitickets_api.pages.static_files import accepts_gzip
from minitickets_api.procedures.call import Call
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.accounts import User
from minitickets_contracts import fields

_MIN_ZIPPED_BYTES = 1024
_ZIP_LEVEL = 5
_TITLES = {
    Code.NOT_FOUND: "There is no such page",
    Code.FORBIDDEN: "This is not yours to open",
    Code.METHOD_NOT_SUPPORTED: "This page cannot be asked that way",
    Code.CONFLICT: "That is not possible any more",
    Code.PAYLOAD_TOO_LARGE: "That is too much at once",
    Code.TOO_MANY_REQUESTS: "Too many attempts",
    Code.SERVICE_UNAVAILABLE: "Not available just now",
    Code.INTERNAL_SERVER_ERROR: "Something went wrong on our side",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What is the same on every page. ``mailbox_url`` is None on AWS; ``public_url`` as in ``origins.check``."""

    templates: Environment
    public_url: str | None
    stage: str
    mailbox_url: str | None


class Visit:
    """A page's handler takes one and returns a response that it made."""

    def __init__(self, request: Request, *, call: Call, frame: Frame) -> None:
        self.request = request
        self.call = call
        self._frame = frame

    @property
    def origin(self) -> str:
        """Where the browser found this page, for others to lead it back."""
        return self._frame.public_url or f"{self.request.url.scheme}://{self.request.url.netloc}"

    def id(self, name: str) -> str:
        """The UUID of that name in the path. Raises Refusal (NOT_FOUND) if it is none."""
        try:
            return fields.uuid(name, self.request.path_params[name])
        except fields.ContractError:
            raise Refusal(Code.NOT_FOUND, "Check the address, or start again from the events.") from None

    def query(self, name: str) -> str:
        """A value of the address's query; empty if it is absent, or if the database could not take it."""
        value = self.request.query_params.get(name, "")
        return "" if "\x00" in value else value

    async def form(self) -> Form:
        """What was posted. Raises Refusal as ``read_form`` does."""
        return await read_form(self.request)

    def go(self, path: str, **query: str) -> Response:
        """Lead the browser on to a page of ours by GET, so that a reload repeats no form."""
        return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, status_code=303, headers=_no_store())

    async def page(
        self,
        template: str,
        *,
        section: str = "",
        refusal: Refusal | None = None,
        bucket_url: str | None = None,
        is_secret: bool = False,
        **values: Any,
    ) -> Response:
        """The template, filled in.

        ``section`` is the part of the navigation that it belongs to. ``refusal`` is what became of the form that the
        page shows again. ``bucket_url`` is any URL of the bucket, when the page shows a poster or posts one.
        ``is_secret``: it holds what must not be guessed from its compressed size. The template also knows ``person``,
        ``stage``, ``has_mailbox``, ``path`` and ``notice`` (the query's).
        """
        return self._render(
            template,
            person=await self.call.user(),
            section=section,
            refusal=refusal,
            bucket_url=bucket_url,
            may_zip=not is_secret,
            values=values,
        )

    async def refused(self, reason: Refusal) -> Response:
        """The page that tells of a refusal; for nobody in particular, the login page, which leads back here."""
        if reason.code is Code.UNAUTHORIZED:
            query = self.request.url.query
            return self.go_to_login(f"{self.request.url.path}?{query}" if query else self.request.url.path)
        return self._render(
            "error.html",
            person=await self._person_if_known(),
            section="",
            refusal=reason,
            bucket_url=None,
            may_zip=True,
            values={
                "title": _TITLES.get(reason.code, "That did not work"),
                "message": reason.message,
                "issues": _beyond(reason),
            },
        )

    def go_to_login(self, path: str) -> Response:
        """The login page, which leads on to ``path``."""
        return RedirectResponse(account_path("/login", path), status_code=303, headers=_no_store())

    async def _person_if_known(self) -> User | None:
        """An error page must come whatever else fails."""
        try:
            return await self.call.user()
        except Refusal:
            return None
        except Exception:  # noqa: BLE001 - else the error page itself would fail
            _log.exception("who is signed in could not be looked up for an error page")
            return None

    def _render(
        self,
        template: str,
        *,
        person: User | None,
        section: str,
        refusal: Refusal | None,
        bucket_url: str | None,
        may_zip: bool,
        values: Mapping[str, Any],
    ) -> Response:
        html = self._frame.templates.get_template(template).render(
            {
                "person": person,
                "stage": self._frame.stage,
                "has_mailbox": self._frame.mailbox_url is not None,
                "section": section,
                "path": self.request.url.path,
                "notice": self.query("notice"),
                "correlation_id": correlation.current.get(),
                **values,
            }
        )
        body = html.encode()
        headers = {
            **_no_store(),
            "content-security-policy": content_security_policy(bucket_url),
            # With no referrer at all, browsers send forms with "Origin: null", which is nobody's.
            "referrer-policy": "same-origin",
        }
        if may_zip and len(body) >= _MIN_ZIPPED_BYTES and accepts_gzip(self.request):
            body = gzip.compress(body, _ZIP_LEVEL, mtime=0)
            headers["content-encoding"] = "gzip"
        wait = refusal.details.get("retryAfterSeconds") if refusal else None
        if isinstance(wait, int):
            headers["retry-after"] = str(wait)
        status = refusal.code.http_status if refusal else 200
        return Response(body, status_code=status, media_type="text/html", headers=headers)


def _beyond(reason: Refusal) -> list[str]:
    """What is wrong with each field, unless the message says it."""
    issues = reason.details.get("issues")
    told = [(str(issue["path"]), str(issue["message"])) for issue in issues] if isinstance(issues, list) else []
    return [f"{path}: {problem}" for path, problem in told if problem not in reason.message]


def content_security_policy(bucket_url: str | None) -> str:
    """Nothing from anywhere but here, and nothing inline; posters come from, and go to, the bucket of that URL."""
    bucket = ""
    if bucket_url is not None:
        parts = urlsplit(bucket_url)
        bucket = f" {parts.scheme}://{parts.netloc}"
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            f"img-src 'self'{bucket}",
            "connect-src 'self'",
            "manifest-src 'self'",
            "worker-src 'self'",
            f"form-action 'self'{bucket}",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


def _no_store() -> dict[str, str]:
    return {"cache-control": "no-store", "vary": "accept-encoding, cookie"}
