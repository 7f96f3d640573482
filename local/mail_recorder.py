"""A pass-through in front of the emulator's SES v2 that keeps each accepted mail whole.

The emulator decides by signature and role; it drops attachments and headers, and forgets all on a restart, so the
mailbox is ours. After the emulator has accepted, the recorder can play what the emulator does not know: SES's sending
rate, its daily quota, and refused addresses.
"""

import http.client
import json
import threading
import time
import urllib.parse
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from local.loopback import Reply, Request, json_reply, pass_on, serve
from local.mailbox import Mailbox

_SEND = "/v2/email/outbound-emails"
_DAY_SECONDS = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class SendingLimits:
    """What SES would refuse: mails a second, mails in 24 hours (None: no limit), and recipients that it rejects."""

    per_second: float | None = None
    per_day: int | None = None
    rejected: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> "SendingLimits":
        """From ``{"perSecond", "perDay", "rejected"}``; ValueError naming what is wrong."""
        unknown = set(document) - {"perSecond", "perDay", "rejected"}
        if unknown:
            raise ValueError(f"unknown limits: {', '.join(sorted(unknown))}; known: perSecond, perDay, rejected")
        per_second, per_day = document.get("perSecond"), document.get("perDay")
        rejected = document.get("rejected") or []
        if per_second is not None and not (isinstance(per_second, int | float) and per_second > 0):
            raise ValueError("perSecond must be a number above 0, or null")
        if per_day is not None and not (isinstance(per_day, int) and per_day >= 0):
            raise ValueError("perDay must be a whole number of at least 0, or null")
        if not (isinstance(rejected, list) and all(isinstance(address, str) for address in rejected)):
            raise ValueError("rejected must be a list of addresses")
        return cls(per_second=per_second, per_day=per_day, rejected=frozenset(rejected))

    def to_json(self) -> dict[str, object]:
        """As ``from_json`` takes it."""
        return {"perSecond": self.per_second, "perDay": self.per_day, "rejected": sorted(self.rejected)}


@dataclass
class _Sent:
    """When mails were accepted, in seconds of the recorder's clock."""

    times: deque[float] = field(default_factory=deque)

    def within(self, seconds: float, *, now: float) -> int:
        return sum(1 for moment in self.times if moment > now - seconds)


class MailRecorder:
    """The recorder at 127.0.0.1:``port``, before the emulator at ``upstream_port``."""

    def __init__(
        self, *, port: int, upstream_port: int, mailbox: Mailbox, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = SendingLimits()
        self.endpoint = f"http://127.0.0.1:{port}"
        self._port = port
        self._upstream_port = upstream_port
        self._mailbox = mailbox
        self._clock = clock
        self._sent = _Sent()
        self._lock = threading.Lock()

    def start(self) -> Callable[[], None]:
        """Serve it; returns the call that stops it."""
        return serve("mail recorder", port=self._port, answer=self._answer)

    def _answer(self, request: Request) -> Reply:
        try:
            reply = pass_on(request, port=self._upstream_port)
        except (OSError, http.client.HTTPException) as error:
            return json_reply({"__type": "InternalFailure", "message": f"the emulator: {error}"}, status=503)
        is_mail = request.method == "POST" and urllib.parse.urlsplit(request.path).path == _SEND
        if not is_mail or reply.status != 200:
            return reply
        document = request.json()
        with self._lock:
            refusal = self._refusal(document)
            if refusal is not None:
                return refusal
            # Before the reply: what SES has accepted is in the mailbox, whatever happens next.
            self._mailbox.keep(document, message_id=json.loads(reply.body)["MessageId"])
            self._sent.times.append(self._clock())
        return reply

    def _refusal(self, document: Mapping[str, object]) -> Reply | None:
        now = self._clock()
        limits = self.limits
        while self._sent.times and self._sent.times[0] <= now - _DAY_SECONDS:
            self._sent.times.popleft()
        if limits.per_day is not None and len(self._sent.times) >= limits.per_day:
            return _error("LimitExceededException", "Daily message quota exceeded.")
        if limits.per_second is not None:
            # A window of one mail's share for rates below one a second, of a second above.
            window, most = (1.0, int(limits.per_second)) if limits.per_second >= 1 else (1 / limits.per_second, 1)
            if self._sent.within(window, now=now) >= most:
                return _error("TooManyRequestsException", "Maximum sending rate exceeded.", status=429)
        destination = document.get("Destination")
        addresses = destination.get("ToAddresses") if isinstance(destination, dict) else None
        for address in addresses or []:
            if address in limits.rejected:
                return _error("MessageRejected", "Email address is not accepted by the recipient's server.")
        return None


def _error(kind: str, message: str, *, status: int = 400) -> Reply:
    return Reply(
        status=status,
        body=json.dumps({"message": message}).encode(),
        headers=(("Content-Type", "application/json"), ("x-amzn-errortype", kind)),
    )
