"""Who is who: accounts, sessions, cookies."""

import time
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from uuid import uuid4

import httpx
import pytest
from starlette.datastructures import Headers

from minitickets_api.services.accounts import normalise_email
from minitickets_api.services.sessions import SessionCookie
from tests.fixtures.running_api import PASSWORD, Person, RunningApi, api_environment
from tests.fixtures.servers import Cache, Database

pytestmark = pytest.mark.integration


def code(reply: httpx.Response) -> str:
    found: str = reply.json()["error"]["data"]["code"]
    return found


def who(person: Person) -> str | None:
    user = person.query("auth.me").json()["result"]["data"]["user"]
    return None if user is None else str(user["email"])


def login(person: Person, email: str, password: str = PASSWORD) -> httpx.Response:
    return person.mutate("auth.login", {"email": email, "password": password})


def test_logging_in_works_in_any_spelling_of_the_address(api: RunningApi) -> None:
    api.customer("ada@example.org")
    ada = api.stranger()

    assert login(ada, " ADA@Example.ORG ").status_code == 200
    assert who(ada) == "ada@example.org"


def test_a_password_is_the_same_however_its_characters_are_composed(api: RunningApi) -> None:
    stranger = api.stranger()
    composed, decomposed = "passw\u00f6rter", "passwo\u0308rter"
    stranger.mutate("auth.register", {"email": "a@example.org", "name": "A", "password": composed})

    assert login(api.stranger(), "a@example.org", decomposed).status_code == 200


def test_a_wrong_password_and_an_unknown_address_are_answered_alike(api: RunningApi) -> None:
    api.customer("ada@example.org")

    wrong = login(api.stranger(), "ada@example.org", "not the password")
    unknown = login(api.stranger(), "eve@example.org", "not the password")

    for reply in (wrong, unknown):
        assert (reply.status_code, code(reply)) == (401, "UNAUTHORIZED")
    assert wrong.json()["error"]["message"] == unknown.json()["error"]["message"]
    assert "set-cookie" not in wrong.headers


@pytest.mark.parametrize("password", ["x", "short", "a" * 128])
def test_a_password_that_nobody_could_have_chosen_is_only_a_wrong_one(password: str, api: RunningApi) -> None:
    api.customer("ada@example.org")

    assert login(api.stranger(), "ada@example.org", password).status_code == 401


def test_an_unknown_address_takes_as_long_as_a_wrong_password(api: RunningApi) -> None:
    api.customer("ada@example.org")

    def seconds(email: str) -> float:
        began = time.perf_counter()
        assert code(login(api.stranger(), email, "not the password")) == "UNAUTHORIZED"
        return time.perf_counter() - began

    # In turns, and the best of each: what else the machine does only ever adds.
    turns = [(seconds("ada@example.org"), seconds("eve@example.org")) for _ in range(9)]
    wrong, unknown = (min(times) for times in zip(*turns, strict=True))

    # A look-up alone takes a tenth of the comparison.
    assert 0.5 < unknown / wrong < 2


def test_an_address_has_one_account(api: RunningApi) -> None:
    api.customer("ada@example.org")

    again = api.stranger().mutate(
        "auth.register", {"email": "Ada@Example.org", "name": "Eve", "password": "another password"}
    )

    assert (again.status_code, code(again)) == (409, "CONFLICT")
    assert login(api.stranger(), "ada@example.org").status_code == 200


def test_logging_in_ends_the_session_that_one_came_with(api: RunningApi) -> None:
    ada = api.customer("ada@example.org")
    planted = ada.http.cookies["session"]

    login(ada, "ada@example.org")

    assert ada.http.cookies["session"] != planted
    thief = api.stranger()
    thief.http.headers["cookie"] = f"session={planted}"
    assert who(thief) is None


