"""tRPC's HTTP format, on procedures made for it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.types import Message, Scope

from minitickets_api import request_body
from minitickets_api.refusals import Code, Refusal
from minitickets_api.trpc import origins
from minitickets_api.trpc.endpoint import Endpoint
from minitickets_api.trpc.registry import Input, NoInput, Output, Registry

pytestmark = pytest.mark.unit


class Word(Input):
    word: str
    how_often: int = 1


class Said(Output):
    words_said: list[str]


class Visitor:
    def __init__(self, scope: Scope) -> None:
        self.headers = dict(scope["headers"])
        self.reply_headers: Sequence[tuple[bytes, bytes]] = []

    async def require_session(self) -> object:
        if b"cookie" not in self.headers:
            raise Refusal(Code.UNAUTHORIZED, "Log in first.")
        return None


class Parrot:
    """An endpoint whose procedures note what was said to them."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        registry: Registry[Visitor] = Registry()

        async def say(_: Visitor, wanted: Word) -> Said:
            if wanted.word == "rude":
                raise Refusal(Code.CONFLICT, "Not that word.", words=["rude"], retryAfterSeconds=7)
            if wanted.word == "bomb":
                raise RuntimeError("a secret inside")
            self.heard.append(wanted.word)
            return Said(words_said=[wanted.word] * wanted.how_often)

        async def silence(_: Visitor, __: NoInput) -> Said:
            return Said(words_said=[])

        registry.query("say", session=False)(say)
        registry.mutation("shout", session=False)(say)
        registry.mutation("whisper", session=True)(say)
        registry.query("silence", session=False)(silence)
        self.endpoint = Endpoint(registry, open_caller=Visitor, public_url="http://parrot.test")

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.endpoint)
            async with httpx.AsyncClient(transport=transport, base_url="http://parrot.test") as client:
                return await client.request(method, url, **options)

        return asyncio.run(send())

    def get(self, names: str, input_: object = None, *, batch: bool = False) -> httpx.Response:
        query = ["batch=1"] if batch else []
        if input_ is not None:
            query.append(f"input={quote(json.dumps(input_))}")
        return self.request("GET", f"/trpc/{names}?{'&'.join(query)}")


@pytest.fixture
def parrot() -> Parrot:
    return Parrot()


def code(reply: httpx.Response) -> tuple[int, str]:
    error = reply.json()["error"]
    assert error["data"]["httpStatus"] == reply.status_code
    assert error["code"] == Code[error["data"]["code"]].number
    return reply.status_code, error["data"]["code"]


def test_a_query_is_answered_in_the_envelope_of_a_result(parrot: Parrot) -> None:
    reply = parrot.get("say", {"word": "hello", "howOften": 2})

    assert (reply.status_code, reply.json()) == (200, {"result": {"data": {"wordsSaid": ["hello", "hello"]}}})
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "no-store"


def test_a_refusal_has_trpcs_shape_with_its_details_beside_the_code(parrot: Parrot) -> None:
    reply = parrot.get("say", {"word": "rude"})

    error = reply.json()["error"]
    del error["data"]["correlationId"]
    assert reply.status_code == 409
    assert error == {
        "message": "Not that word.",
        "code": -32009,
        "data": {
            "code": "CONFLICT",
            "httpStatus": 409,
            "path": "say",
            "words": ["rude"],
            "retryAfterSeconds": 7,
        },
    }
    assert reply.headers["retry-after"] == "7"


