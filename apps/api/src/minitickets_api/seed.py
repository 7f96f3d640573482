"""``python -m minitickets_api.seed``: put accounts and events into the database, from the JSON in ``SEED``.

There are no accounts or passwords but those of the document. Run again with the same document it changes nothing; with
a changed one it updates what it finds, and it never removes anything.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID, uuid4

import asyncpg
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from minitickets_api.database import command_pool, connection
from minitickets_api.readable_text import readable
from minitickets_api.refusals import Refusal
from minitickets_api.services.accounts import normalise_email, normalise_name
from minitickets_api.services.event_seats import put_seats
from minitickets_api.services.passwords import Passwords, normalise
from minitickets_api.services.seat_rows import SeatRow
from minitickets_api.settings import SeedSettings, SettingsError
from minitickets_api.venue_time import moment_at
from minitickets_contracts import fields

MAX_SEATS_PER_EVENT = 20_000
# Two seeds at once would find the same thing missing twice.
_ADVISORY_LOCK = 4_011_874_164


class SeedError(RuntimeError):
    """The document cannot be used; the message names each fault by its place and holds no value of it."""


def _text(value: str) -> str:
    return readable(value, longest=200)


def _checked_password(value: str) -> str:
    normalise(value)
    return value


Email = Annotated[str, AfterValidator(normalise_email)]
Text = Annotated[str, AfterValidator(_text)]


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True, populate_by_name=False
    )


class SeedAccount(_Part):
    """Somebody who can log in."""

    email: Email
    name: Annotated[str, AfterValidator(normalise_name)]
    password: Annotated[str, AfterValidator(_checked_password)] = Field(repr=False)
    organiser: bool = False


class SeedRow(_Part):
    """``seats`` seats, numbered from 1: row ``A`` has ``A-1``, ``A-2`` and so on. After ``aisle_after`` people walk."""

    row: Annotated[str, Field(pattern=r"^[A-Z0-9]{1,4}$")]
    seats: Annotated[int, Field(ge=1, le=999)]
    aisle_after: list[int] = []

    @model_validator(mode="after")
    def _has_its_aisles(self) -> Self:
        self.planned()
        return self

    def planned(self) -> SeatRow:
        """Raises ValueError for an aisle where none can be."""
        return SeatRow(label=self.row, seats=self.seats, aisle_after=tuple(self.aisle_after))


class SeedEvent(_Part):
    """A published event. ``starts_at`` is the venue's local time, with its UTC offset or without."""

    event_id: UUID | None = None
    title: Text
    venue: Text
    starts_at: datetime
    time_zone: Annotated[str, AfterValidator(lambda value: fields.time_zone("timeZone", value))]
    rows: Annotated[list[SeedRow], Field(min_length=1)]
    price_minor: Annotated[int, Field(ge=0, le=1_000_000_000)]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    organiser: Email

    @model_validator(mode="after")
    def _fits(self) -> Self:
        moment_at(self.starts_at, self.time_zone)
        names = [row.row for row in self.rows]
        if len(set(names)) != len(names):
            raise ValueError("rows: must not name a row twice")
        if sum(row.seats for row in self.rows) > MAX_SEATS_PER_EVENT:
            raise ValueError(f"rows: must have at most {MAX_SEATS_PER_EVENT} seats together")
        return self

    def seats(self) -> Iterator[tuple[str, bool]]:
        """Each seat's name and whether an aisle comes after it, in the order in which people read them."""
        for row in self.rows:
            yield from row.planned()


class SeedDocument(_Part):
    """All that is to be there afterwards."""

    accounts: list[SeedAccount] = []
    events: list[SeedEvent] = []

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises SeedError."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            faults = [
                f"{'.'.join(str(part) for part in fault['loc']) or 'the document'}:"
                f" {fault['msg'].removeprefix('Value error, ')}"
                for fault in error.errors(include_input=False, include_url=False)
            ]
            raise SeedError(f"seed: {'; '.join(faults)}") from None


@dataclass(frozen=True, kw_only=True)
class SeededAccount:
    email: str
    user_id: str


@dataclass(frozen=True, kw_only=True)
class SeededEvent:
    """``seats`` are the names of all its seats, in the order in which people read them."""

    event_id: str
    title: str
    seats: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Seeded:
    """What is there now, in the document's order."""

    accounts: tuple[SeededAccount, ...]
    events: tuple[SeededEvent, ...]

    def to_json(self) -> str:
        return json.dumps(
            {
                "accounts": [{"email": account.email, "userId": account.user_id} for account in self.accounts],
                "events": [
                    {"eventId": event.event_id, "title": event.title, "seats": list(event.seats)}
                    for event in self.events
                ],
            },
            separators=(",", ":"),
        )


