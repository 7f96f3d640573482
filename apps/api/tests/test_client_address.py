"""Who asks, as far as a network can tell."""

import pytest
from starlette.datastructures import Headers

from minitickets_api.client_address import client_address

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ([], "192.0.2.1"),
        (["203.0.113.7"], "203.0.113.7"),
        (["10.0.0.1, 203.0.113.7"], "203.0.113.7"),
        (["203.0.113.7, 10.0.0.1,  198.51.100.9 "], "198.51.100.9"),
        (["10.0.0.1", "203.0.113.7"], "203.0.113.7"),
        (["203.0.113.7:49152"], "203.0.113.7"),
        (["2001:db8:1:2:3:4:5:6"], "2001:0db8:0001:0002::/64"),
        (["2001:db8:1:2::ffff"], "2001:0db8:0001:0002::/64"),
        (["[2001:db8:1:2::1]:443"], "2001:0db8:0001:0002::/64"),
        (["::ffff:203.0.113.7"], "203.0.113.7"),
        (["203.0.113.7, nonsense"], "192.0.2.1"),
        (["203.0.113.7,"], "192.0.2.1"),
        (["203.0.113.7, <script>"], "192.0.2.1"),
    ],
)
def test_the_last_hop_is_believed_and_nothing_to_the_left_of_it(forwarded: list[str], address: str) -> None:
    headers = Headers(raw=[(b"x-forwarded-for", value.encode()) for value in forwarded])

    assert client_address(headers, peer="192.0.2.1") == address


def test_without_any_address_all_share_one_name() -> None:
    assert client_address(Headers(raw=[]), peer="") == "unknown"