def test_a_fault_of_ours_tells_nothing_of_itself(parrot: Parrot, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        reply = parrot.get("say", {"word": "bomb"})

    assert code(reply) == (500, "INTERNAL_SERVER_ERROR")
    assert "secret" not in reply.text
    assert "RuntimeError" not in reply.text
    assert [record.message for record in caplog.records] == ["a procedure failed"]


@pytest.mark.parametrize(
    ("names", "words", "status"),
    [
        ("say,say", ["one", "two"], 200),
        ("say,say", ["one", "rude"], 207),
        ("say,nothing", ["one", "two"], 207),
        ("say,say", ["rude", "rude"], 409),
        ("say,say,say", ["bomb", "one", "rude"], 207),
    ],
)
def test_each_call_of_a_batch_has_its_own_outcome(parrot: Parrot, names: str, words: list[str], status: int) -> None:
    inputs = {str(position): {"word": word} for position, word in enumerate(words)}

    reply = parrot.get(names, inputs, batch=True)

    assert reply.status_code == status
    outcomes = reply.json()
    assert len(outcomes) == len(words)
    for name, word, outcome in zip(names.split(","), words, outcomes, strict=True):
        assert ("result" in outcome) == (word in ("one", "two") and name == "say")


def test_a_batch_of_mutations_comes_as_one_object_by_position(parrot: Parrot) -> None:
    reply = parrot.request("POST", "/trpc/shout,shout?batch=1", json={"0": {"word": "a"}, "1": {"word": "b"}})

    assert [outcome["result"]["data"]["wordsSaid"] for outcome in reply.json()] == [["a"], ["b"]]


def test_a_batch_of_one_is_answered_as_a_batch(parrot: Parrot) -> None:
    assert isinstance(parrot.get("say", {"0": {"word": "a"}}, batch=True).json(), list)


def test_without_the_batch_flag_a_comma_is_part_of_a_name(parrot: Parrot) -> None:
    assert code(parrot.get("say,say", {"word": "a"})) == (404, "NOT_FOUND")


def test_a_batch_holds_at_most_ten_calls(parrot: Parrot) -> None:
    ten = {str(position): {"word": "a"} for position in range(10)}
    assert parrot.get(",".join(["say"] * 10), ten, batch=True).status_code == 200
    parrot.heard.clear()

    assert code(parrot.get(",".join(["say"] * 11), ten, batch=True)) == (400, "BAD_REQUEST")
    assert parrot.heard == []


@pytest.mark.parametrize(
    ("name", "input_"),
    [("silence", None), ("silence", {})],
)
def test_an_input_may_be_left_out_where_nothing_is_required(parrot: Parrot, name: str, input_: object) -> None:
    assert parrot.get(name, input_).status_code == 200


@pytest.mark.parametrize(
    ("method", "name", "allowed"),
    [("POST", "say", "GET"), ("GET", "shout", "POST"), ("GET", "whisper", "POST")],
)
def test_queries_come_by_get_and_mutations_by_post(parrot: Parrot, method: str, name: str, allowed: str) -> None:
    options = {"json": {"word": "a"}} if method == "POST" else {}
    reply = parrot.request(method, f"/trpc/{name}", **options)

    assert code(reply) == (405, "METHOD_NOT_SUPPORTED")
    assert allowed in reply.json()["error"]["message"]
    assert parrot.heard == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused_and_told_which_there_are(parrot: Parrot, method: str) -> None:
    reply = parrot.request(method, "/trpc/say")

    assert code(reply) == (405, "METHOD_NOT_SUPPORTED")
    assert reply.headers["allow"] == "GET, HEAD, POST"


def test_head_is_answered_without_a_body(parrot: Parrot) -> None:
    reply = parrot.request("HEAD", "/trpc/say")

    assert (reply.status_code, reply.content) == (204, b"")


@pytest.mark.parametrize(
    ("input_", "says"),
    [
        (None, "word: Field required"),
        ({}, "word: Field required"),
        ([], "must be a JSON object"),
        ("word", "must be a JSON object"),
        ({"word": 1}, "word: Input should be a valid string"),
        ({"word": "a", "howOften": "2"}, "howOften: Input should be a valid integer"),
        ({"word": "a", "howOften": True}, "howOften: Input should be a valid integer"),
        ({"word": "a", "howOften": 1.5}, "howOften: Input should be a valid integer"),
        ({"word": "a", "how_often": 2}, "a field that does not exist"),
        ({"word": "a", "admin": True}, "a field that does not exist"),
    ],
)
def test_wrong_input_is_told_where_and_how_it_is_wrong(parrot: Parrot, input_: object, says: str) -> None:
    reply = parrot.get("say", input_)

    assert code(reply) == (400, "BAD_REQUEST")
    assert says in reply.json()["error"]["message"]
    assert parrot.heard == []


def test_a_refused_input_is_not_repeated_in_the_reply(parrot: Parrot) -> None:
    reply = parrot.get("say", {"word": 1, "hunter2": "hunter3", "howOften": "hunter4"})

    assert "hunter" not in reply.text


@pytest.mark.parametrize(
    "url",
    [
        "/trpc/",
        "/trpc/Say",
        "/trpc/say/",
        "/trpc/say%00",
        "/trpc/__init__",
        "/trpc/say.say",
        "/trpc/%F0%9F%98%80",
    ],
)
def test_an_unknown_procedure_is_not_found(parrot: Parrot, url: str) -> None:
    assert code(parrot.request("GET", url)) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "query",
    [
        "input=%FF",
        "input=%22%ED%A0%80%22",
        "input=%7B",
        "input=%7B%22word%22%3A%22%5Cu0000%22%7D",
        "input=" + "[" * 16_000,
        "batch=1&input=%5B%5D",
        "batch=1&input=%7B%221%22%3A%7B%7D%7D",
        "batch=1&input=%7B%22a%22%3A%7B%7D%7D",
        "&".join(["a=1"] * 50),
        "input=%7B%7D&input=%7B%7D",
        "batch=1&batch=0",
    ],
)
def test_a_malformed_query_string_is_refused(parrot: Parrot, query: str) -> None:
    reply = parrot.request("GET", f"/trpc/say?{query}")

    assert reply.status_code == 400
    assert code(reply)[1] in ("BAD_REQUEST", "PARSE_ERROR")


