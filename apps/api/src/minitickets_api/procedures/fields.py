"""Field types of procedures' inputs. Their rules are the contracts', so that no message can be refused later."""

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, Field

from minitickets_api.services.accounts import MAX_EMAIL_CHARACTERS, MAX_NAME_CHARACTERS, normalise_email, normalise_name
from minitickets_api.services.passwords import MAX_CHARACTERS, MIN_CHARACTERS
from minitickets_contracts import fields


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
Cursor = Annotated[str, Field(min_length=1, max_length=512, description="nextCursor of the page before.")]
PageSize = Annotated[int, Field(ge=1, le=100)]
