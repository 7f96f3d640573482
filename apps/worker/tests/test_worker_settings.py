"""What the worker wants to be told, and how it says what is missing."""

import pytest

from minitickets_worker.settings import Settings, SettingsError, load_settings

pytestmark = pytest.mark.unit

ENVIRONMENT = {
    "STAGE": "dev",
    "PROCESSED_JOBS_TABLE": "minitickets-dev-processed-jobs",
    "JOBS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/minitickets-dev-jobs",
    "SENDER": "tickets@example.org",
    "PUBLIC_URL": "https://tickets.example.org",
}


def test_the_documented_environment_is_read() -> None:
    assert load_settings(ENVIRONMENT) == Settings(
        stage="dev",
        processed_jobs_table="minitickets-dev-processed-jobs",
        jobs_queue_url="https://sqs.us-east-1.amazonaws.com/123456789012/minitickets-dev-jobs",
        sender="tickets@example.org",
        public_url="https://tickets.example.org",
    )


@pytest.mark.parametrize("name", ["STAGE", "PROCESSED_JOBS_TABLE", "JOBS_QUEUE_URL", "SENDER"])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_setting_is_named(name: str, value: str | None) -> None:
    environment = {key: text for key, text in ENVIRONMENT.items() if key != name}
    if value is not None:
        environment[name] = value
    with pytest.raises(SettingsError, match=name):
        load_settings(environment)


@pytest.mark.parametrize("absent", [{}, {"PUBLIC_URL": ""}])
def test_without_a_public_address_there_is_none(absent: dict[str, str]) -> None:
    environment = {key: text for key, text in ENVIRONMENT.items() if key != "PUBLIC_URL"}
    assert load_settings({**environment, **absent}).public_url is None


@pytest.mark.parametrize(
    "url", ["tickets.example.org", "https://tickets.example.org/", "javascript:alert(1)", 'https://a"b']
)
def test_a_public_address_that_is_no_origin_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="PUBLIC_URL"):
        load_settings({**ENVIRONMENT, "PUBLIC_URL": url})


def test_a_sender_that_is_no_address_is_refused() -> None:
    with pytest.raises(SettingsError, match="SENDER"):
        load_settings({**ENVIRONMENT, "SENDER": "minitickets"})
