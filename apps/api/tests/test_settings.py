"""What the environment must hold."""

import pytest

from minitickets_api.settings import DatabaseSettings, Settings, SettingsError

pytestmark = pytest.mark.unit

GOOD = {
    "STAGE": "dev",
    "AWS_REGION": "us-east-1",
    "PORT": "8000",
    "TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:minitickets-dev-booking-events",
    "TICKETS_TABLE": "minitickets-dev-tickets",
    "ASSETS_BUCKET": "minitickets-dev-assets",
    "DB_HOST": "db.example",
    "DB_PORT": "5432",
    "DB_NAME": "minitickets",
    "DB_USER": "minitickets",
    "DB_PASSWORD": "hunter2-database",
    "DB_SSLMODE": "verify-full",
    "REDIS_HOST": "redis.example",
    "REDIS_PORT": "6379",
    "REDIS_TLS": "true",
    "REDIS_AUTH_TOKEN": "hunter2-redis",
}


def test_the_documented_environment_is_enough() -> None:
    settings = Settings.from_environment(GOOD)

    assert settings.database.password.get_secret_value() == "hunter2-database"
    assert (settings.public_url, settings.sessions_void_before, settings.is_https) == (None, None, False)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", [None, ""])
def test_each_variable_that_is_missing_is_named_on_one_line(name: str, value: str | None) -> None:
    environment = {**GOOD, name: value or ""}
    if value is None:
        del environment[name]

    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(environment)

    assert str(caught.value) == f"environment: {name} is missing (docs/interfaces.md lists every variable)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "0"),
        ("PORT", "http"),
        ("DB_PORT", "65536"),
        ("DB_SSLMODE", "require"),
        ("REDIS_TLS", "yes"),
        ("TOPIC_ARN", "booking-events"),
        ("PUBLIC_URL", "tickets.example"),
        ("PUBLIC_URL", "https://tickets.example/"),
        ("PUBLIC_URL", "https://tickets.example:443"),
        ("PUBLIC_URL", "http://tickets.example:80"),
        ("PUBLIC_URL", "https://bücher.example"),
        ("PUBLIC_URL", "https://user@tickets.example"),
        ("SESSIONS_VOID_BEFORE", "yesterday"),
        ("SESSIONS_VOID_BEFORE", "2026-11-29T12:00:00"),
    ],
)
def test_a_wrong_value_is_told_by_its_name_and_never_repeated(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({**GOOD, name: value})

    message = str(caught.value)
    assert message.startswith(f"environment: {name} is wrong: ")
    assert "\n" not in message
    assert f"'{value}'" not in message


def test_all_faults_are_told_at_once_and_no_secret_with_them() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({**GOOD, "PORT": "x", "DB_HOST": "", "REDIS_PORT": "y"})

    message = str(caught.value)
    assert all(f"{name} is" in message for name in ("PORT", "DB_HOST", "REDIS_PORT"))
    assert "hunter2" not in message


def test_secrets_are_not_shown_when_settings_are_printed() -> None:
    settings = Settings.from_environment(GOOD)

    assert "hunter2" not in repr(settings) + str(settings) + settings.model_dump_json()


def test_a_migration_needs_the_database_alone() -> None:
    database = DatabaseSettings.from_environment({name: GOOD[name] for name in GOOD if name.startswith("DB_")})

    assert (database.host, database.port) == ("db.example", 5432)


def test_an_origin_is_compared_in_lower_case() -> None:
    settings = Settings.from_environment({**GOOD, "PUBLIC_URL": "HTTPS://Tickets.Example"})

    assert (settings.public_url, settings.is_https) == ("https://tickets.example", True)