@pytest.mark.parametrize("how", ["register", "login"])
def test_a_token_that_somebody_planted_never_becomes_a_session(api: RunningApi, how: str) -> None:
    planted = "planted" + "A" * 36
    if how == "login":
        api.customer("ada@example.org")
    ada = api.stranger()
    given = {"email": "ada@example.org", "password": PASSWORD, **({"name": "Ada"} if how == "register" else {})}

    reply = ada.http.post(f"/trpc/auth.{how}", json=given, headers={"cookie": f"session={planted}"})

    assert reply.status_code == 200, reply.text
    assert planted not in reply.headers["set-cookie"]
    assert who(ada) == "ada@example.org"
    thief = api.stranger()
    thief.http.headers["cookie"] = f"session={planted}"
    assert who(thief) is None


def test_logging_out_ends_the_session_and_forgets_the_cookie(api: RunningApi) -> None:
    ada = api.customer()
    token = ada.http.cookies["session"]

    assert ada.http.post("/trpc/auth.logout", headers={"content-type": "application/json"}).status_code == 200

    assert "session" not in ada.http.cookies
    thief = api.stranger()
    thief.http.headers["cookie"] = f"session={token}"
    assert who(thief) is None
    assert api.sql("select count(*) from sessions")[0][0] == 0
    assert api.stranger().mutate("auth.logout").status_code == 200  # once more changes nothing


def test_other_devices_stay_signed_in(api: RunningApi) -> None:
    phone = api.customer("ada@example.org")
    laptop = api.stranger()
    login(laptop, "ada@example.org")

    phone.mutate("auth.logout")

    assert who(laptop) == "ada@example.org"


def test_a_session_ends_after_thirty_days(api: RunningApi) -> None:
    ada = api.customer()
    [row] = api.sql("select expires_at - created_at as lifetime from sessions")
    assert row["lifetime"] == timedelta(days=30)

    api.sql("update sessions set expires_at = now() - interval '1 second'")

    assert who(ada) is None


def test_sessions_from_before_a_rewind_of_the_database_are_void(
    migrated_database: Database, cache: Cache, aws_is_down: None
) -> None:
    rewound = datetime.now(UTC)
    environment = api_environment(migrated_database, cache, SESSIONS_VOID_BEFORE=rewound.isoformat())
    api = RunningApi(environment, migrated_database)
    api.start()
    try:
        old, new = api.customer("old@example.org"), api.customer("new@example.org")
        api.sql("update sessions set created_at = $1 where user_id = $2", rewound - timedelta(seconds=1), old.user_id)

        assert who(old) is None
        assert who(new) == "new@example.org"
    finally:
        api.stop()


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(api: RunningApi) -> None:
    reply = api.stranger().mutate("auth.register", {"email": "a@example.org", "name": "A", "password": PASSWORD})

    cookie = SimpleCookie(reply.headers["set-cookie"])["session"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (True, "Lax", "/", "")
    assert int(cookie["max-age"]) == 30 * 24 * 3600
    assert cookie.value not in reply.text


def test_over_https_the_cookie_is_secure_and_bound_to_its_host(
    migrated_database: Database, cache: Cache, aws_is_down: None
) -> None:
    environment = api_environment(migrated_database, cache, PUBLIC_URL="https://tickets.example")
    api = RunningApi(environment, migrated_database)
    api.start()
    try:
        reply = api.stranger().http.post(
            "/trpc/auth.register",
            json={"email": "a@example.org", "name": "A", "password": PASSWORD},
            headers={"origin": "https://tickets.example"},
        )

        name, _, rest = reply.headers["set-cookie"].partition("=")
        assert name == "__Host-session"
        assert "; Secure" in rest
        assert "Domain" not in rest
        assert reply.headers["strict-transport-security"]
    finally:
        api.stop()


@pytest.mark.parametrize(
    ("cookies", "token"),
    [
        (["session=" + "A" * 43], "A" * 43),
        (["a=b; session=" + "A" * 43 + "; c=d"], "A" * 43),
        (["a=b", "session=" + "A" * 43], "A" * 43),
        (["xsession=" + "A" * 43], None),
        (["session=" + "A" * 42], None),
        (["session=" + "A" * 44], None),
        (["session=" + "A" * 42 + "="], None),
        (["SESSION=" + "A" * 43], None),
    ],
)
def test_only_a_token_of_the_right_form_is_looked_up(cookies: list[str], token: str | None) -> None:
    headers = Headers(raw=[(b"cookie", cookie.encode()) for cookie in cookies])

    assert SessionCookie(is_https=False).read(headers) == token


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        "\u200b",
        "\ufe0f\u034f",
        "\u3164",
        "\u202eadA",
        "A\nB",
        "A\rBcc: eve@example.org",
        "A\x85B",
        "A\u2028B",
        "A" * 201,
        "\x07",
    ],
)
def test_a_name_that_no_mail_could_carry_is_refused(name: str, api: RunningApi) -> None:
    reply = api.stranger().mutate("auth.register", {"email": "a@example.org", "name": name, "password": PASSWORD})

    assert (reply.status_code, code(reply)) == (400, "BAD_REQUEST")
    assert reply.json()["error"]["message"].startswith("name: ")
    assert api.footprint()["users"] == 0


