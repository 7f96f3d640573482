"""What a scanner at the door does: read the QR code in a ticket's PNG, and check its signature."""

import struct
import zlib

import zxingcpp

from minitickets_contracts.fields import ContractError
from minitickets_contracts.token import SigningKeys, TicketToken

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Depth 1, grey, deflate, standard filters, not interlaced: what the tickets function writes.
_ONE_BIT_GREY = bytes((1, 0, 0, 0, 0))
_EIGHT_PIXELS = [bytes(255 if byte >> (7 - bit) & 1 else 0 for bit in range(8)) for byte in range(256)]
# Asked for codes of every kind, the reader sees a product's bars in the modules of one ticket in a few hundred.
_QR_CODES = zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode)


class ScanError(RuntimeError):
    """The image is not a valid ticket; the message says why."""


def scan(png: bytes, keys: SigningKeys) -> tuple[str, TicketToken]:
    """The text of the QR code in ``png``, and what it says; ScanError if there is none, or nobody of ours signed it."""
    found = zxingcpp.read_barcodes(_grey(png), _QR_CODES)
    if len(found) != 1:
        raise ScanError(f"the image has {len(found)} codes instead of one")
    try:
        return found[0].text, TicketToken.verify(found[0].text, keys)
    except ContractError as error:
        raise ScanError(f"the code is not a ticket of ours: {error}") from error


def _grey(png: bytes) -> memoryview:
    """The picture, a byte a pixel. It reads what tickets are (1-bit grey, unfiltered rows); ScanError for all else."""
    if not png.startswith(_PNG_SIGNATURE) or png[12:16] != b"IHDR":
        raise ScanError("the image is not a PNG")
    width, height = struct.unpack(">II", png[16:24])
    row_bytes = (width + 7) // 8
    try:
        rows = zlib.decompress(b"".join(_chunks(png, b"IDAT")))
    except (zlib.error, struct.error) as error:
        raise ScanError(f"the PNG is damaged: {error}") from error
    lines = [rows[at : at + 1 + row_bytes] for at in range(0, len(rows), 1 + row_bytes)]
    if png[24:29] != _ONE_BIT_GREY or len(rows) != height * (1 + row_bytes) or any(line[0] for line in lines):
        raise ScanError("the PNG is not in the form that tickets have")
    pixels = b"".join(b"".join(_EIGHT_PIXELS[byte] for byte in line[1:])[:width] for line in lines)
    return memoryview(pixels).cast("B", (height, width))


def _chunks(png: bytes, kind: bytes) -> list[bytes]:
    found, at = [], len(_PNG_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        if png[at + 4 : at + 8] == kind:
            found.append(png[at + 8 : at + 8 + length])
        at += 12 + length
    return found
