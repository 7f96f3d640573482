"""Which addresses SES gets, and in which form."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitickets_worker.address import AddressError, deliverable_address

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("ada@example.org", "ada@example.org"),
        ("ada.lovelace+tickets@mail.example.org", "ada.lovelace+tickets@mail.example.org"),
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
        ("ada@Bücher.example", "ada@xn--bcher-kva.example"),
        ("ada@例え.テスト", "ada@xn--r8jz45g.xn--zckzah"),
        ("ada@例え。テスト", "ada@xn--r8jz45g.xn--zckzah"),
        # IDNA 2003 would send this one to strasse.example.
        ("ada@straße.example", "ada@xn--strae-oqa.example"),
    ],
)
def test_a_domain_outside_ascii_is_punycoded(given: str, sent: str) -> None:
    assert deliverable_address(given) == sent


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("jürgen@example.org", "local-part-not-ascii"),
        ("用户@example.org", "local-part-not-ascii"),
        ("ada@", "domain-malformed"),
        ("@example.org", "local-part-malformed"),
        ("ada@exa mple.org", "domain-malformed"),
        ("ada@example..org", "domain-malformed"),
        ("ada@-example.org", "domain-malformed"),
        ("ada@" + "a" * 64 + ".org", "domain-malformed"),
        ("ada@" + "ü" * 64 + ".org", "domain-malformed"),
        ("a" * 65 + "@example.org", "local-part-malformed"),
        ("ada@[127.0.0.1]", "domain-malformed"),
        # One address must not become two, nor open a header or an encoded word.
        ("ada@example.org, eve@example.org", "local-part-malformed"),
        ("Eve <eve@example.org>", "local-part-malformed"),
        ("ada@example.org\r\nBcc: eve@example.org", "local-part-malformed"),
        ("=?utf-8?q?eve=40evil=2eexample=3e?=@example.org", "local-part-malformed"),
        ("ada", "local-part-malformed"),
    ],
)
def test_an_address_that_ses_can_never_deliver_to_is_refused_by_a_reason_without_the_address(
    address: str, reason: str
) -> None:
    with pytest.raises(AddressError) as refusal:
        deliverable_address(address)
    assert str(refusal.value) == refusal.value.reason == reason


@settings(deadline=None)
@given(
    st.text(max_size=80).map(lambda text: f"{text}@example.org") | st.text(max_size=80).map(lambda text: f"a@{text}")
)
def test_whatever_the_address_ses_gets_one_plain_ascii_address_or_none(address: str) -> None:
    try:
        sent = deliverable_address(address)
    except AddressError:
        return
    assert sent.isascii()
    assert sent.count("@") == 1
    assert not set(sent) & set(' \t\r\n,;:<>()[]"\\')
