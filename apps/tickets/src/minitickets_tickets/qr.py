"""QR codes as 1-bit PNGs, without Pillow (ADR 0006).

The package's usual way tries all eight masks and draws with Pillow: 15 ms a ticket, and native code in the zip. A
scanner reads any mask, so one is fixed; and at eight pixels a module each module of a row is exactly one byte.
"""

import struct
import zlib
from bisect import bisect_left

from qrcode.constants import ERROR_CORRECT_M
from qrcode.main import QRCode
from qrcode.util import BIT_LIMIT_TABLE, MODE_8BIT_BYTE, QRData, length_in_bits

from minitickets_contracts.fields import ContractError
from minitickets_contracts.token import MAX_TOKEN_CHARACTERS

BORDER_MODULES = 4  # ISO/IEC 18004 asks for a quiet zone of four
PIXELS_PER_MODULE = 8
_MASK = 0
_MODE_BITS = 4
_BLACK, _WHITE = b"\x00", b"\xff"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def draw_qr(text: str) -> bytes:
    """A PNG of ``text``'s QR code (error correction M), the same bytes for the same text.

    Raises ContractError for a text that is longer than any token, or not ASCII.
    """
    if len(text) > MAX_TOKEN_CHARACTERS:
        raise ContractError("token", f"must have at most {MAX_TOKEN_CHARACTERS} characters to be drawn")
    if not text.isascii():
        raise ContractError("token", "must be ASCII to be drawn")
    data = text.encode()
    code = QRCode(version=_version(len(data)), error_correction=ERROR_CORRECT_M, mask_pattern=_MASK)
    code.add_data(QRData(data, mode=MODE_8BIT_BYTE))
    code.make(fit=False)
    return _png(code.modules)


def _version(data_bytes: int) -> int:
    """The smallest version that holds so many bytes; how long the length itself is depends on the version."""
    limits: list[int] = BIT_LIMIT_TABLE[ERROR_CORRECT_M]
    version = 1
    while True:
        needed = _MODE_BITS + length_in_bits(MODE_8BIT_BYTE, version) + 8 * data_bytes
        enough = bisect_left(limits, needed, version)
        if enough == version:
            return version
        version = enough


def _png(modules: list[list[bool | None]]) -> bytes:
    side = BORDER_MODULES * _WHITE
    blank = (b"\x00" + _WHITE * (len(modules) + 2 * BORDER_MODULES)) * (PIXELS_PER_MODULE * BORDER_MODULES)
    lines = [
        (b"\x00" + side + b"".join([_BLACK if is_dark else _WHITE for is_dark in row]) + side) * PIXELS_PER_MODULE
        for row in modules
    ]
    pixels = PIXELS_PER_MODULE * (len(modules) + 2 * BORDER_MODULES)
    header = struct.pack(">IIBBBBB", pixels, pixels, 1, 0, 0, 0, 0)  # 1 bit, greyscale, nothing special
    image = zlib.compress(b"".join([blank, *lines, blank]), 6)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", image) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