@pytest.mark.parametrize("password", ["", "short", "a" * 129, "\ufb03" * 100])
def test_a_password_has_8_to_128_characters_however_it_is_composed(password: str, api: RunningApi) -> None:
    reply = api.stranger().mutate("auth.register", {"email": "a@example.org", "name": "A", "password": password})

    assert (reply.status_code, code(reply)) == (400, "BAD_REQUEST")
    assert api.footprint()["users"] == 0


@pytest.mark.parametrize(
    "email",
    [
        "ada",
        "@example.org",
        "ada@",
        "ada@localhost",
        "a da@example.org",
        "ada@exa mple.org",
        "ada@example..org",
        "ada@-example.org",
        "ada@example.org\nBcc: eve@example.org",
        "ada\x00@example.org",
        "a..da@example.org",
        ".ada@example.org",
        "ada@eve@example.org",
        "ada@example.org\u200b",
        "ada@exam\u00adple.org",
        "ada@example\ufe0f.org",
        "\u202eada@example.org",
        "<ada@example.org>",
        "a" * 65 + "@example.org",
        "ada@" + "a" * 64 + ".org",
        "ada@" + "abc." * 70 + "org",
    ],
)
def test_what_is_no_address_is_refused(email: str) -> None:
    with pytest.raises(ValueError, match="mail address"):
        normalise_email(email)


@pytest.mark.parametrize(
    ("email", "normal"),
    [
        ("Ada.Lovelace+tickets@Example.ORG", "ada.lovelace+tickets@example.org"),
        (" ada@example.org\n", "ada@example.org"),
        ("ada@\uff45xample\u3002org", "ada@example.org"),
        ("ada@example\uff0eorg", "ada@example.org"),
        ("ada@bücher.example", "ada@bücher.example"),
        ("o'hara@sub.example.co.uk", "o'hara@sub.example.co.uk"),
    ],
)
def test_an_address_is_kept_in_one_spelling(email: str, normal: str) -> None:
    assert normalise_email(email) == normal


def test_an_outdated_hash_is_replaced_when_its_password_comes_by(api: RunningApi) -> None:
    import argon2

    weak = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    api.customer("ada@example.org")
    api.sql("update users set password_hash = $1", weak)

    assert login(api.stranger(), "ada@example.org").status_code == 200

    [row] = api.sql("select password_hash from users")
    assert "m=19456,t=2,p=1" in row["password_hash"]
    assert login(api.stranger(), "ada@example.org").status_code == 200


def test_a_stolen_key_of_nobody_is_nobody(api: RunningApi) -> None:
    thief = api.stranger()
    thief.http.headers["cookie"] = f"session={uuid4().hex}{'A' * 11}"

    assert who(thief) is None
