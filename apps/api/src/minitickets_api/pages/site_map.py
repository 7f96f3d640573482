"""All pages: where the next module of them is added."""

from collections.abc import Callable

from starlette.types import Scope

from minitickets_api.pages import accounts, bookings, events, organiser, ticket_pdf, tickets
from minitickets_api.pages.site import Site
from minitickets_api.procedures.call import Call


def site_map(
    *, open_call: Callable[[Scope], Call], public_url: str | None, stage: str, mailbox_url: str | None
) -> Site:
    """The site with every page; parameters as in ``Site``."""
    site = Site(open_call=open_call, public_url=public_url, stage=stage, mailbox_url=mailbox_url)
    for module in (events, accounts, bookings, tickets, ticket_pdf, organiser):
        module.add_to(site)
    return site
