"""A token is believed only if we signed exactly it."""

import base64
import contextlib
import json
import string
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_contracts import token as token_module
from minitickets_contracts.fields import ContractError
from minitickets_contracts.token import MAX_TOKEN_CHARACTERS, SigningKeys, TicketToken

pytestmark = pytest.mark.unit

BOOKING = "3f2b8f3e-5c1e-4b5e-9a51-0d6c9f0a7b11"
KEYS = SigningKeys("k1", {"k1": "first-key-" + "a" * 32})
SAID = TicketToken(
    ticket_id=f"{BOOKING}:A-1",
    event_id="8f14e45f-ceea-467f-a8d5-1c2d3e4f5a6b",
    seat="A-1",
    key_id="k1",
    issued_at=1_790_000_000,
    nonce="0123456789abcdef",
)
TOKEN = SAID.sign(KEYS)
BASE64URL = string.ascii_letters + string.digits + "-_"

said = st.builds(
    lambda booking, event, seat, key_id, issued_at, nonce: TicketToken(
        ticket_id=f"{booking}:{seat}", event_id=str(event), seat=seat, key_id=key_id, issued_at=issued_at, nonce=nonce
    ),
    st.uuids(),
    st.uuids(),
    st.from_regex(r"[A-Z0-9-]{1,8}", fullmatch=True),
    st.from_regex(r"[a-z0-9-]{1,16}", fullmatch=True),
    st.integers(min_value=0, max_value=10**10),
    st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
)


def refused(token: str, keys: SigningKeys = KEYS) -> ContractError:
    with pytest.raises(ContractError) as error:
        TicketToken.verify(token, keys)
    return error.value


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(payload: bytes) -> str:
    """A token that is ours by its signature, whatever it says."""
    head = f"mt1.{encoded(payload)}"
    return f"{head}.{encoded(token_module._mac(head, KEYS.keys['k1']))}"


@settings(deadline=None)
@given(said)
def test_a_token_says_what_was_signed(said: TicketToken) -> None:
    keys = SigningKeys(said.key_id, {said.key_id: "x" * 32})
    token = said.sign(keys)

    assert TicketToken.verify(token, keys) == said
    assert len(token) <= MAX_TOKEN_CHARACTERS
    assert token.isascii()


def test_no_token_can_be_longer_than_its_limit() -> None:
    longest = TicketToken(
        ticket_id=f"{BOOKING}:ABCDEFGH",
        event_id=SAID.event_id,
        seat="ABCDEFGH",
        key_id="k" * 16,
        issued_at=10**10,
        nonce="f" * 16,
    ).sign(SigningKeys("k" * 16, {"k" * 16: "x" * 32}))

    assert len(longest) <= MAX_TOKEN_CHARACTERS
    # JSON escapes nothing in these alphabets, so each further character would have to be one of a field's.
    assert json.loads(base64.urlsafe_b64decode(longest.split(".")[1] + "=="))["kid"] == "k" * 16


def test_a_token_holds_nothing_about_the_person() -> None:
    payload = json.loads(base64.urlsafe_b64decode(TOKEN.split(".")[1] + "=="))

    assert set(payload) == {"tid", "eid", "seat", "kid", "iat", "n"}


def test_a_token_changed_in_any_character_is_refused() -> None:
    believed = []
    for position in range(len(TOKEN)):
        before, after = TOKEN[:position], TOKEN[position + 1 :]
        for other in ["", TOKEN[position] * 2, *BASE64URL, *".=+/ \n\x00"]:
            if other == TOKEN[position]:
                continue
            with contextlib.suppress(ContractError):
                believed.append(TicketToken.verify(before + other + after, KEYS))
    assert believed == []
    assert TicketToken.verify(TOKEN, KEYS) == SAID


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_other_text_is_refused(text: str) -> None:
    refused(text)


def test_a_token_has_one_spelling() -> None:
    """The last character of the MAC carries unused bits: another one that decodes to the same bytes is refused."""
    head, mac = TOKEN.rsplit(".", 1)
    raw = base64.urlsafe_b64decode(mac + "=")
    twins = [mac[:-1] + last for last in BASE64URL if base64.urlsafe_b64decode(mac[:-1] + last + "=") == raw]

    assert len(twins) == 4
    assert [twin for twin in twins if twin == mac] == [mac]
    for twin in twins:
        if twin != mac:
            assert refused(f"{head}.{twin}").field == "mac"
    assert refused(f"{head}.{mac}=").field == "mac"


def test_a_token_of_a_foreign_key_is_refused_even_under_our_key_s_name() -> None:
    foreign = SigningKeys("k1", {"k1": "foreign-key" + "b" * 32})

    assert refused(SAID.sign(foreign)).problem == "is not signed by us"


def test_a_token_of_an_unknown_key_is_refused() -> None:
    unknown = SigningKeys("k9", {"k9": "k" * 40})

    assert refused(replace(SAID, key_id="k9").sign(unknown)).problem == "is not signed by us"


def test_a_token_signed_with_an_empty_key_under_an_unknown_name_is_refused() -> None:
    """An unknown key id is checked against the empty key, for its time only."""
    payload = encoded(json.dumps({"kid": "k9"}).encode())
    mac = encoded(token_module._mac(f"mt1.{payload}", ""))

    assert refused(f"mt1.{payload}.{mac}").problem == "is not signed by us"


def test_old_tickets_stay_valid_when_keys_rotate() -> None:
    rotated = SigningKeys("k2", {**KEYS.keys, "k2": "second-key-" + "c" * 32})

    assert TicketToken.verify(TOKEN, rotated) == SAID
    assert TicketToken.verify(replace(SAID, key_id="k2").sign(rotated), rotated).key_id == "k2"


