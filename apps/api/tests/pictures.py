"""The smallest pictures that are whole."""

import struct
import zlib


def png(text: bytes = b"") -> bytes:
    """A PNG of one pixel; another ``text`` makes it another file."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\x00\x00")
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + (chunk(b"tEXt", text) if text else b"")
        + chunk(b"IDAT", pixels)
        + chunk(b"IEND", b"")
    )
