"""A QR code as rectangles: sharp at any size, on any printer."""

from collections.abc import Iterator
from itertools import groupby

from reportlab.graphics.barcode.qrencoder import QR8bitByte, QRCode, QRErrorCorrectLevel

from minitickets_contracts.fields import ContractError
from minitickets_contracts.token import MAX_TOKEN_CHARACTERS

QUIET_MODULES = 4  # ISO/IEC 18004 asks for a quiet zone of four
# A scanner reads any mask; to try all eight, as the package does by itself, costs five times as much.
_MASK = 0


def dark_runs(text: str) -> tuple[int, Iterator[tuple[int, int, int]]]:
    """How many modules a side has with its quiet zone, and the dark runs of each row: (row, first column, length).

    Rows count from the top. Error correction M, as on the screen. Raises ContractError for a text that no token is.
    """
    if len(text) > MAX_TOKEN_CHARACTERS or not text.isascii():
        raise ContractError("token", f"must have at most {MAX_TOKEN_CHARACTERS} ASCII characters to be drawn")
    code = QRCode(None, QRErrorCorrectLevel.M)
    code.addData(QR8bitByte(text.encode()))
    code.version = code.calculate_version()
    code.makeImpl(False, _MASK)

    def runs() -> Iterator[tuple[int, int, int]]:
        for row, modules in enumerate(code.modules, QUIET_MODULES):
            column = QUIET_MODULES
            for is_dark, group in groupby(modules, key=bool):
                length = sum(1 for _ in group)
                if is_dark:
                    yield row, column, length
                column += length

    return code.moduleCount + 2 * QUIET_MODULES, runs()
