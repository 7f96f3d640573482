"""A forgotten password: a token by mail sets a new one, once, and nobody learns whether an address has an account."""

import asyncio
import io
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from minitickets_api.logs import JsonFormatter
from minitickets_api.refusals import Code, Refusal
from minitickets_api.services import rate_limits, retention
from minitickets_api.services.accounts import User
from minitickets_api.services.outbox_claims import OutboxClaims
from minitickets_api.services.password_resets import PasswordResets
from minitickets_api.services.passwords import Passwords
from minitickets_api.services.sessions import Sessions
from minitickets_contracts.messages import PasswordResetRequested
from tests.fixtures.catalogue import add_customer, opened
from tests.fixtures.reply_dropper import Loss, reply_dropper
from tests.fixtures.running_api import PASSWORD, Person, RunningApi
from tests.fixtures.servers import Database

pytestmark = pytest.mark.integration

NEW_PASSWORD = "another battery entirely"
USED_UP = (
    400,
    "BAD_REQUEST",
    "token",
    "This link has been used, or it is older than an hour. Ask for a new one.",
)


def messages(api: RunningApi) -> list[PasswordResetRequested]:
    """What is on its way, the oldest first."""
    rows = api.sql("select body from outbox where is_secret order by created_at")
    return [PasswordResetRequested.from_json(row["body"]) for row in rows]


def forgot(api: RunningApi, email: str) -> str:
    """Ask for a token; the one that will be mailed."""
    reply = api.stranger().mutate("auth.requestPasswordReset", {"email": email})
    assert reply.status_code == 200, reply.text
    return messages(api)[-1].token


def reset(person: Person, token: str, password: str = NEW_PASSWORD) -> httpx.Response:
    return person.mutate("auth.resetPassword", {"token": token, "password": password})


def login(api: RunningApi, email: str, password: str) -> int:
    return api.stranger().mutate("auth.login", {"email": email, "password": password}).status_code


def refusal(reply: httpx.Response) -> tuple[int, str, str | None, str]:
    error = reply.json()["error"]
    return reply.status_code, error["data"]["code"], error["data"].get("reason"), error["message"]


def test_the_token_of_the_mail_sets_a_new_password_and_ends_every_session(api: RunningApi) -> None:
    phone = api.customer("ada@example.org")
    other = api.customer("bob@example.org")
    before = datetime.now(UTC)
    token = forgot(api, " Ada@Example.org ")

    [message] = messages(api)
    assert message.customer.email == "ada@example.org"
    assert message.customer.user_id == phone.user_id
    assert timedelta(minutes=59) < datetime.fromisoformat(message.expires_at) - before < timedelta(minutes=61)
    laptop = api.stranger()
    laptop.mutate("auth.login", {"email": "ada@example.org", "password": PASSWORD})
    assert reset(laptop, token).status_code == 200

    assert "session" not in laptop.http.cookies
    assert phone.query("auth.me").json()["result"]["data"]["user"] is None
    assert other.query("auth.me").json()["result"]["data"]["user"]["email"] == "bob@example.org"
    assert login(api, "ada@example.org", PASSWORD) == 401
    assert login(api, "ada@example.org", NEW_PASSWORD) == 200
    assert login(api, "bob@example.org", PASSWORD) == 200


def test_a_token_works_once_and_takes_the_others_of_its_account_with_it(api: RunningApi) -> None:
    api.customer("ada@example.org")
    api.customer("bob@example.org")
    first, second, of_bob = (
        forgot(api, "ada@example.org"),
        forgot(api, "ada@example.org"),
        forgot(api, "bob@example.org"),
    )
    assert len({first, second, of_bob}) == 3

    assert reset(api.stranger(), second).status_code == 200

    for token in (second, first):
        assert refusal(reset(api.stranger(), token, "yet another one")) == USED_UP
    assert login(api, "ada@example.org", NEW_PASSWORD) == 200
    assert reset(api.stranger(), of_bob).status_code == 200


def test_a_used_an_expired_and_an_unknown_token_are_refused_alike_and_change_nothing(api: RunningApi) -> None:
    ada = api.customer("ada@example.org")
    expired = forgot(api, "ada@example.org")
    api.sql("update password_resets set expires_at = now() - interval '1 second'")

    for token in (expired, "A" * 43, "x", "A" * 128, " "):
        assert refusal(reset(ada, token)) == USED_UP, token

    assert ada.query("auth.me").json()["result"]["data"]["user"]["email"] == "ada@example.org"
    assert login(api, "ada@example.org", PASSWORD) == 200


def test_a_password_that_is_none_does_not_use_the_token_up(api: RunningApi) -> None:
    api.customer("ada@example.org")
    token = forgot(api, "ada@example.org")

    for password in ("short", "\ufb03" * 100):
        reply = reset(api.stranger(), token, password)
        assert (reply.status_code, reply.json()["error"]["message"].partition(":")[0]) == (400, "password")

    assert reset(api.stranger(), f" {token}\n").status_code == 200


