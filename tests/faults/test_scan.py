"""What the ledger reads from an image is what a scanner at the door reads."""

import pytest
import zxingcpp

from local.ticket_scan import _grey, scan
from minitickets_contracts.token import SigningKeys, TicketToken
from minitickets_tickets.qr import draw_qr

pytestmark = pytest.mark.unit

KEYS = SigningKeys("k1", {"k1": "key-of-the-search-" + "a" * 32})


def test_a_ticket_in_whose_modules_a_product_code_can_be_seen_is_one_ticket() -> None:
    token = TicketToken(
        ticket_id="736ebf51-1d95-489b-a97a-21d76bc78bf5:A-1",
        event_id="28b09a93-3dcd-4856-ae4e-cf4b2ad9a40a",
        seat="A-1",
        key_id="k1",
        issued_at=1,
        nonce="d85328b6be773448",
    )
    png = draw_qr(token.sign(KEYS))
    # One in some hundred tickets: a reader that looks for codes of every kind finds another in it.
    assert len(zxingcpp.read_barcodes(_grey(png))) == 2

    assert scan(png, KEYS) == (token.sign(KEYS), token)
