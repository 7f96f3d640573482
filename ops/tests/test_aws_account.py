"""What the operator's commands ask of AWS, answered by the emulator."""

import pytest

from local.emulator import Clients
from ops.aws_account import AwsAccount
from ops.refusal import Failure
from tests.fixtures.emulator import RunningEmulator

pytestmark = pytest.mark.integration

REGION = "eu-west-2"  # nobody else's in the session's emulator


@pytest.fixture
def region() -> str:
    return REGION


def test_the_account_s_number_is_asked_for_with_our_credentials(account: AwsAccount, emulator: RunningEmulator) -> None:
    assert account.number() == emulator.account


def test_what_is_not_there_is_none_and_no_failure(account: AwsAccount) -> None:
    assert account.database("minitickets-nobody-db") is None
    assert account.snapshots("minitickets-nobody-db") == []
    assert account.snapshot("no-such-snapshot") is None
    assert account.remembered_snapshots("/minitickets-nobody/database-life") is None
    account.delete_snapshot("no-such-snapshot")


def test_a_memory_names_its_snapshots_and_a_broken_one_is_a_failure(account: AwsAccount, aws: Clients) -> None:
    name = "/minitickets-memory/database-life"
    for value, expected in (
        ('{"bornFrom":"a","final":"b","rewoundAt":null}', frozenset("ab")),
        ('{"bornFrom":null,"final":"b","rewoundAt":null}', frozenset("b")),
        ('{"bornFrom":null,"final":null,"rewoundAt":null}', frozenset[str]()),
    ):
        aws("ssm").put_parameter(Name=name, Type="String", Value=value, Overwrite=True)
        assert account.remembered_snapshots(name) == expected
    aws("ssm").put_parameter(Name=name, Type="String", Value="{}", Overwrite=True)
    with pytest.raises(Failure, match=f"Parameter {name} holds '{{}}'"):
        account.remembered_snapshots(name)


def test_an_image_has_a_digest_once_it_is_pushed(account: AwsAccount, aws: Clients) -> None:
    aws("ecr").create_repository(repositoryName="minitickets-dev-api")
    assert account.image_digest("minitickets-dev-api", "1a2b") is None
    pushed = aws("ecr").put_image(
        repositoryName="minitickets-dev-api", imageTag="1a2b", imageManifest='{"schemaVersion":2}'
    )
    assert account.image_digest("minitickets-dev-api", "1a2b") == pushed["image"]["imageId"]["imageDigest"]
    assert account.registry_login()


def test_a_refusal_of_aws_is_told_with_what_was_wanted(account: AwsAccount) -> None:
    with pytest.raises(Failure, match=r"look up image 1a2b in no-such-repository \(RepositoryNotFound"):
        account.image_digest("no-such-repository", "1a2b")
