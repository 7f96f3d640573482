"""What somebody changes on its way opens nothing: cursors, session tokens, forwarded addresses."""

import base64
from collections.abc import Iterator
from uuid import uuid4

import pytest

from minitickets_api import cursors
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services.rate_limits import LOGIN_BY_ACCOUNT, LOGIN_BY_ACCOUNT_AND_ADDRESS
from tests.fixtures.running_api import PASSWORD, RunningApi

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def _changed(text: str) -> Iterator[str]:
    """Each character replaced, left out, or doubled; and the ends cut off."""
    for place, character in enumerate(text):
        other = _ALPHABET[(_ALPHABET.index(character) + 17) % len(_ALPHABET)]
        yield f"{text[:place]}{other}{text[place + 1 :]}"
        yield f"{text[:place]}{text[place + 1 :]}"
        yield f"{text[:place]}{character}{text[place:]}"
    yield from (text[:-4], text[4:], f"{text}AAAA", text.swapcase(), text[::-1])


@pytest.mark.unit
def test_a_cursor_that_was_changed_anywhere_is_none() -> None:
    parts = {"query": "bookings.mine", "owner": str(uuid4())}
    position = ["2026-12-31T20:00:00+00:00", str(uuid4())]
    cursor = cursors.encode(**parts, position=position)
    assert cursors.decode(cursor, **parts, length=2) == position

    for changed in _changed(cursor):
        try:
            # The last character of base64 may hold bits that mean nothing; then it is the same cursor.
            assert cursors.decode(changed, **parts, length=2) == position
            assert changed[:-1] == cursor[:-1]
        except Refusal as refusal:
            assert refusal.code is Code.BAD_REQUEST  # noqa: PT017 - most are refused, which is the point


@pytest.mark.unit
def test_a_cursor_opens_the_list_of_its_query_and_owner_and_no_other() -> None:
    mine = {"query": "bookings.mine", "owner": str(uuid4())}
    cursor = cursors.encode(**mine, position=["a", "b"])
    assert cursors.decode(cursor, **mine, length=2) == ["a", "b"]

    for other in ({"query": "events.mine"}, {"owner": str(uuid4())}, {"owner": ""}, {"query": "", "owner": ""}):
        with pytest.raises(Refusal) as caught:
            cursors.decode(cursor, **{**mine, **other}, length=2)
        assert caught.value.code is Code.BAD_REQUEST, other


@pytest.mark.integration
def test_a_session_token_that_was_changed_anywhere_signs_nobody_in(api: RunningApi) -> None:
    ada = api.customer()
    token = ada.http.cookies["session"]
    eve = api.stranger()

    def user(cookie: str) -> object:
        reply = eve.http.get("/trpc/auth.me", headers={"cookie": f"session={cookie}"})
        assert reply.status_code == 200, reply.text
        return reply.json()["result"]["data"]["user"]

    assert user(token) is not None
    assert [changed for changed in _changed(token) if user(changed) is not None] == []
    # And what the database keeps of it is no token, nor does it hold one.
    [kept] = api.sql("select token_hash from sessions where user_id = $1", ada.user_id)
    digest = kept["token_hash"]
    assert token.encode() not in digest
    assert base64.urlsafe_b64decode(f"{token}=") not in digest
    for spelling in (digest.hex(), digest.hex()[:43], base64.urlsafe_b64encode(digest).decode().rstrip("=")):
        assert user(spelling) is None


@pytest.mark.integration
def test_whoever_writes_addresses_into_the_header_is_still_counted_by_their_own(api: RunningApi) -> None:
    account = f"{uuid4().hex}@example.org"
    api.customer(account)
    eve = api.stranger()

    def guess(forwarded: str) -> int:
        given = {"email": account, "password": f"{PASSWORD}?"}
        headers = {"x-forwarded-for": forwarded}
        return eve.http.post("/trpc/auth.login", json=given, headers=headers).status_code

    own = "203.0.113.9"  # which the load balancer appends
    allowed = LOGIN_BY_ACCOUNT_AND_ADDRESS.attempts
    spoofed = [f"198.51.100.{n}, {own}" for n in range(allowed)] + [f"{own}, 10.0.0.1, {own}", f"[::1], {own}", own]
    assert [guess(forwarded) for forwarded in spoofed] == [401] * allowed + [429] * 3

    # Who really comes from many addresses is stopped by the account's own limit.
    codes = [guess(f"198.51.100.{n % 250}") for n in range(LOGIN_BY_ACCOUNT.attempts)]
    assert codes[-1] == 429
    assert 0 < codes.count(401) < LOGIN_BY_ACCOUNT.attempts


@pytest.mark.integration
@pytest.mark.parametrize(
    "header",
    ["x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip", "forwarded", "x-forwarded-for"],
)
def test_no_header_but_the_load_balancers_last_word_says_who_asks(api: RunningApi, header: str) -> None:
    account, eve = f"{uuid4().hex}@example.org", api.stranger()

    def guess(number: int) -> int:
        says = f"for=198.51.100.{number}" if header == "forwarded" else f"198.51.100.{number}"
        # A last word that is no address leaves whoever is at the other end of the connection.
        headers = {"x-forwarded-for": f"{says}, nonsense"} if header == "x-forwarded-for" else {header: says}
        given = {"email": account, "password": f"{PASSWORD}?"}
        return eve.http.post("/trpc/auth.login", json=given, headers=headers).status_code

    allowed = LOGIN_BY_ACCOUNT_AND_ADDRESS.attempts
    assert [guess(number) for number in range(allowed + 2)] == [401] * allowed + [429] * 2
