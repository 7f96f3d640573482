"""Field types of procedures' inputs. Their rules are the contracts', so that no message can be refused later."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from minitickets_api.readable_text import readable
from minitickets_api.services.accounts import MAX_EMAIL_CHARACTERS, MAX_NAME_CHARACTERS, normalise_email, normalise_name
from minitickets_api.services.passwords import MAX_CHARACTERS, MIN_CHARACTERS
from minitickets_api.venue_time import known_zones
from minitickets_contracts import fields

MAX_TEXT_CHARACTERS = 200  # what a message may carry (contracts)
# Seconds and the offset may be left out.
_LOCAL_START = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?([+-][0-9]{2}:[0-9]{2})?")


def _contract(check: Callable[[str, object], str]) -> Callable[[str], str]:
    def validate(value: str) -> str:
        try:
            return check("value", value)
        except fields.ContractError as error:
            raise ValueError(error.problem) from None

    return validate


def _different(names: list[str]) -> list[str]:
    if len(set(names)) != len(names):
        raise ValueError("must not name a seat twice")
    return names


def _text(value: str) -> str:
    return readable(value, longest=MAX_TEXT_CHARACTERS)


def _local_start(value: str) -> str:
    if not _LOCAL_START.fullmatch(value):
        raise ValueError("must look like 2026-12-31T20:00")
    try:
        datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("must be a date and a time that exist") from None
    return value


def _known_zone(value: str) -> str:
    if value not in known_zones():
        raise ValueError("must be an IANA time zone such as America/Los_Angeles")
    return value


Id = Annotated[str, AfterValidator(_contract(fields.uuid)), Field(json_schema_extra={"format": "uuid"})]
SeatName = Annotated[
    str,
    AfterValidator(_contract(fields.seat)),
    Field(json_schema_extra={"pattern": f"^{fields.SEAT_PATTERN.pattern}$"}),
]
Seats = Annotated[
    list[SeatName], Field(min_length=1, max_length=fields.MAX_SEATS_PER_BOOKING), AfterValidator(_different)
]
Email = Annotated[str, AfterValidator(normalise_email), Field(json_schema_extra={"maxLength": MAX_EMAIL_CHARACTERS})]
Name = Annotated[str, AfterValidator(normalise_name), Field(json_schema_extra={"maxLength": MAX_NAME_CHARACTERS})]
NewPassword = Annotated[str, Field(min_length=MIN_CHARACTERS, max_length=MAX_CHARACTERS)]
TriedPassword = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]
IdempotencyKey = Annotated[
    str,
    Field(pattern=r"^[\x21-\x7e]{1,128}$", description="Made by the client, new for each new wish; a UUID is good."),
]
Text = Annotated[str, AfterValidator(_text), Field(json_schema_extra={"maxLength": MAX_TEXT_CHARACTERS})]
LocalStart = Annotated[
    str, AfterValidator(_local_start), Field(json_schema_extra={"pattern": f"^{_LOCAL_START.pattern}$"})
]
TimeZone = Annotated[str, Field(max_length=64), AfterValidator(_known_zone)]
PriceMinor = Annotated[int, Field(ge=0, le=1_000_000_000, description="Of one seat, in minor units of the currency.")]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$", description="ISO 4217.")]
Cursor = Annotated[str, Field(min_length=1, max_length=512, description="nextCursor of the page before.")]
PageSize = Annotated[int, Field(ge=1, le=100)]
