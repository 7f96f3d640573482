"""A stage file: what it may say, and what each wrong value is told."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from src.naming import STAGE_MAX_LENGTH, stage_problem
from src.settings import GROUPS, SettingsError, parse_settings, setting_keys

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = {"production": "false", "computeEnabled": "true", "dataEnabled": "true", "sender": "tickets@example.org"}


def _tags(**wrong: str) -> str:
    return json.dumps({"tags": {"Project": "minitickets", "Stage": "dev", "ManagedBy": "pulumi"} | wrong})


def _parse(values: dict[str, str] | None = None, **more: Any) -> Any:
    return parse_settings(
        **{"stage": "dev", "values": REQUIRED | (values or {}), "default_tags": _tags(), **more},
    )


def test_four_keys_are_enough() -> None:
    settings = _parse()
    assert settings.switches.compute_enabled is True
    assert settings.mail.sender == "tickets@example.org"
    assert settings.queues.max_receive_count == 3
    assert settings.site.public_url is None
    assert settings.api.image is None


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        _parse().switches.compute_enabled = False


@pytest.mark.parametrize("key", REQUIRED)
def test_a_required_key_that_is_missing_is_named_with_what_to_type(key: str) -> None:
    values = {name: value for name, value in REQUIRED.items() if name != key}
    with pytest.raises(SettingsError, match=f"minitickets:{key} is not set .*`pulumi config set {key} <value>`"):
        parse_settings(stage="dev", values=values, default_tags=_tags())


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("computeEnabled", "maybe", "valid boolean"),
        ("sender", "nobody", "match pattern"),
        ("publicUrl", "https://tickets.example.org/", "without a final slash"),
        ("publicUrl", "tickets.example.org", "https://tickets.example.org"),
        ("publicUrl", "https://tickets.example.org:443", "leave the usual port out"),
        ("certificateArn", "arn:aws:iam::123456789012:role/x", "match pattern"),
        ("allowedCidrs", '["203.0.113.7/24"]', "203.0.113.0/24"),
        ("allowedCidrs", '["::/0"]', "no IPv4 network"),
        ("allowedCidrs", "203.0.113.0/24", "valid tuple"),
        ("hostedZoneId", "example.org", "match pattern"),
        ("natGateways", "3", "less than or equal to 2"),
        ("maxReceiveCount", "0", "greater than or equal to 1"),
        ("workerMaxConcurrency", "1", "greater than or equal to 2"),
        ("ticketsMaxConcurrency", "1001", "less than or equal to 1000"),
        ("workerMemoryMib", "64", "greater than or equal to 128"),
        ("logRetentionDays", "10", "CloudWatch Logs takes 1, 3, 5, 7, 14"),
        ("secretAdministrators", '["arn:aws:iam::123456789012:role/*"]', "match pattern"),
        ("secretAdministrators", '["arn:aws:iam::123456789012:root"]', "match pattern"),
        ("secretRecoveryDays", "5", "0 .delete at once. or 7 to 30"),
        ("databaseInstanceClass", "t4g.micro", "match pattern"),
        ("databaseStorageGib", "10", "greater than or equal to 20"),
        ("databaseBackupDays", "0", "greater than or equal to 1"),
        ("backupPlanDays", "-1", "greater than or equal to 0"),
        ("secretRotationReminderDays", "366", "less than or equal to 365"),
        ("keepSnapshots", "100", "less than or equal to 90"),
        ("cacheNodeType", "db.t4g.micro", "match pattern"),
        ("apiMinTasks", "0", "greater than or equal to 1"),
        ("apiMaxTasks", "two", "valid integer"),
        ("apiMaxTasks", "51", "less than or equal to 50"),
        ("alarmEmail", "nobody", "match pattern"),
        ("databaseConnectionsAlarm", "0", "greater than or equal to 1"),
        ("production", "perhaps", "valid boolean"),
        ("image", "an image", "match pattern"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key_the_value_and_what_is_allowed(
    key: str, value: str, allowed: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        _parse({key: value})
    (line,) = str(refusal.value).splitlines()[1:]
    assert line.strip().startswith(f"minitickets:{key} is {value!r}: ")
    assert re.search(allowed, line), line


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(SettingsError) as refusal:
        _parse({"natGateways": "9", "logRetentionDays": "10"})
    assert "natGateways" in str(refusal.value)
    assert "logRetentionDays" in str(refusal.value)


def test_a_key_that_is_spelt_wrong_is_refused_with_the_right_one() -> None:
    with pytest.raises(SettingsError, match="minitickets:computEnabled is no setting: do you mean computeEnabled"):
        _parse(unknown=["computEnabled"])


def test_compute_without_data_is_refused_with_what_to_set() -> None:
    with pytest.raises(SettingsError, match="Set dataEnabled to true, or computeEnabled to false"):
        _parse({"dataEnabled": "false"})


def test_caps_that_do_not_fit_into_the_account_are_added_up() -> None:
    _parse({"workerMaxConcurrency": "8", "ticketsMaxConcurrency": "2"})
    expected = r"workerMaxConcurrency 9 \+ ticketsMaxConcurrency 2 = 11, more than accountConcurrency 10"
    with pytest.raises(SettingsError, match=expected):
        _parse({"workerMaxConcurrency": "9"})


@pytest.mark.parametrize("wide", ["0.0.0.0/0", "128.0.0.0/1", "0.0.0.0/7"])
def test_without_a_certificate_the_world_may_not_come_in_not_even_in_halves(wide: str) -> None:
    certificate = "arn:aws:acm:us-east-1:123456789012:certificate/one"
    with pytest.raises(SettingsError, match="without TLS passwords travel in the clear"):
        _parse({"allowedCidrs": json.dumps([wide])})
    _parse({"allowedCidrs": json.dumps([wide]), "certificateArn": certificate})


def test_fargate_sells_cpu_and_memory_in_certain_pairs_only() -> None:
    _parse({"apiCpu": "1024", "apiMemoryMib": "2048"})
    with pytest.raises(SettingsError, match="apiMemoryMib is 512: with apiCpu 1024 Fargate takes 2048, 3072"):
        _parse({"apiCpu": "1024"})
    with pytest.raises(SettingsError, match="apiCpu is 300: Fargate takes 256, 512, 1024"):
        _parse({"apiCpu": "300"})


def test_a_record_needs_a_name() -> None:
    _parse({"hostedZoneId": "Z01234", "publicUrl": "https://tickets.example.org"})
    with pytest.raises(SettingsError, match="hostedZoneId is 'Z01234', and minitickets:publicUrl is not set"):
        _parse({"hostedZoneId": "Z01234"})


def test_a_range_of_tasks_that_holds_no_number_is_refused() -> None:
    _parse({"apiMinTasks": "2", "apiMaxTasks": "2"})
    with pytest.raises(SettingsError, match="apiMaxTasks is 1, less than apiMinTasks 2: set it to 2"):
        _parse({"apiMinTasks": "2"})


def _stage_file(stage: str) -> tuple[dict[str, str], str]:
    """The settings of a stage file of the project, and its default tags."""
    config = yaml.safe_load((ROOT / f"Pulumi.{stage}.yaml").read_text())["config"]
    ours = {key.removeprefix("minitickets:"): value for key, value in config.items() if key.startswith("minitickets:")}
    values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in ours.items()}
    return values, json.dumps(config["aws:defaultTags"])


WEAKENED = {
    "certificateArn": ("", "not set", "a certificate"),
    "publicUrl": ("http://tickets.example.org", "'http://tickets.example.org'", "an https:// origin"),
    "alarmEmail": ("", "not set", "an address"),
    "alarmKey": ("false", "false", "true"),
    "secretRotationReminderDays": ("91", "91", "1 to 90"),
    "natGateways": ("0", "0", "1 or 2"),
    "apiMinTasks": ("1", "1", "at least 2"),
    "databaseMultiAz": ("false", "false", "true"),
    "cacheReplicas": ("0", "0", "at least 1"),
    "databaseBackupDays": ("1", "1", "7 to 35"),
    "backupPlanDays": ("0", "0", "7 or more"),
    "pointInTimeRecovery": ("false", "false", "true"),
    "deletionProtection": ("false", "false", "true"),
    "forceDestroy": ("true", "true", "false"),
    "secretRecoveryDays": ("0", "0", "7 to 30"),
    "logRetentionDays": ("30", "30", "365 or more"),
}


@pytest.mark.parametrize("key", WEAKENED)
def test_a_production_stage_refuses_to_be_weakened(key: str) -> None:
    values, tags = _stage_file("prod")
    value, shown, allowed = WEAKENED[key]
    narrowed = {"allowedCidrs": "[]"} if key == "certificateArn" else {}  # another rule, told before
    with pytest.raises(SettingsError) as refusal:
        parse_settings(stage="prod", values={**values, key: value, **narrowed}, default_tags=tags)
    (line,) = str(refusal.value).splitlines()[1:]
    expected = f"minitickets:{key} is {shown}, and minitickets:production is true: it must be {allowed} ("
    assert line.strip().startswith(expected)


def test_what_is_unsafe_for_production_may_be_chosen_by_a_stage_that_is_none() -> None:
    values, tags = _stage_file("prod")
    weak = {key: value for key, (value, _, _) in WEAKENED.items()}
    parse_settings(
        stage="prod", values={**values, **weak, "allowedCidrs": "[]", "production": "false"}, default_tags=tags
    )


def test_every_default_that_is_unsafe_for_production_is_told_at_once() -> None:
    with pytest.raises(SettingsError) as refusal:
        _parse({"production": "true"})
    told = re.findall(r"minitickets:(\w+) is .* it must be", str(refusal.value))
    assert set(told) == WEAKENED.keys() - {"pointInTimeRecovery", "deletionProtection", "forceDestroy"} - {
        "secretRecoveryDays",
        "databaseBackupDays",
    }


@pytest.mark.parametrize("tag", ["Project", "Stage", "ManagedBy"])
def test_a_stage_file_whose_default_tags_lie_is_refused(tag: str) -> None:
    with pytest.raises(SettingsError, match=f"aws:defaultTags: tag {tag} is 'other'"):
        _parse(default_tags=_tags(**{tag: "other"}))


@pytest.mark.parametrize("tags", [None, "", "no json", "[]"])
def test_a_stage_file_without_default_tags_is_refused(tags: str | None) -> None:
    with pytest.raises(SettingsError, match=re.escape("pulumi config set --path aws:defaultTags.tags.Stage dev")):
        _parse(default_tags=tags)


@pytest.mark.parametrize("wish", ["none", "minitickets-dev-db-final-20261129t150000z", "rds:minitickets-dev-db-2026"])
def test_one_run_may_ask_for_a_snapshot(wish: str) -> None:
    assert _parse(restore_from=wish).restore_from == wish


@pytest.mark.parametrize("wish", ["", "two words", "-x"])
def test_a_wish_that_no_snapshot_can_have_as_its_name_is_refused(wish: str) -> None:
    with pytest.raises(SettingsError, match="RESTORE_FROM is"):
        _parse(restore_from=wish)


@pytest.mark.parametrize("stage", ["dev", "prod", "a", "pr-17", "a" * STAGE_MAX_LENGTH])
def test_a_good_stage_name(stage: str) -> None:
    assert stage_problem(stage) is None


@pytest.mark.parametrize("stage", ["Dev", "1dev", "dev-", "de--v", "de_v", "", "a" * (STAGE_MAX_LENGTH + 1)])
def test_rds_forbids_double_and_final_hyphens_and_names_have_an_end(stage: str) -> None:
    assert stage_problem(stage)
    with pytest.raises(SettingsError, match="stage"):
        _parse(stage=stage, default_tags=_tags(Stage=stage))


# The two descriptions of the same keys.
DECLARED: dict[str, Any] = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]


def test_pulumi_yaml_declares_exactly_the_settings() -> None:
    assert DECLARED.keys() == setting_keys().keys()


@pytest.mark.parametrize("key", setting_keys())
def test_pulumi_yaml_says_the_same_of_a_key_as_the_settings(key: str) -> None:
    fields = setting_keys()[key].model_fields.values()
    (field,) = (field for field in fields if field.alias == key)
    if isinstance(field.default, tuple):
        kind = "array"
    else:
        kind = "boolean" if field.annotation is bool else "integer" if field.annotation is int else "string"
    declared = dict(DECLARED[key])
    assert declared.pop("type") == kind
    assert declared.pop("description") == field.description
    if kind == "array":
        assert declared.pop("items") == {"type": "string"}
    if field.is_required():
        assert declared == {}
    else:
        empty = [] if kind == "array" else ""
        assert declared == {"default": field.default or (field.default if kind in {"boolean", "integer"} else empty)}


def test_every_setting_belongs_to_one_group_and_is_described() -> None:
    assert len(setting_keys()) == sum(len(group.model_fields) for group in GROUPS.values())
    for group in GROUPS.values():
        for name, field in group.model_fields.items():
            assert field.description, name


@pytest.mark.parametrize("path", sorted(ROOT.glob("Pulumi.*.yaml")), ids=lambda path: path.name)
def test_a_stage_file_of_the_project_holds(path: Path) -> None:
    stage = path.name.split(".")[1]
    values, tags = _stage_file(stage)
    unknown = sorted(values.keys() - setting_keys().keys())
    parse_settings(stage=stage, values=values, unknown=unknown, default_tags=tags)


def test_the_production_stage_of_the_project_is_one_and_the_other_is_not() -> None:
    assert {stage: _stage_file(stage)[0]["production"] for stage in ("dev", "prod")} == {"dev": "false", "prod": "true"}