async def seed(pool: asyncpg.Pool, document: SeedDocument) -> Seeded:
    """Put ``document`` into the database, whole or not at all. Raises SeedError, or Refusal without a database."""
    passwords = Passwords()
    try:
        async with connection(pool) as database, database.transaction():
            await database.execute("select pg_advisory_xact_lock($1)", _ADVISORY_LOCK)
            accounts = [await _put_account(database, account, passwords) for account in document.accounts]
            events = [await _put_event(database, event) for event in document.events]
    finally:
        passwords.close()
    return Seeded(accounts=tuple(accounts), events=tuple(events))


async def _put_account(database: Any, account: SeedAccount, passwords: Passwords) -> SeededAccount:
    known = await database.fetchrow("select user_id, password_hash from users where lower(email) = $1", account.email)
    if known is None:
        user_id = uuid4()
        await database.execute(
            "insert into users (user_id, email, name, password_hash, is_organiser) values ($1, $2, $3, $4, $5)",
            user_id,
            account.email,
            account.name,
            await passwords.hash(account.password),
            account.organiser,
        )
        return SeededAccount(email=account.email, user_id=str(user_id))
    user_id = known["user_id"]
    await database.execute(
        "update users set name = $2, is_organiser = $3 where user_id = $1 and (name, is_organiser) <> ($2, $3)",
        user_id,
        account.name,
        account.organiser,
    )
    if not await passwords.is_right(account.password, known["password_hash"]):
        password_hash = await passwords.hash(account.password)
        await database.execute("update users set password_hash = $2 where user_id = $1", user_id, password_hash)
        # Whoever logged in with the old password is logged out.
        await database.execute("delete from sessions where user_id = $1", user_id)
    return SeededAccount(email=account.email, user_id=str(user_id))


async def _put_event(database: Any, event: SeedEvent) -> SeededEvent:
    organiser_id = await database.fetchval(
        "select user_id from users where lower(email) = $1 and is_organiser", event.organiser
    )
    if organiser_id is None:
        raise SeedError(f"seed: events: the organiser of {event.title!r} is no organiser's account; add it to accounts")
    starts_at = moment_at(event.starts_at, event.time_zone)
    event_id = event.event_id or await database.fetchval(
        "select event_id from events where organiser_id = $1 and title = $2 and starts_at = $3 order by event_id",
        organiser_id,
        event.title,
        starts_at,
    )
    event_id = event_id or uuid4()
    await database.execute(_PUT_EVENT, event_id, organiser_id, event.title, event.venue, starts_at, *_terms(event))
    await put_seats(database, event_id, list(event.seats()))
    seats = await database.fetch("select seat from seats where event_id = $1 order by position, seat", event_id)
    return SeededEvent(event_id=str(event_id), title=event.title, seats=tuple(row["seat"] for row in seats))


def _terms(event: SeedEvent) -> tuple[str, int, str]:
    return event.time_zone, event.price_minor, event.currency


_PUT_EVENT = """
insert into events (
    event_id, organiser_id, title, venue, starts_at, time_zone, price_minor, currency, published_at
) values ($1, $2, $3, $4, $5, $6, $7, $8, now())
on conflict (event_id) do update set
    organiser_id = excluded.organiser_id, title = excluded.title, venue = excluded.venue,
    starts_at = excluded.starts_at, time_zone = excluded.time_zone, price_minor = excluded.price_minor,
    currency = excluded.currency, published_at = coalesce(events.published_at, excluded.published_at)
"""


async def _run(settings: SeedSettings) -> Seeded:
    document = SeedDocument.from_json(settings.document.get_secret_value())
    async with command_pool(settings, application_name="minitickets-seed") as pool:
        return await seed(pool, document)


def main() -> int:
    """The command: one line of JSON that says what is there, or one line that says what is wrong and exit code 1."""
    try:
        seeded = asyncio.run(_run(SeedSettings.from_environment()))
    except (SettingsError, SeedError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except Refusal as refusal:
        sys.stderr.write(f"seed: {refusal.message}\n")
        return 1
    except asyncpg.UndefinedTableError:
        sys.stderr.write("seed: the database has no schema yet; run `python -m minitickets_api.migrate` first\n")
        return 1
    sys.stdout.write(f"{seeded.to_json()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
