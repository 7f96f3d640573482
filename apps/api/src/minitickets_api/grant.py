"""``python -m minitickets_api.grant <email> organiser``: make an account an organiser's; ``--revoke`` takes that back.

An operator's command and no procedure of the API: nobody becomes an organiser over the internet. It ends in
``users.is_organiser``, which is read with every request, so it holds from the next one on. Run again it changes
nothing.

Exit codes: 0 it is so now, 1 the database did not do it or its answer was lost, 2 wrong arguments, 3 nobody has that
address; 2 and 3 changed nothing. The log of a task is kept for months, so what is written names the account by its id.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from minitickets_api.database import command_pool, connection
from minitickets_api.refusals import Refusal
from minitickets_api.services.accounts import normalise_email
from minitickets_api.settings import DatabaseSettings, SettingsError

ORGANISER = "organiser"

FAILED = 1
NO_SUCH_ACCOUNT = 3


@dataclass(frozen=True, kw_only=True)
class Granted:
    """An account whose role is as wanted. ``changed`` is False where it was so before."""

    user_id: str
    changed: bool


async def set_organiser(pool: asyncpg.Pool, *, email: str, is_organiser: bool) -> Granted | None:
    """Give the account of ``email`` (normalised) the organiser's role, or take it; None where there is no account.

    Raises Refusal while the database cannot be used.
    """
    async with connection(pool) as database, database.transaction():
        found = await database.fetchrow(
            "select user_id, is_organiser from users where lower(email) = $1 for update", email
        )
        if found is None:
            return None
        changed = found["is_organiser"] != is_organiser
        if changed:
            await database.execute(
                "update users set is_organiser = $2 where user_id = $1", found["user_id"], is_organiser
            )
    return Granted(user_id=str(found["user_id"]), changed=changed)


async def _run(settings: DatabaseSettings, *, email: str, is_organiser: bool) -> Granted | None:
    async with command_pool(settings, application_name="minitickets-grant") as pool:
        return await set_organiser(pool, email=email, is_organiser=is_organiser)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: a line that says what holds now, or one on standard error that says what is wrong."""
    wanted = _parser().parse_args(arguments)
    try:
        settings = DatabaseSettings.from_environment()
        granted = asyncio.run(_run(settings, email=wanted.email, is_organiser=not wanted.revoke))
    except SettingsError as error:
        return _fail(str(error), FAILED)
    except Refusal as refusal:
        return _fail(f"grant: {refusal.message}", FAILED)
    except asyncpg.UndefinedTableError:
        return _fail("grant: the database has no schema yet; run `python -m minitickets_api.migrate` first", FAILED)
    if granted is None:
        return _fail("grant: nobody has registered with that address", NO_SUCH_ACCOUNT)
    held = "is not an organiser" if wanted.revoke else "is an organiser"
    sys.stdout.write(f"grant: account {granted.user_id} {held}{' now' if granted.changed else ', as before'}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grant", description="Give an account a role, or take it.", allow_abbrev=False
    )
    parser.add_argument("email", type=_address, help="the address that the account was registered with")
    parser.add_argument("role", choices=[ORGANISER])
    parser.add_argument("--revoke", action="store_true", help="take the role instead of giving it")
    return parser


def _address(text: str) -> str:
    try:
        return normalise_email(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _fail(text: str, exit_code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
