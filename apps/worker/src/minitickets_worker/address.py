"""The form in which SES takes a recipient's address."""

import re
import unicodedata
from encodings import idna

# RFC 5322's atom characters and the dot; SES judges where dots may stand. No quotes, commas or brackets: one address
# must never become two.
_LOCAL_PART = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# IDNA 2003, which the standard library knows, maps these to other letters, and so to somebody else's domain.
_KEPT_BY_IDNA_2008 = "ßς"
_MAX_ADDRESS_CHARACTERS = 254
_MAX_DOMAIN_CHARACTERS = 253


class AddressError(ValueError):
    """SES can never deliver to the address. ``reason`` is a code; the address itself is never in it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def deliverable_address(address: str) -> str:
    """``address`` in ASCII, its domain punycoded. Raises AddressError for what SES cannot deliver to.

    SES does not support local parts outside ASCII (SMTPUTF8).
    """
    local_part, _, domain = address.rpartition("@")
    if not local_part.isascii():
        raise AddressError("local-part-not-ascii")
    # "=?" would open an encoded word, which some mail servers decode inside an address.
    if not _LOCAL_PART.fullmatch(local_part) or "=?" in local_part:
        raise AddressError("local-part-malformed")
    # IDNA counts the ideographic full stops as dots.
    labels = [_ascii_label(label) for label in re.split("[.\u3002\uff0e\uff61]", domain)]
    ascii_domain = ".".join(labels)
    if len(ascii_domain) > _MAX_DOMAIN_CHARACTERS or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressError("domain-malformed")
    if len(local_part) + 1 + len(ascii_domain) > _MAX_ADDRESS_CHARACTERS:
        raise AddressError("too-long")
    return f"{local_part}@{ascii_domain}"


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label
    try:
        if any(letter in label for letter in _KEPT_BY_IDNA_2008):
            mapped = unicodedata.normalize("NFKC", label.lower())
            return f"xn--{mapped.encode('punycode').decode('ascii')}"
        return idna.ToASCII(label).decode("ascii")
    except UnicodeError:
        raise AddressError("domain-malformed") from None
