"""Which pages may change something in a signed-in person's name."""

from starlette.datastructures import Headers

from minitickets_api.refusals import Code, Refusal


def check(headers: Headers, *, public_url: str | None) -> None:
    """Raise Refusal (FORBIDDEN) unless a mutation comes from our own pages or from a program.

    A browser always names the page's origin, or with ``Sec-Fetch-Site`` how the page is related to us; a program
    sends neither. Ours is ``public_url``; without one, whatever Host the request itself was sent to.
    """
    origins = headers.getlist("origin")
    if not origins:
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise _foreign()
        return
    if len(origins) != 1:
        raise _foreign()
    origin = origins[0].lower()
    if public_url is not None:
        own = [public_url]
    else:
        host = headers.get("host", "").lower()
        own = [f"http://{host}", f"https://{host}"] if host else []
    if origin not in own:
        raise _foreign()


def _foreign() -> Refusal:
    return Refusal(
        Code.FORBIDDEN, "This request comes from another site's page. Open MiniTickets itself and try again."
    )
