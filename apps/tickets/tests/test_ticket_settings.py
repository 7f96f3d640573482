import pytest

from minitickets_tickets.settings import Settings, SettingsError, load_settings

pytestmark = pytest.mark.unit

WHOLE = {"STAGE": "dev", "TICKETS_TABLE": "tickets", "ASSETS_BUCKET": "assets", "SIGNING_SECRET_ARN": "arn:aws:s"}


def test_the_settings_are_what_the_program_tells() -> None:
    assert load_settings({**WHOLE, "PATH": "/bin"}) == Settings(
        stage="dev", tickets_table="tickets", assets_bucket="assets", signing_secret_arn="arn:aws:s"
    )


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_or_blank_variable_is_named(name: str, value: str | None) -> None:
    environment = {key: text for key, text in WHOLE.items() if key != name}
    if value is not None:
        environment[name] = value

    with pytest.raises(SettingsError, match=name):
        load_settings(environment)


def test_all_missing_variables_are_named_at_once() -> None:
    with pytest.raises(SettingsError, match="STAGE, TICKETS_TABLE, ASSETS_BUCKET, SIGNING_SECRET_ARN"):
        load_settings({})
