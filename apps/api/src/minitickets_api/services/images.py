"""Whether bytes are the image that they claim to be, from their structure alone: nothing is decoded."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

MAX_PIXELS_A_SIDE = 10_000
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Start-of-frame markers that hold the size; C4, C8 and CC are tables.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class NotAnImage(ValueError):  # noqa: N818 - it is a finding
    """The bytes are not a whole, single image of the type that they claim."""


@dataclass(frozen=True, kw_only=True)
class ImageType:
    """A kind of image that browsers show. ``measure`` returns (width, height) or raises NotAnImage."""

    content_type: str
    extension: str
    measure: Callable[[bytes], tuple[int, int]]


def check(data: bytes, *, content_type: str) -> ImageType:
    """The type of ``data``. Raises NotAnImage unless it is one whole image of ``content_type`` and nothing more.

    Nothing more: bytes before or after an image would make a file that is an image to us and a page to a browser.
    """
    kind = TYPES.get(content_type)
    if kind is None:
        raise NotAnImage(f"must be one of {', '.join(TYPES)}")
    try:
        width, height = kind.measure(data)
    except (IndexError, struct.error):
        raise NotAnImage("ends too early") from None
    if not (0 < width <= MAX_PIXELS_A_SIDE and 0 < height <= MAX_PIXELS_A_SIDE):
        raise NotAnImage(f"must have 1 to {MAX_PIXELS_A_SIDE} pixels a side")
    return kind


def content_type_of(data: bytes) -> str:
    """The type that the first bytes name; ``check`` says whether the rest is of it. Raises NotAnImage for none."""
    if data.startswith(_PNG_SIGNATURE):
        return "image/png"
    if data.startswith(b"\xff\xd8"):
        return "image/jpeg"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    raise NotAnImage("is neither a PNG nor a JPEG nor a WebP image")


def _measure_png(data: bytes) -> tuple[int, int]:
    if not data.startswith(_PNG_SIGNATURE) or data[12:16] != b"IHDR":
        raise NotAnImage("is no PNG")
    width, height = struct.unpack_from(">II", data, 16)
    position = len(_PNG_SIGNATURE)
    has_pixels = False
    while True:
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + 8 + length
        (checksum,) = struct.unpack_from(">I", data, end)
        if zlib.crc32(memoryview(data)[position + 4 : end]) != checksum:
            raise NotAnImage("is a damaged PNG")
        has_pixels = has_pixels or name == b"IDAT"
        position = end + 4
        if name == b"IEND":
            break
    if not has_pixels or position != len(data):
        raise NotAnImage("is not exactly one PNG")
    return width, height


def _measure_jpeg(data: bytes) -> tuple[int, int]:
    if not data.startswith(b"\xff\xd8") or not data.endswith(b"\xff\xd9"):
        raise NotAnImage("is not exactly one JPEG")
    position = 2
    size: tuple[int, int] | None = None
    while True:
        if data[position] != 0xFF:
            raise NotAnImage("is a damaged JPEG")
        marker = data[position + 1]
        if marker == 0xFF:  # padding
            position += 1
            continue
        (length,) = struct.unpack_from(">H", data, position + 2)
        if length < 2:
            raise NotAnImage("is a damaged JPEG")
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, position + 5)
            size = width, height
        if marker == 0xDA:  # pixels follow
            break
        position += 2 + length
    if size is None or data.find(b"\xff\xd9", position) != len(data) - 2:
        raise NotAnImage("is not exactly one JPEG")
    return size


def _measure_webp(data: bytes) -> tuple[int, int]:
    riff, size, form, name = struct.unpack_from("<4sI4s4s", data)
    if riff != b"RIFF" or form != b"WEBP" or size + 8 != len(data):
        raise NotAnImage("is not exactly one WebP")
    if name in (b"VP8 ", b"VP8L"):
        # The only chunk: what stood behind it would be anything but a picture.
        (length,) = struct.unpack_from("<I", data, 16)
        if 20 + length + length % 2 != len(data):
            raise NotAnImage("is not exactly one WebP")
    if name == b"VP8 ":
        if data[23:26] != b"\x9d\x01\x2a":
            raise NotAnImage("is a damaged WebP")
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if name == b"VP8L":
        if data[20] != 0x2F:
            raise NotAnImage("is a damaged WebP")
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if name == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        height = int.from_bytes(data[27:30], "little") + 1
        return _walk_webp(data, width, height)
    raise NotAnImage("is no WebP")


def _walk_webp(data: bytes, width: int, height: int) -> tuple[int, int]:
    position = 12
    names = set()
    while position < len(data):
        name, length = struct.unpack_from("<4sI", data, position)
        names.add(name)
        position += 8 + length + length % 2
    if position != len(data) or not names & {b"VP8 ", b"VP8L", b"ANMF"}:
        raise NotAnImage("is a damaged WebP")
    return width, height


TYPES = {
    kind.content_type: kind
    for kind in (
        ImageType(content_type="image/png", extension="png", measure=_measure_png),
        ImageType(content_type="image/jpeg", extension="jpg", measure=_measure_jpeg),
        ImageType(content_type="image/webp", extension="webp", measure=_measure_webp),
    )
}
