import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_contracts.fields import ContractError
from minitickets_contracts.token import MAX_TOKEN_CHARACTERS, SigningKeys, TicketToken
from minitickets_tickets.qr import draw_qr
from tests.fixtures.ticket_fakes import read_qr

pytestmark = pytest.mark.unit

ALPHABET = string.ascii_letters + string.digits + "-_."


def token_of(characters: int) -> str:
    return "".join(random.Random(characters).choices(ALPHABET, k=characters))  # noqa: S311 - repeatable on purpose


@pytest.mark.parametrize("characters", [*range(1, 30), *range(30, MAX_TOKEN_CHARACTERS, 7), MAX_TOKEN_CHARACTERS])
def test_a_token_of_any_length_decodes_from_its_image(characters: int) -> None:
    token = token_of(characters)

    assert read_qr(draw_qr(token)) == token


@settings(deadline=None)
@given(
    booking=st.uuids(),
    event=st.uuids(),
    seat=st.from_regex(r"[A-Z0-9-]{1,8}", fullmatch=True),
    nonce=st.from_regex(r"[0-9a-f]{16}", fullmatch=True),
    issued_at=st.integers(min_value=0, max_value=10**10),
)
def test_real_tokens_decode_from_their_images(
    booking: object, event: object, seat: str, nonce: str, issued_at: int
) -> None:
    keys = SigningKeys("k1", {"k1": "k" * 32})
    token = TicketToken(
        ticket_id=f"{booking}:{seat}", event_id=str(event), seat=seat, key_id="k1", issued_at=issued_at, nonce=nonce
    ).sign(keys)

    assert read_qr(draw_qr(token)) == token


def test_the_longest_possible_token_decodes_from_its_image() -> None:
    keys = SigningKeys("k" * 16, {"k" * 16: "k" * 32})
    longest = TicketToken(
        ticket_id="ffffffff-ffff-4fff-bfff-ffffffffffff:ABCDEFGH",
        event_id="ffffffff-ffff-4fff-bfff-ffffffffffff",
        seat="ABCDEFGH",
        key_id="k" * 16,
        issued_at=10**10,
        nonce="f" * 16,
    ).sign(keys)

    assert TicketToken.verify(read_qr(draw_qr(longest)), keys).seat == "ABCDEFGH"


def test_the_same_token_gives_the_same_bytes() -> None:
    assert draw_qr(token_of(180)) == draw_qr(token_of(180))


def test_an_image_of_a_usual_token_has_about_a_kilobyte() -> None:
    assert len(draw_qr(token_of(240))) < 1500


def test_the_smallest_version_that_holds_the_token_is_taken() -> None:
    def modules(png: bytes) -> int:
        return int.from_bytes(png[16:20], "big") // 8 - 8

    # Capacities in bytes at error correction M: version 1 holds 14, version 9 holds 180, version 10 holds 213.
    assert [modules(draw_qr(token_of(n))) for n in (14, 15, 180, 181, 213, 214)] == [21, 25, 53, 57, 57, 61]


def test_an_oversized_text_is_refused() -> None:
    with pytest.raises(ContractError, match="token: must have at most 320 characters"):
        draw_qr("a" * (MAX_TOKEN_CHARACTERS + 1))


def test_a_text_that_scanners_may_read_differently_is_refused() -> None:
    with pytest.raises(ContractError, match="token: must be ASCII"):
        draw_qr("é")
