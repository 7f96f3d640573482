"""Where mails come from, and where their links lead."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Site:
    """``sender`` is a mail address, ``public_url`` an origin without a final slash.

    Without a public address no link can be right: the load balancer's own name changes (ADR 0002).
    """

    sender: str
    public_url: str | None

    def link(self, path: str) -> str | None:
        """The address of the page at ``path`` (``/tickets``), None if it is not known."""
        return None if self.public_url is None else f"{self.public_url}{path}"