def test_a_key_that_was_taken_away_verifies_nothing() -> None:
    assert refused(TOKEN, SigningKeys("k2", {"k2": "second-key-" + "c" * 32})).problem == "is not signed by us"


def test_a_token_is_not_signed_with_a_key_that_is_not_there() -> None:
    with pytest.raises(ContractError, match=r"^keyId: must name one of the keys"):
        replace(SAID, key_id="k2").sign(KEYS)


@pytest.mark.parametrize(
    ("token", "field"),
    [
        ("", "token"),
        ("mt1", "token"),
        ("mt1.a", "token"),
        ("mt1.a.b.c", "token"),
        ("mt2." + TOKEN[4:], "token"),
        ("a" * (MAX_TOKEN_CHARACTERS + 1), "token"),
        ("mt1.é.AAAA", "payload"),
        ("mt1.\ud800.AAAA", "payload"),
        ("mt1.e30=.AAAA", "payload"),
        ("mt1.e31.AAAA", "payload"),
        ("mt1.e30.AAAA", "kid"),
        ("mt1.W10.AAAA", "payload"),
        ("mt1.eA.AAAA", "payload"),
        (f"mt1.{encoded(b'[' * 200)}.AAAA", "payload"),
        (TOKEN.rsplit(".", 1)[0] + ".é", "mac"),
        (TOKEN.rsplit(".", 1)[0] + ".", "token"),
    ],
)
def test_a_malformed_token_is_refused_by_its_part(token: str, field: str) -> None:
    assert refused(token).field == field


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("tid", "no-ticket", "ticketId"),
        ("tid", f"{BOOKING}:A-2", "seat"),
        ("tid", None, "tid"),
        ("eid", "event", "eid"),
        ("seat", "a", "seat"),
        ("iat", -1, "iat"),
        ("iat", True, "iat"),
        ("iat", "now", "iat"),
        ("n", "xyz", "nonce"),
        ("n", "", "n"),
    ],
)
def test_even_a_signed_token_must_make_sense(name: str, value: object, field: str) -> None:
    payload = json.loads(base64.urlsafe_b64decode(TOKEN.split(".")[1] + "=="))

    assert refused(signed(json.dumps({**payload, name: value}).encode())).field == field
    del payload[name]
    assert refused(signed(json.dumps(payload).encode())).field == name


def test_an_untampered_payload_passes_the_same_way() -> None:
    payload = base64.urlsafe_b64decode(TOKEN.split(".")[1] + "==")

    assert TicketToken.verify(signed(payload), KEYS) == SAID


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"ticket_id": "x"}, "ticketId"),
        ({"ticket_id": "x:A-1"}, "bookingId"),
        ({"seat": "A-2"}, "seat"),
        ({"event_id": "x"}, "eventId"),
        ({"key_id": "K1"}, "keyId"),
        ({"key_id": "k" * 17}, "keyId"),
        ({"issued_at": -1}, "issuedAt"),
        ({"issued_at": 10**10 + 1}, "issuedAt"),
        ({"nonce": "F" * 16}, "nonce"),
        ({"nonce": "f" * 15}, "nonce"),
    ],
)
def test_a_token_that_makes_no_sense_is_not_signed(changes: dict[str, object], field: str) -> None:
    with pytest.raises(ContractError) as error:
        replace(SAID, **changes)  # type: ignore[arg-type]  # wrong values are the test
    assert error.value.field == field


@settings(deadline=None)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z0-9-]{1,16}", fullmatch=True), st.text(string.printable, min_size=32), min_size=1
    )
)
def test_the_signing_secret_is_read_as_it_was_written(keys: dict[str, str]) -> None:
    written = SigningKeys(next(iter(keys)), keys)

    assert SigningKeys.from_json(written.to_json()) == written


@pytest.mark.parametrize(
    ("secret", "field"),
    [
        ("", "secret"),
        ("k1", "secret"),
        ("[]", "secret"),
        ("[" * 20_000, "secret"),
        ("{}", "current"),
        ('{"current":"k1"}', "keys"),
        ('{"current":"k1","keys":[]}', "keys"),
        ('{"current":"k1","keys":{}}', "keys"),
        ('{"current":"k1","keys":{"k1":5}}', "keys"),
        ('{"current":"k1","keys":{"k1":"short"}}', "keys.k1"),
        ('{"current":"k1","keys":{"k1":"' + "é" * 40 + '"}}', "keys.k1"),
        ('{"current":"k1","keys":{"K1":"' + "a" * 40 + '"}}', "keys"),
        ('{"current":"k2","keys":{"k1":"' + "a" * 40 + '"}}', "current"),
        ('{"current":5,"keys":{"k1":"' + "a" * 40 + '"}}', "current"),
    ],
)
def test_a_malformed_secret_is_refused_by_name(secret: str, field: str) -> None:
    with pytest.raises(ContractError) as error:
        SigningKeys.from_json(secret)
    assert error.value.field == field


@pytest.mark.parametrize("template", ['{"current":"k1","keys":{"%s":"k1"}}', '{"current":"k1","keys":{"%s":5}}'])
def test_the_secret_is_never_printed_even_with_ids_and_keys_swapped(template: str) -> None:
    key = "canary-" + "a" * 40
    assert "canary" not in repr(SigningKeys("k1", {"k1": key}))

    with pytest.raises(ContractError) as error:
        SigningKeys.from_json(template % key)
    assert "canary" not in str(error.value)