def test_an_address_without_an_account_is_answered_alike_and_sent_nothing(api: RunningApi) -> None:
    api.customer("ada@example.org")

    known = api.stranger().mutate("auth.requestPasswordReset", {"email": "ada@example.org"})
    unknown = api.stranger().mutate("auth.requestPasswordReset", {"email": "eve@example.org"})

    assert (known.status_code, known.json()) == (unknown.status_code, unknown.json()) == (200, {"result": {"data": {}}})
    told = ("content-type", "content-length", "set-cookie", "cache-control")
    assert [known.headers.get(name) for name in told] == [unknown.headers.get(name) for name in told]
    assert [message.customer.email for message in messages(api)] == ["ada@example.org"]
    assert api.sql("select count(*) from password_resets where user_id is null")[0][0] == 1


def test_an_address_without_an_account_takes_as_long(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.customer("ada@example.org")
    monkeypatch.setattr(rate_limits, "RESET_BY_ACCOUNT", rate_limits.LOGIN_BY_ADDRESS)
    stranger = api.stranger()

    def seconds(email: str) -> float:
        began = time.perf_counter()
        assert stranger.mutate("auth.requestPasswordReset", {"email": email}).status_code == 200
        return time.perf_counter() - began

    # In turns, and the best of each: what else the machine does only ever adds.
    turns = [(seconds("ada@example.org"), seconds("eve@example.org")) for _ in range(25)]
    known, unknown = (min(times) for times in zip(*turns, strict=True))

    assert 0.6 < unknown / known < 1.6


def test_each_address_may_ask_five_times_an_hour_whether_it_has_an_account_or_not(api: RunningApi) -> None:
    api.customer("ada@example.org")

    for email in ("ada@example.org", "eve@example.org"):
        replies = [api.stranger().mutate("auth.requestPasswordReset", {"email": email}) for _ in range(6)]
        assert [reply.status_code for reply in replies] == [200] * 5 + [429]
        assert 0 < replies[-1].json()["error"]["data"]["retryAfterSeconds"] <= 3600
    assert len(messages(api)) == 5


def test_one_client_may_not_try_tokens_without_end(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    few = rate_limits.Limit(name="few", attempts=3, seconds=900)
    monkeypatch.setattr(rate_limits, "RESET_BY_ADDRESS", few)

    replies = [reset(api.stranger(), "A" * 43).status_code for _ in range(4)]

    assert replies == [400, 400, 400, 429]


def test_the_token_is_nowhere_but_in_the_message(api: RunningApi) -> None:
    ada = api.customer("ada@example.org")
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(lambda record: not record.name.startswith("http"))
    logging.getLogger().addHandler(handler)
    logging.getLogger("minitickets_api").setLevel(logging.DEBUG)
    try:
        token = forgot(api, "ada@example.org")
        [kept] = api.sql("select token_hash, user_id from password_resets")
        assert len(kept["token_hash"]) == 32
        assert token.encode() not in kept["token_hash"]
        assert str(kept["user_id"]) == ada.user_id
        assert reset(api.stranger(), token).status_code == 200
    finally:
        logging.getLogger("minitickets_api").setLevel(logging.NOTSET)
        logging.getLogger().removeHandler(handler)
    assert "a password was reset" in written.getvalue()
    for secret in (token, NEW_PASSWORD, "ada@example.org"):
        assert secret not in written.getvalue()


async def requested(pool: Any, **changes: object) -> tuple[UUID, str]:
    """A reset that somebody asked for, changed in the database; the ids of its message and its token."""
    customer = await add_customer(pool)
    user = User(user_id=customer.user_id, email=customer.email, name=customer.name, is_organiser=False)
    await PasswordResets(pool=pool).request(email=user.email, account=user, correlation_id="c")
    row = await pool.fetchrow(
        "select outbox_id, body from outbox join password_resets using (outbox_id) where user_id = $1",
        UUID(customer.user_id),
    )
    for column, value in changes.items():
        await pool.execute(f"update outbox set {column} = $2 where outbox_id = $1", row["outbox_id"], value)  # noqa: S608 - names of ours, no input
    return row["outbox_id"], PasswordResetRequested.from_json(row["body"]).token


def test_a_token_leaves_the_outbox_in_the_moment_in_which_it_is_sent(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            secret, token = await requested(pool)
            other = uuid4()
            await pool.execute("insert into outbox (outbox_id, body, correlation_id) values ($1, 'kept', 'c')", other)
            claims = OutboxClaims(pool=pool, lease=timedelta(seconds=30))
            claim = await claims.take()
            assert {row.message_id: token in row.body for row in claim.rows} == {secret: True, other: False}
            await claims.mark_sent(claim, [row.message_id for row in claim.rows])
            rows = await pool.fetch("select outbox_id, body from outbox where sent_at is not null")
            assert {row["outbox_id"]: row["body"] for row in rows} == {secret: "", other: "kept"}

    asyncio.run(run())


def test_no_token_outlives_its_hour_in_the_outbox_whatever_became_of_its_message(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            now = datetime.now(UTC)
            sent_by_an_old_task, _ = await requested(pool, sent_at=now)
            waiting, token = await requested(pool)
            # Sent, whatever its age; not sent, and not expired yet.
            assert (await retention.purge(pool))["secrets that were sent"] == 1
            bodies = {row["outbox_id"]: row["body"] for row in await pool.fetch("select outbox_id, body from outbox")}
            assert bodies[sent_by_an_old_task] == ""
            assert token in bodies[waiting]

            await requested(pool, parked_at=now)
            being_sent, _ = await requested(pool, owner=uuid4(), lease_until=now + timedelta(seconds=30))
            await pool.execute("update password_resets set expires_at = now() - interval '1 second'")
            assert (await retention.purge(pool))["secrets that expired"] == 2
            left = await pool.fetch("select outbox_id from outbox where body <> ''")
            assert [row["outbox_id"] for row in left] == [being_sent]
            await pool.execute(
                "update outbox set lease_until = now() - interval '1 second' where lease_until is not null"
            )
            await retention.purge(pool)
            assert await pool.fetchval("select count(*) from outbox where body <> ''") == 0

            await pool.execute("update password_resets set expires_at = now() - interval '25 hours'")
            assert (await retention.purge(pool))["password resets"] == 4

    asyncio.run(run())


async def account_with_token(pool: Any, passwords: Passwords) -> tuple[User, str, str]:
    """A user, the hash of the password ``PASSWORD``, and a token."""
    password_hash = await passwords.hash(PASSWORD)
    _, token = await requested(pool)
    row = await pool.fetchrow("update users set password_hash = $1 returning *", password_hash)
    user = User(user_id=str(row["user_id"]), email=row["email"], name=row["name"], is_organiser=False)
    return user, password_hash, token


async def until_waiting(pool: Any, count: int) -> None:
    """Until ``count`` connections wait for a lock."""
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with asyncio.timeout(10):
        while await pool.fetchval(waiting) < count:  # noqa: ASYNC110 - the state is the database's
            await asyncio.sleep(0.01)


def test_who_logs_in_while_the_password_is_set_anew_keeps_no_session(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            passwords = Passwords()
            user, old_hash, token = await account_with_token(pool, passwords)
            sessions = Sessions(pool=pool, void_before=None)
            await sessions.begin(user_id=user.user_id, password_hash=old_hash, replaces=None)
            async with pool.acquire() as holder, holder.transaction():
                # The reset has set the password, and waits to end this session, before it commits.
                await holder.execute("select 1 from sessions for update")
                setting = asyncio.create_task(
                    PasswordResets(pool=pool).use(token=token, password=NEW_PASSWORD, passwords=passwords)
                )
                await until_waiting(pool, 1)
                # The old password was right when it was compared.
                logging_in = asyncio.create_task(
                    sessions.begin(user_id=user.user_id, password_hash=old_hash, replaces=None)
                )
                await until_waiting(pool, 2)
            await setting
            with pytest.raises(Refusal) as caught:
                await logging_in
            assert caught.value.code is Code.UNAUTHORIZED
            assert await pool.fetchval("select count(*) from sessions") == 0
            passwords.close()

    asyncio.run(run())


def test_of_two_who_use_a_token_at_once_one_is_refused(migrated_database: Database) -> None:
    async def run() -> None:
        async with opened(migrated_database) as pool:
            passwords = Passwords()
            user, _, token = await account_with_token(pool, passwords)
            resets = PasswordResets(pool=pool)
            tried = [f"password number {n}" for n in range(6)]
            outcomes = await asyncio.gather(
                *(resets.use(token=token, password=password, passwords=passwords) for password in tried),
                return_exceptions=True,
            )
            [winner] = [password for password, outcome in zip(tried, outcomes, strict=True) if outcome is None]
            stored = await pool.fetchval("select password_hash from users where user_id = $1", UUID(user.user_id))
            assert await passwords.is_right(winner, stored)
            assert all(isinstance(outcome, Refusal) for outcome in outcomes if outcome is not None)
            passwords.close()

    asyncio.run(run())


@pytest.mark.parametrize("loss", [Loss.APPLIED, Loss.LATE, Loss.NEVER])
def test_a_lost_reply_to_the_commit_is_no_refusal(loss: Loss, migrated_database: Database) -> None:
    async def run() -> None:
        async with (
            reply_dropper(upstream_port=migrated_database.port) as dropper,
            opened(migrated_database, port=dropper.port) as pool,
        ):
            passwords = Passwords()
            user, _, token = await account_with_token(pool, passwords)
            dropper.losses = [loss]
            await PasswordResets(pool=pool).use(token=token, password=NEW_PASSWORD, passwords=passwords)
            assert dropper.losses == []
            stored = await pool.fetchval("select password_hash from users where user_id = $1", UUID(user.user_id))
            assert await passwords.is_right(NEW_PASSWORD, stored)
            passwords.close()

    asyncio.run(run())
