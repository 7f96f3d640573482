"""JSON from strangers."""

import time

import pytest

from minitickets_api.refusals import Code, Refusal
from minitickets_api.trpc import json_documents

pytestmark = pytest.mark.unit


def refused(document: bytes) -> Code:
    with pytest.raises(Refusal) as caught:
        json_documents.parse(document)
    return caught.value.code


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="cut short"),
        pytest.param(b"{'a': 1}", id="single quotes"),
        pytest.param(b'{"a": NaN}', id="NaN"),
        pytest.param(b'{"a": Infinity}', id="Infinity"),
        pytest.param(b'{"a": -Infinity}', id="negative infinity"),
        pytest.param(b'"\xff"', id="no UTF-8"),
        pytest.param(b'"\xed\xa0\x80"', id="a surrogate encoded as UTF-8"),
        pytest.param(b'"\x00"', id="a raw NUL"),
        pytest.param(b"\xef\xbb\xbf{}", id="a byte order mark"),
        pytest.param(b"[" * 20_000 + b"]" * 20_000, id="20,000 arrays deep"),
        pytest.param(b'{"a":' * 20_000 + b"1" + b"}" * 20_000, id="20,000 objects deep"),
        pytest.param(b"[" * 20_000, id="20,000 arrays that never end"),
        pytest.param(b"[" * 33 + b"]" * 33, id="one level too deep"),
    ],
)
def test_what_is_not_json_is_a_parse_error(document: bytes) -> None:
    assert refused(document) is Code.PARSE_ERROR


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b'"a\\u0000b"', id="an escaped NUL"),
        pytest.param(b'{"\\u0000": 1}', id="an escaped NUL in a key"),
        pytest.param(b'[{"a": ["\\ud800"]}]', id="a lone high surrogate, nested"),
        pytest.param(b'"\\udc00"', id="a lone low surrogate"),
        pytest.param(b'[{"a": 1, "b": 2, "a": 1}]', id="a field twice"),
        pytest.param(b'{"a": 1, "\\u0061": 2}', id="a field twice, once in disguise"),
        pytest.param(b"1e999", id="too large a float"),
        pytest.param(b"9223372036854775808", id="one more than 64 bits hold"),
        pytest.param(b"-9223372036854775809", id="one less than 64 bits hold"),
        pytest.param(b"9" * 5000, id="more digits than Python converts"),
    ],
)
def test_what_could_not_be_stored_is_a_bad_request(document: bytes) -> None:
    assert refused(document) is Code.BAD_REQUEST


def test_a_string_that_never_ends_costs_no_more_than_one_that_does() -> None:
    brackets = b"[]" * (json_documents.MAX_DEPTH + 1)
    hostile = brackets + b'\\"' * 30_000

    before = time.process_time()
    assert refused(hostile) is Code.PARSE_ERROR

    assert time.process_time() - before < 1  # milliseconds; it was half a minute


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (b'{"a": [1, -2.5, true, null, "\\u00e9\\ud83d\\ude00"]}', {"a": [1, -2.5, True, None, "é\U0001f600"]}),
        (b"[" * 32 + b"]" * 32, None),
        (b'["' + b"[" * 100 + b'"]', ["[" * 100]),
        (b'["\\"' + b"{" * 100 + b'"]', ['"' + "{" * 100]),
        (b"[" + b"[]," * 100 + b"[]]", [[]] * 101),
        (b"9223372036854775807", 2**63 - 1),
    ],
)
def test_ordinary_json_is_read_as_it_is(document: bytes, value: object) -> None:
    parsed = json_documents.parse(document)

    assert value is None or parsed == value
