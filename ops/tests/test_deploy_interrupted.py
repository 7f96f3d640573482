"""What becomes of a run that was cut off."""

import json
import os
import socket
from typing import Any

import pytest

from ops.deploy import interrupted
from ops.deploy.interrupted import Place, Recovery, recover, require_dead, unfinished
from ops.pulumi_cli import LockOwner
from ops.refusal import Refusal
from ops.tests.stages import FakeAws, resource, state

pytestmark = pytest.mark.unit

PLACE = Place(account="123456789012", region="eu-west-1")


def _recover(*pending: dict[str, Any], there: tuple[dict[str, Any], ...] = (), aws: FakeAws | None = None) -> Recovery:
    deployment = json.loads(state(*there, pending=pending))["deployment"]
    return recover(deployment, place=PLACE, finder=aws or FakeAws())


@pytest.mark.parametrize(
    ("kind", "inputs", "identity"),
    [
        ("aws:rds/instance:Instance", {"identifier": "minitickets-dev-db"}, "minitickets-dev-db"),
        ("aws:sqs/queue:Queue", {"name": "q"}, "https://sqs.eu-west-1.amazonaws.com/123456789012/q"),
        ("aws:sns/topic:Topic", {"name": "t"}, "arn:aws:sns:eu-west-1:123456789012:t"),
        ("aws:iam/rolePolicy:RolePolicy", {"role": "worker", "name": "p"}, "worker:p"),
        (
            "aws:ecs/service:Service",
            {"cluster": "arn:aws:ecs:eu-west-1:123456789012:cluster/c", "name": "api"},
            "c/api",
        ),
        ("aws:secretsmanager/secret:Secret", {"name": "token"}, "arn:token-Ab3"),
        ("aws:ec2/securityGroup:SecurityGroup", {"name": "api", "vpcId": "vpc-1"}, "sg-1"),
    ],
)
def test_a_cut_off_create_of_a_known_name_is_looked_for_by_its_import_id(
    kind: str, inputs: dict[str, Any], identity: str
) -> None:
    aws = FakeAws(secrets={"token": "arn:token-Ab3"}, groups={("api", "vpc-1"): "sg-1"})
    recovery = _recover(resource(kind, "thing", **inputs), aws=aws)
    [adopted] = recovery.deployment["resources"]
    assert (adopted["id"], adopted["outputs"], adopted["inputs"]) == (identity, {}, inputs)
    assert recovery.looked_for == (f"{kind} thing",)
    assert "pending_operations" not in recovery.deployment


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        ("aws:ec2/natGateway:NatGateway", {"subnetId": "subnet-1"}),
        ("aws:sqs/queue:Queue", {}),
        ("aws:secretsmanager/secret:Secret", {"name": "not-made"}),
    ],
    ids=["named by AWS", "no name sent", "secret that is not there"],
)
def test_a_cut_off_create_that_nobody_can_find_is_named_and_let_go(kind: str, inputs: dict[str, Any]) -> None:
    recovery = _recover(resource(kind, "thing", **inputs))
    assert recovery.deployment["resources"] == []
    assert recovery.unknown == (f"{kind} thing",)


def test_a_resource_that_the_state_holds_already_is_not_added_twice() -> None:
    database = resource("aws:rds/instance:Instance", "db", identifier="minitickets-dev-db")
    recovery = _recover(database, there=({**database, "id": "minitickets-dev-db"},))
    assert [found["urn"] for found in recovery.deployment["resources"]] == [database["urn"]]


def test_recovering_leaves_the_state_that_was_read_as_it_is() -> None:
    deployment = json.loads(state(pending=[resource("aws:sqs/queue:Queue", "jobs", name="q")]))["deployment"]
    before = json.dumps(deployment)
    recover(deployment, place=PLACE, finder=FakeAws())
    assert json.dumps(deployment) == before


def test_what_a_killed_run_was_doing_is_told() -> None:
    deployment = {
        "pending_operations": [
            {"type": "deleting", "resource": resource("aws:rds/instance:Instance", "db")},
            {"type": "creating", "resource": resource("aws:sqs/queue:Queue", "jobs")},
        ]
    }
    assert unfinished(deployment) == ["deleting aws:rds/instance:Instance db", "creating aws:sqs/queue:Queue jobs"]
    assert unfinished(None) == unfinished({"resources": []}) == []


def _owner(*, host: str | None = None, process: int = 1) -> LockOwner:
    return LockOwner(user="ada", host=host or socket.gethostname(), process=process, since="2026-11-29T15:12:42Z")


def test_a_run_on_another_machine_is_dead_only_on_the_operator_s_word() -> None:
    with pytest.raises(Refusal, match=r"ada on elsewhere since 2026-11-29T15:12:42Z.*UNLOCK=1"):
        require_dead([_owner(host="elsewhere")], stage="dev", unlock=False)
    require_dead([_owner(host="elsewhere")], stage="dev", unlock=True)


def test_a_lock_that_names_nobody_is_another_s() -> None:
    with pytest.raises(Refusal, match="someone else"):
        require_dead([], stage="dev", unlock=False)


def test_a_run_that_goes_on_here_is_never_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupted, "_is_pulumi", lambda process: process == 77)
    for unlock in (False, True):
        with pytest.raises(Refusal, match=r"going on here \(process 77"):
            require_dead([_owner(process=77)], stage="dev", unlock=unlock)


def test_a_process_number_that_another_program_has_by_now_is_no_run() -> None:
    require_dead([_owner(process=os.getpid())], stage="dev", unlock=False)