def test_a_query_string_has_a_limit(parrot: Parrot) -> None:
    assert code(parrot.request("GET", "/trpc/say?input=" + "a" * 16_400)) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/json; charset=utf-16",
        "text/plain; application/json",
    ],
)
def test_a_mutation_must_say_that_it_is_json(parrot: Parrot, content_type: str) -> None:
    reply = parrot.request("POST", "/trpc/shout", content=b'{"word":"a"}', headers={"content-type": content_type})

    assert code(reply) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert parrot.heard == []


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON", "application/json; charset=UTF-8"])
def test_json_may_be_spelt_in_any_case(parrot: Parrot, content_type: str) -> None:
    reply = parrot.request("POST", "/trpc/shout", content=b'{"word":"a"}', headers={"content-type": content_type})

    assert reply.status_code == 200


def test_a_compressed_body_is_refused(parrot: Parrot) -> None:
    reply = parrot.request("POST", "/trpc/shout", json={"word": "a"}, headers={"content-encoding": "gzip"})

    assert code(reply) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_that_says_it_is_too_large_is_not_read(parrot: Parrot) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        read += 1
        yield b"x"

    reply = parrot.request(
        "POST",
        "/trpc/shout",
        content=body(),
        headers={"content-type": "application/json", "content-length": str(2 * 1024 * 1024)},
    )

    assert code(reply) == (413, "PAYLOAD_TOO_LARGE")
    assert read == 0


def test_a_body_that_never_ends_is_refused_once_it_is_too_large(parrot: Parrot) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(10_000):  # to a test, 10 MB never end
            read += 1
            yield b" " * 1024

    reply = parrot.request("POST", "/trpc/shout", content=body(), headers={"content-type": "application/json"})

    assert code(reply) == (413, "PAYLOAD_TOO_LARGE")
    assert read <= 66


def test_a_body_that_does_not_come_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "BODY_SECONDS", 0.05)
    parts = iter([b'{"word":', b' "a'])

    async def receive() -> Message:
        part = next(parts, None)
        if part is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": True}

    async def read() -> bytes:
        async with asyncio.timeout(5):
            return await request_body.read_body(Headers(raw=[]), receive, max_bytes=1000)

    with pytest.raises(Refusal, match="did not arrive") as caught:
        asyncio.run(read())
    assert caught.value.code is Code.BAD_REQUEST


def test_a_body_of_exactly_the_limit_is_read(parrot: Parrot) -> None:
    document = b'{"word":"' + b"a" * (64 * 1024 - 11) + b'"}'
    assert len(document) == 64 * 1024
    headers = {"content-type": "application/json"}

    assert parrot.request("POST", "/trpc/shout", content=document, headers=headers).status_code == 200
    assert code(parrot.request("POST", "/trpc/shout", content=document + b" ", headers=headers))[0] == 413


