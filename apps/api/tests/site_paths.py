"""The pages that there are, as the site itself knows them."""

from minitickets_api.pages.site_map import site_map

_NOT_PAGES = ("/static/", "/sw.js", "/mail")


def page_paths(method: str) -> list[str]:
    """The paths of all pages that answer ``method``, with their names in braces."""

    def no_call(_: object) -> object:
        raise AssertionError("nothing is asked")

    site = site_map(open_call=no_call, public_url=None, stage="test", mailbox_url=None)  # type: ignore[arg-type]  # nobody calls it
    return [
        route.path
        for route in site.routes()
        if method in (route.methods or ()) and not route.path.startswith(_NOT_PAGES)
    ]
