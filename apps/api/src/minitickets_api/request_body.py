"""The body of a request, with an end to its size and to the time that it may take."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import Receive

from minitickets_api.refusals import Code, Refusal

BODY_SECONDS = 10


async def read_body(headers: Headers, receive: Receive, *, max_bytes: int) -> bytes:
    """All of it. Raises Refusal: PAYLOAD_TOO_LARGE over ``max_bytes``, UNSUPPORTED_MEDIA_TYPE for a compressed one,
    BAD_REQUEST for one that does not arrive within BODY_SECONDS."""
    if "content-encoding" in headers:
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "The body must not be compressed.")
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > max_bytes:
        raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The body is larger than {max_bytes} bytes.")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(Code.BAD_REQUEST, "The client went away before its whole body was here.")
                body += message.get("body", b"")
                if len(body) > max_bytes:
                    raise Refusal(Code.PAYLOAD_TOO_LARGE, f"The body is larger than {max_bytes} bytes.")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refusal(Code.BAD_REQUEST, f"The body did not arrive within {BODY_SECONDS} seconds.") from None
