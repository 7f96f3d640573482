"""Whether bytes are the image that they claim to be."""

import struct
import zlib

import pytest

from minitickets_api.services import images
from minitickets_api.services.images import NotAnImage

pytestmark = pytest.mark.unit


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int = 2, height: int = 3) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    pixels = zlib.compress(b"\x00\x00" * 3)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def jpeg(width: int = 2, height: int = 3) -> bytes:
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    scan = b"\xff\xda" + struct.pack(">HB", 8, 1) + b"\x01\x00\x00\x3f\x00"
    return b"\xff\xd8\xff\xe0\x00\x04ab" + frame + scan + b"\x12\xff\x00\x34" + b"\xff\xd9"


def webp(body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def webp_chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\x00" * (len(data) % 2)


LOSSY = webp(webp_chunk(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 2, 3) + b"\x00" * 6))
LOSSLESS = webp(webp_chunk(b"VP8L", b"\x2f" + struct.pack("<I", 1 | 2 << 14) + b"\x00" * 6))
EXTENDED = webp(
    webp_chunk(b"VP8X", b"\x00" * 4 + b"\x01\x00\x00" + b"\x02\x00\x00")
    + webp_chunk(b"VP8L", b"\x2f" + struct.pack("<I", 1 | 2 << 14) + b"\x00" * 5)
)
WHOLE = {
    "png": (png(), "image/png"),
    "jpeg": (jpeg(), "image/jpeg"),
    "lossy webp": (LOSSY, "image/webp"),
    "lossless webp": (LOSSLESS, "image/webp"),
    "extended webp": (EXTENDED, "image/webp"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_the_first_bytes_name_the_type(name: str) -> None:
    data, content_type = WHOLE[name]
    assert images.content_type_of(data) == content_type


@pytest.mark.parametrize(
    "data", [b"", b"<svg xmlns='x'/>", b"GIF89a", b"RIFF\x00\x00\x00\x00WAVE", b"%PDF-1.7", b"\x89PNG"]
)
def test_bytes_of_another_type_are_named_as_no_image(data: bytes) -> None:
    with pytest.raises(NotAnImage, match="neither a PNG"):
        images.content_type_of(data)


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_image_of_its_type_is_accepted(name: str) -> None:
    data, content_type = WHOLE[name]

    kind = images.check(data, content_type=content_type)

    assert kind.content_type == content_type
    assert kind.measure(data) == (2, 3)


@pytest.mark.parametrize("name", WHOLE)
def test_no_part_of_an_image_is_an_image(name: str) -> None:
    data, content_type = WHOLE[name]

    for length in range(len(data)):
        with pytest.raises(NotAnImage):
            images.check(data[:length], content_type=content_type)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("extra", [b"\x00", b"<script>alert(1)</script>", b"\xff\xd9"])
def test_an_image_with_something_behind_or_before_it_is_refused(name: str, extra: bytes) -> None:
    data, content_type = WHOLE[name]

    for polyglot in (data + extra, extra + data):
        with pytest.raises(NotAnImage):
            images.check(polyglot, content_type=content_type)


@pytest.mark.parametrize("picture", [LOSSY, LOSSLESS])
def test_a_webp_with_something_behind_its_picture_is_refused_even_where_the_size_includes_it(picture: bytes) -> None:
    hidden = webp(picture[12:] + webp_chunk(b"HIDE", b"<script>alert(1)</script>"))

    with pytest.raises(NotAnImage, match="exactly one"):
        images.check(hidden, content_type="image/webp")


@pytest.mark.parametrize("name", WHOLE)
def test_an_image_of_another_type_than_it_claims_is_refused(name: str) -> None:
    data, content_type = WHOLE[name]

    for claimed in {*images.TYPES, "image/svg+xml", "text/html", "image/png; charset=utf-8", ""} - {content_type}:
        with pytest.raises(NotAnImage):
            images.check(data, content_type=claimed)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        b"GIF89a" + b"\x00" * 100,
        b"\x89PNG\r\n\x1a\n<script>alert(1)</script>",
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 1, 0, 0, 0, 0)) + chunk(b"IEND", b""),
        png().replace(b"IDAT", b"iDAT"),
    ],
)
def test_what_only_looks_like_a_png_is_refused(data: bytes) -> None:
    with pytest.raises(NotAnImage):
        images.check(data, content_type="image/png")


@pytest.mark.parametrize(("width", "height"), [(0, 1), (1, 0), (10_001, 1), (1, 10_001), (2**32 - 1, 2**32 - 1)])
def test_an_image_of_no_or_of_enormous_size_is_refused(width: int, height: int) -> None:
    with pytest.raises(NotAnImage, match="pixels a side"):
        images.check(png(width, height), content_type="image/png")


def test_a_flipped_bit_in_a_png_is_noticed() -> None:
    data = bytearray(png())
    data[45] ^= 1

    with pytest.raises(NotAnImage, match="damaged"):
        images.check(bytes(data), content_type="image/png")