def test_whoever_is_not_signed_in_is_told_so_before_the_input_is_looked_at(parrot: Parrot) -> None:
    reply = parrot.request("POST", "/trpc/whisper", json={"nonsense": True})

    assert code(reply) == (401, "UNAUTHORIZED")


def test_a_procedure_cannot_be_registered_twice() -> None:
    registry: Registry[Visitor] = Registry()

    async def silence(_: Visitor, __: NoInput) -> Said:
        return Said(words_said=[])

    registry.query("silence", session=False)(silence)
    with pytest.raises(ValueError, match="silence"):
        registry.mutation("silence", session=False)(silence)


OWN = "http://parrot.test"


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        pytest.param({}, True, id="a program"),
        pytest.param({"origin": OWN}, True, id="our own page"),
        pytest.param({"origin": OWN, "sec-fetch-site": "same-origin"}, True, id="our own page in a newer browser"),
        pytest.param({"sec-fetch-site": "same-origin"}, True, id="our own page without an origin"),
        pytest.param({"origin": "HTTP://PARROT.TEST"}, True, id="our own page in capitals"),
        pytest.param({"sec-fetch-site": "same-site"}, False, id="a sibling's page"),
        pytest.param({"sec-fetch-site": "cross-site"}, False, id="a foreign page without an origin"),
        pytest.param({"sec-fetch-site": "none"}, False, id="an address bar"),
        pytest.param({"origin": "http://evil.test"}, False, id="a foreign page"),
        pytest.param({"origin": "http://evil.test", "sec-fetch-site": "same-origin"}, False, id="a liar"),
        pytest.param({"origin": "null"}, False, id="a sandboxed frame"),
        pytest.param({"origin": ""}, False, id="an empty origin"),
        pytest.param({"origin": "https://parrot.test"}, False, id="another scheme"),
        pytest.param({"origin": "http://parrot.test:81"}, False, id="another port"),
        pytest.param({"origin": "http://parrot.test.evil.test"}, False, id="a longer name"),
        pytest.param({"origin": "http://evil.test", "host": "evil.test"}, False, id="a forged host"),
    ],
)
def test_only_our_own_pages_and_programs_may_change_something(
    parrot: Parrot, headers: dict[str, str], is_let_in: bool
) -> None:
    reply = parrot.request("POST", "/trpc/shout", json={"word": "a"}, headers=headers)

    if is_let_in:
        assert reply.status_code == 200
    else:
        assert code(reply) == (403, "FORBIDDEN")
    assert parrot.heard == (["a"] if is_let_in else [])


@pytest.mark.parametrize(
    ("headers", "public_url", "is_ours"),
    [
        pytest.param([("host", "127.0.0.1:80"), ("origin", "http://127.0.0.1:80")], None, True, id="where it was sent"),
        pytest.param([("host", "a.test"), ("origin", "http://evil.test")], None, False, id="a foreign page"),
        pytest.param(
            [("host", "a.test"), ("origin", "http://evil.test"), ("x-forwarded-host", "evil.test")],
            None,
            False,
            id="a forwarded host that anybody may write",
        ),
        pytest.param([("origin", "http://")], None, False, id="no host"),
        pytest.param([("origin", OWN), ("origin", "http://evil.test")], OWN, False, id="two origins, ours first"),
        pytest.param([("origin", "http://evil.test"), ("origin", OWN)], OWN, False, id="two origins, ours last"),
        pytest.param([("origin", f"{OWN}, http://evil.test")], OWN, False, id="two origins in one"),
    ],
)
def test_our_own_origin_is_the_public_url_or_else_the_host_that_was_asked(
    headers: list[tuple[str, str]], public_url: str | None, is_ours: bool
) -> None:
    raw = Headers(raw=[(name.encode(), value.encode()) for name, value in headers])
    if is_ours:
        origins.check(raw, public_url=public_url)
        return
    with pytest.raises(Refusal) as caught:
        origins.check(raw, public_url=public_url)
    assert caught.value.code is Code.FORBIDDEN
