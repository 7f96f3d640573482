"""Requests that nobody's browser sends: from the API's own description, from right ones with one thing wrong, from
bytes, and from all of them damaged.

Everything follows from one seed, so that what a run found can be found again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import quote

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

_BASE_URL = "http://api.invalid"
_END_OF_HEAD = b"\r\n\r\n"

# What parsers of HTTP, JSON, text, numbers and cookies trip over.
_FRAGMENTS = (
    b"\x00",
    b"\r\n",
    b"\n",
    b"\xff\xfe",
    b"\xc0\x80",  # an overlong NUL
    b"\xed\xa0\x80",  # a surrogate in UTF-8
    b"\\ud800",
    b"\\u0000",
    b"1e400",
    b"-" + b"9" * 400,
    b"NaN",
    b"[" * 3_000,
    b'{"a":' * 2_000,
    b'"' * 50,
    b"\xef\xbb\xbf",
    b"%00%ff%c0%80",
    b"../../etc/passwd",
    b"' or 1=1; --",
    b"{{7*7}}${7*7}",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Cookie: session=; session=\xff\r\n",
    b"Expect: 100-continue\r\n",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\n",
    b"X-Forwarded-For: ,,,[::1\r\n",
    b"X-Correlation-Id: \xe2\x80\xae\r\n",
    b"A: b\r\n" * 300,
)

_CHUNKED = (
    b"POST /trpc/auth.login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
)
_RAW = (
    b"",
    b"\r\n" * 40,
    b"GET /\r\n\r\n",
    b"GET / HTTP/0.9\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://elsewhere.invalid/trpc/auth.me HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /trpc/%2e%2e/%00 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /trpc/\xff\xfe?input=\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /trpc/auth.me?batch=1&input=%7B%220%22%3A HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /trpc/" + b",".join([b"auth.me"] * 500) + b"?batch=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nHost: \x00\r\n\r\n",
    b"POST /trpc/auth.login HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
    _CHUNKED + b"\r\nFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
    _CHUNKED + b"Content-Length: 2\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
)


# In JSON's own spelling, because some of them have no other.
_VALUES = (
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\ud800"',
    '"\\udc00x\\ud800"',
    '"\\u202e\\u200d\\ufeff"',
    '"a\\r\\nBcc: eve@example.org"',
    f'"{"x" * 5_000}"',
    f'"{"é" * 200}"',
    '""',
    '" "',
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e400",
    "-0.0",
    "9" * 19,
    "9" * 5_000,
    str(2**31),
    str(2**63),
    "NaN",
    "[]",
    "{}",
    "[null]",
    '{"a":{"b":[1,{"c":"d"}]}}',
    '"0001-01-01T00:00:00+23:59"',
    '"9999-12-31T23:59:59-23:59"',
    '"2026-02-30T25:61:00"',
    '"Mars/Olympus"',
    '"../../etc/passwd"',
    '"xn--"',
    '"a@[127.0.0.1]"',
    '"ada@exa\\u0301mple.org"',
)
_HOLE = "\x1a"


def from_examples(examples: Sequence[tuple[str, str, Any]], *, count: int, random: Random) -> Iterator[bytes]:
    """``count`` requests, each a right one (method, procedure, input) with one value, name or place wrong."""
    for _ in range(count):
        method, name, value = random.choice(examples)
        places = list(_places(value))
        place = random.choice(places)
        text = json.dumps(_with_hole(value, place)).replace(json.dumps(_HOLE), random.choice(_VALUES))
        match random.randrange(8):
            case 0:
                text = text.replace('"', '"a', 1)  # a field of another name
            case 1:
                text = text[:-1] + "," + text[1:] if text.startswith("{") and len(text) > 2 else text  # each twice
        yield _request(method, name, text.encode("utf-8", "surrogatepass"))


def _request(method: str, name: str, document: bytes) -> bytes:
    head = f"{method} /trpc/{name}"
    if method == "GET":
        return f"{head}?input={quote(document)} HTTP/1.1\r\nhost: a\r\n\r\n".encode()
    length = f"content-type: application/json\r\ncontent-length: {len(document)}"
    return f"{head} HTTP/1.1\r\nhost: a\r\n{length}\r\n\r\n".encode() + document


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _places(inner, (*path, position))


def _with_hole(value: Any, path: tuple[str | int, ...]) -> Any:
    if not path:
        return _HOLE
    if isinstance(value, dict):
        return {key: _with_hole(inner, path[1:]) if key == path[0] else inner for key, inner in value.items()}
    return [_with_hole(inner, path[1:]) if place == path[0] else inner for place, inner in enumerate(value)]


def from_description(document: Mapping[str, Any], *, per_operation: int) -> list[bytes]:
    """Requests that break the rules of the OpenAPI ``document``, and some that keep them, as bytes."""
    schema = schemathesis.openapi.from_dict(dict(document))
    made: list[bytes] = []

    for found in schema.get_all_operations():
        operation: Any = found
        operation = operation.ok()
        for mode, examples in ((GenerationMode.NEGATIVE, per_operation), (GenerationMode.POSITIVE, per_operation // 5)):

            @settings(
                max_examples=examples,
                database=None,
                deadline=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def collect(case: Any) -> None:
                made.append(_as_bytes(case))

            try:
                collect()
            except Unsatisfiable:  # an operation without input has no wrong one
                made.append(f"{operation.method.upper()} {operation.path} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
    return made


def from_bytes(seeds: Sequence[bytes], *, count: int, random: Random) -> Iterator[bytes]:
    """``count`` requests made of ``seeds`` by damage, and of nothing."""
    for _ in range(count):
        if random.random() < 0.1:
            yield random.choice([*_RAW, random.randbytes(random.randrange(1, 400))])
            continue
        request = bytearray(random.choice(seeds))
        for _ in range(random.randrange(1, 4)):
            _damage(request, seeds, random)
        yield _with_its_length(bytes(request)) if random.random() < 0.7 else bytes(request)


def with_headers(request: bytes, headers: Mapping[str, str]) -> bytes:
    """``request`` with more headers after its first line."""
    first, end_of_line, rest = request.partition(b"\r\n")
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return first + end_of_line + more.encode() + rest if end_of_line else request


def _as_bytes(case: Any) -> bytes:
    arguments = case.as_transport_kwargs(base_url=_BASE_URL)
    names = ("method", "url", "params", "data", "json")
    wanted = {name: arguments[name] for name in names if arguments.get(name) is not None}
    try:
        prepared = requests.Request(**wanted).prepare()
        made: Any = prepared.body or b""
    except ValueError:  # a value that JSON has no word for: Python's own spelling of it
        made = json.dumps(arguments["json"])
        prepared = requests.Request(wanted["method"], wanted["url"]).prepare()
    body = made.encode("utf-8", "surrogatepass") if isinstance(made, str) else bytes(made)
    target = quote(prepared.path_url, safe="/?&=%+:,")
    head = [f"{wanted['method']} {target} HTTP/1.1", "host: api.invalid"]
    if wanted["method"] != "GET":
        head += ["content-type: application/json", f"content-length: {len(body)}"]
    given_headers = dict(arguments.get("headers") or {})
    head += [f"{name}: {value}" for name, value in given_headers.items() if name.lower().startswith("x-")]
    return "\r\n".join(head).encode("utf-8", "replace") + _END_OF_HEAD + body


def _damage(request: bytearray, seeds: Sequence[bytes], random: Random) -> None:
    place = random.randrange(len(request) + 1)
    length = random.choice([1, 1, 2, 8, 40])
    match random.randrange(7):
        case 0:
            request[place : place + 1] = bytes([random.randrange(256)])
        case 1:
            del request[place : place + length]
        case 2:
            request[place:place] = random.choice(_FRAGMENTS)
        case 3:
            request[place:place] = request[place : place + length] * random.choice([2, 50])
        case 4:
            del request[place:]
        case 5:
            other = random.choice(seeds)
            request[place:] = other[random.randrange(len(other)) :]
        case _:
            head_end = max(request.find(_END_OF_HEAD), 0)
            request[head_end + len(_END_OF_HEAD) :] = random.choice(_FRAGMENTS) * random.choice([1, 3])


def _with_its_length(request: bytes) -> bytes:
    """``request`` with the content length that it has, so that the body is what is wrong, not its frame."""
    head, end, body = request.partition(_END_OF_HEAD)
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    return b"\r\n".join([*lines, b"content-length: %d" % len(body)]) + end + body if end else request
