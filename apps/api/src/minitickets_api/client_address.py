"""Who asks, as far as a network can tell."""

from ipaddress import IPv6Address, ip_address

from starlette.datastructures import Headers


def client_address(headers: Headers, *, peer: str) -> str:
    """The address that rate limits count by; IPv6 as its /64, because one customer has that many.

    The load balancer appends to ``X-Forwarded-For`` whom it got the request from: that last entry is believed, and
    nothing to the left of it, which the client itself may have written. Without the header it is ``peer``.
    """
    forwarded = ",".join(headers.getlist("x-forwarded-for"))
    return _address(forwarded.rpartition(",")[2]) or _address(peer) or "unknown"


def _address(text: str) -> str | None:
    text = text.strip()
    if text.startswith("["):  # the load balancer can be set to append ports
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return ":".join(address.exploded.split(":")[:4]) + "::/64"
    return str(address)
