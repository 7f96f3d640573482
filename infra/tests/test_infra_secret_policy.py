"""Who may touch the stage's secrets: whom IAM lets, or only those whom the stage names."""

from typing import TYPE_CHECKING, Any

import pytest

from src.account import name_in

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

POLICY = "aws:secretsmanager/secretPolicy:SecretPolicy"
ROLES = "arn:aws:iam::123456789012:role"
ENGINEER = "arn:aws:iam::123456789012:user/staff/engineer"  # the recording's credentials are this user's
NAMED = {"secretAdministrators": f'["{ENGINEER}", "{ROLES}/deploys"]'}


def test_a_stage_that_names_nobody_leaves_its_secrets_to_iam(both_on: "Recording") -> None:
    assert not both_on.of(POLICY)


def test_a_stage_that_names_administrators_denies_its_secrets_to_all_but_them_and_the_one_reader(
    record: "Record",
) -> None:
    recording = record(NAMED)
    readers = {"ticket-signing": "minitickets-dev-tickets", "redis-token": "minitickets-dev-api-execution"}
    assert {key.rpartition(" ")[2] for key in recording.of(POLICY)} == set(readers)
    for secret, reader in readers.items():
        [statement] = recording.policy(POLICY, secret)["Statement"]
        assert statement == {
            "Sid": "DenyAllOthers",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "secretsmanager:*",
            "Resource": "*",
            "Condition": {"StringNotEquals": {"aws:PrincipalArn": [f"{ROLES}/deploys", f"{ROLES}/{reader}", ENGINEER]}},
        }
        assert recording.one(POLICY, secret).inputs["secretArn"].endswith(f":minitickets-dev-{secret}-AbCdEf")


def test_the_readers_are_the_roles_that_the_program_makes(record: "Record") -> None:
    recording = record(NAMED)
    made = {role.inputs["name"] for role in recording.of("aws:iam/role:Role").values()}
    assert {"minitickets-dev-tickets", "minitickets-dev-api-execution"} <= made


def test_a_flip_of_compute_leaves_the_policies_as_they_are(record: "Record") -> None:
    on, off = record(NAMED), record(NAMED | {"computeEnabled": "false"})
    assert on.of(POLICY) == off.of(POLICY)


def test_whoever_deploys_is_not_locked_out(record: "Record", program_failed: type[Any]) -> None:
    with pytest.raises(
        program_failed, match=r"does not name engineer.*would lock you out.*named are deploys"
    ) as failure:
        record({"secretAdministrators": f'["{ROLES}/deploys"]'})
    assert failure.value.resources == {}


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Admin_1a/ada@example.org", "AWSReservedSSO_Admin_1a"),
        ("arn:aws:iam::123456789012:user/staff/ada", "ada"),
        ("arn:aws:iam::123456789012:root", "arn:aws:iam::123456789012:root"),
    ],
)
def test_a_caller_is_known_by_the_name_that_stays(arn: str, name: str) -> None:
    assert name_in(arn) == name
