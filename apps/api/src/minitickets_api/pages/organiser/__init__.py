"""The organiser's pages: events, their sales, posters and bookings."""

from minitickets_api.pages.organiser import bookings, event_form, events, posters
from minitickets_api.pages.site import Site


def add_to(site: Site) -> None:
    """Register all pages below ``/organiser``."""
    # The form first: ``new`` is no event's id.
    for module in (event_form, events, posters, bookings):
        module.add_to(site)
