"""The signed token in a ticket's QR code: ``mt1.<payload>.<mac>``.

The payload is base64url JSON without personal data; the MAC is HMAC-SHA256 over everything before it. The signing
secret is ``{"current":"k1","keys":{"k1":"…"}}``, so that keys rotate and old tickets stay valid.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from minitickets_contracts import fields
from minitickets_contracts.fields import ContractError
from minitickets_contracts.keys import split_ticket_id

PREFIX = "mt1"
NONCE_HEX_DIGITS = 16
# Longest ticket id (45), event id (36), seat (8), key id (16), issued-at (11), nonce (16) and their JSON: 190 bytes.
MAX_TOKEN_CHARACTERS = 320
_KEY_ID = re.compile(r"[a-z0-9-]{1,16}")
_NONCE = re.compile(rf"[0-9a-f]{{{NONCE_HEX_DIGITS}}}")


@dataclass(frozen=True)
class SigningKeys:
    """The signing secret: every key that verifies, and the id of the one that signs. Never printed."""

    current: str
    keys: Mapping[str, str]

    def __post_init__(self) -> None:
        if not self.keys:
            raise ContractError("keys", "must hold at least one key")
        for key_id, key in self.keys.items():
            if not _KEY_ID.fullmatch(key_id):
                raise ContractError("keys", "must have ids of 1 to 16 characters of a-z, 0-9 and -")
            if not isinstance(key, str) or not key.isascii() or len(key) < 32:
                raise ContractError(f"keys.{key_id}", "must be a string of at least 32 ASCII characters")
        if self.current not in self.keys:
            raise ContractError("current", "must name one of the keys")

    def __repr__(self) -> str:
        return f"SigningKeys(current={self.current!r}, keys=<{len(self.keys)} hidden>)"

    @classmethod
    def from_json(cls, secret: str) -> Self:
        """The keys in a secret's string."""
        document = _object("secret", secret)
        current = fields.text("current", fields.required("", document, "current"), longest=16)
        keys = fields.mapping("keys", fields.required("", document, "keys"))
        if not all(isinstance(key, str) for key in keys.values()):
            # Which one is not said: in a secret with ids and keys swapped the id is the key.
            raise ContractError("keys", "must hold strings")
        return cls(current, {key_id: str(key) for key_id, key in keys.items()})

    def to_json(self) -> str:
        """The secret's string."""
        return json.dumps({"current": self.current, "keys": dict(self.keys)}, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class TicketToken:
    """What a token says. ``issued_at`` is in whole seconds since 1970; ``nonce`` is 16 hexadecimal digits."""

    ticket_id: str
    event_id: str
    seat: str
    key_id: str
    issued_at: int
    nonce: str

    def __post_init__(self) -> None:
        _, seat = split_ticket_id(self.ticket_id)
        if seat != self.seat:
            raise ContractError("seat", "must be the ticket's own")
        fields.uuid("eventId", self.event_id)
        if not _KEY_ID.fullmatch(self.key_id):
            raise ContractError("keyId", "must be 1 to 16 characters of a-z, 0-9 and -")
        fields.integer("issuedAt", self.issued_at, least=0, most=10**10)
        if not _NONCE.fullmatch(self.nonce):
            raise ContractError("nonce", f"must be {NONCE_HEX_DIGITS} hexadecimal digits")

    def sign(self, keys: SigningKeys) -> str:
        """The token's text, signed with the key that ``key_id`` names."""
        if self.key_id not in keys.keys:
            raise ContractError("keyId", "must name one of the keys")
        payload = {
            "tid": self.ticket_id,
            "eid": self.event_id,
            "seat": self.seat,
            "kid": self.key_id,
            "iat": self.issued_at,
            "n": self.nonce,
        }
        signed = f"{PREFIX}.{_encode(json.dumps(payload, separators=(',', ':')).encode())}"
        return f"{signed}.{_encode(_mac(signed, keys.keys[self.key_id]))}"

    @classmethod
    def verify(cls, token: str, keys: SigningKeys) -> Self:
        """What ``token`` says, if one of ``keys`` signed it; ContractError otherwise. Compares in constant time."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise ContractError("token", f"must have at most {MAX_TOKEN_CHARACTERS} characters")
        parts = token.split(".")
        if len(parts) != 3 or parts[0] != PREFIX:
            raise ContractError("token", f"must be {PREFIX}.<payload>.<mac>")
        document = _object("payload", _decode("payload", parts[1]).decode(errors="replace"))
        key_id = fields.text("kid", fields.required("", document, "kid"), longest=16)
        # An unknown key id is checked against a key that signs nothing, so that it takes the same time.
        expected = _mac(f"{PREFIX}.{parts[1]}", keys.keys.get(key_id, ""))
        if not hmac.compare_digest(_decode("mac", parts[2]), expected) or key_id not in keys.keys:
            raise ContractError("token", "is not signed by us")
        return cls(
            ticket_id=fields.text("tid", fields.required("", document, "tid"), longest=45),
            event_id=fields.uuid("eid", fields.required("", document, "eid")),
            seat=fields.seat("seat", fields.required("", document, "seat")),
            key_id=key_id,
            issued_at=fields.integer("iat", fields.required("", document, "iat"), least=0, most=10**10),
            nonce=fields.text("n", fields.required("", document, "n"), longest=NONCE_HEX_DIGITS),
        )


def _mac(signed: str, key: str) -> bytes:
    return hmac.new(key.encode(), signed.encode(), hashlib.sha256).digest()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(field: str, text: str) -> bytes:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ContractError(field, "must be base64url without padding") from None
    if _encode(raw) != text:
        raise ContractError(field, "must be base64url in its one canonical form")
    return raw


def _object(field: str, text: str) -> Mapping[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ContractError(field, "must be JSON") from None
    return fields.mapping(field, document)
