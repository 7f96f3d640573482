"""What a procedure is called with: who asks, and the services that it may use."""

import asyncio
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from minitickets_api import correlation
from minitickets_api.aws import Aws
from minitickets_api.client_address import client_address
from minitickets_api.database import Database
from minitickets_api.queries.assets import Assets
from minitickets_api.queries.tickets import Tickets
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.accounts import Accounts, User
from minitickets_api.services.bookings import BookingDesk
from minitickets_api.services.event_cache import EventCache
from minitickets_api.services.own_events import OwnEvents
from minitickets_api.services.password_resets import PasswordResets
from minitickets_api.services.passwords import Passwords
from minitickets_api.services.posters import Posters
from minitickets_api.services.rate_limits import RateLimits
from minitickets_api.services.sessions import SessionCookie, Sessions
from minitickets_api.services.ticket_pdf.printer import TicketPrinter


@dataclass(frozen=True, kw_only=True)
class Services:
    """One of each for the whole process."""

    database: Database
    aws: Aws
    accounts: Accounts
    passwords: Passwords
    password_resets: PasswordResets
    sessions: Sessions
    cookie: SessionCookie
    rate_limits: RateLimits
    desk: BookingDesk
    own_events: OwnEvents
    event_cache: EventCache
    tickets: Tickets
    ticket_printer: TicketPrinter
    assets: Assets
    posters: Posters


class Call:
    """One HTTP request, whose calls share it. Who asks comes from the session alone."""

    def __init__(self, scope: Scope, *, services: Services) -> None:
        self.services = services
        self.reply_headers: list[tuple[bytes, bytes]] = []
        self._headers = Headers(scope=scope)
        self._peer = scope["client"][0] if scope.get("client") else ""
        self._user: User | None = None
        self._is_known = False
        self._looking = asyncio.Lock()

    @property
    def correlation_id(self) -> str:
        """What ties the logs, messages and mails of this request together."""
        return correlation.current.get()

    @property
    def address(self) -> str:
        """The client's address, as far as it can be trusted."""
        return client_address(self._headers, peer=self._peer)

    @property
    def session_token(self) -> str | None:
        """The token that the request carries, whether it is good or not."""
        return self.services.cookie.read(self._headers)

    async def user(self) -> User | None:
        """Who is signed in. Looked up once a request."""
        async with self._looking:
            if not self._is_known:
                token = self.session_token
                self._user = await self.services.sessions.find(token) if token else None
                self._is_known = True
            return self._user

    async def require_session(self) -> User:
        """Who is signed in. Raises Refusal (UNAUTHORIZED) for nobody."""
        user = await self.user()
        if user is None:
            raise Refusal(Code.UNAUTHORIZED, "Log in first.")
        return user

    def set_cookie(self, value: str) -> None:
        """Add a Set-Cookie header to the reply."""
        self.reply_headers.append((b"set-cookie", value.encode("ascii")))
