"""What becomes of a run that was cut off."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ops.deploy import interrupted
from ops.deploy.import_ids import Place
from ops.deploy.interrupted import Recovery, recover, require_dead, unfinished
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
        ("aws:ec2/route:Route", {"routeTableId": "rtb-1", "destinationCidrBlock": "0.0.0.0/0"}, "rtb-1_0.0.0.0/0"),
        (
            "aws:ec2/securityGroupRule:SecurityGroupRule",
            {
                "securityGroupId": "sg-1",
                "type": "ingress",
                "protocol": "tcp",
                "fromPort": 443.0,
                "toPort": 443.0,
                "cidrBlocks": ["10.0.0.0/8", "192.0.2.0/24"],
            },
            "sg-1_ingress_tcp_443_443_10.0.0.0/8_192.0.2.0/24",
        ),
        (
            "aws:ec2/securityGroupRule:SecurityGroupRule",
            {
                "securityGroupId": "sg-1",
                "type": "egress",
                "protocol": "tcp",
                "fromPort": 5432.0,
                "toPort": 5432.0,
                "sourceSecurityGroupId": "sg-2",
            },
            "sg-1_egress_tcp_5432_5432_sg-2",
        ),
        (
            "aws:appautoscaling/policy:Policy",
            {"serviceNamespace": "ecs", "resourceId": "service/c/api", "scalableDimension": "ecs:n", "name": "cpu"},
            "ecs/service/c/api/ecs:n/cpu",
        ),
        ("aws:secretsmanager/secret:Secret", {"name": "token"}, "arn:token-Ab3"),
    ],
)
def test_a_cut_off_create_of_a_known_name_is_looked_for_by_its_import_id(
    kind: str, inputs: dict[str, Any], identity: str
) -> None:
    aws = FakeAws(found={"aws:secretsmanager/secret:Secret": ["arn:token-Ab3"]})
    recovery = _recover(resource(kind, "thing", **inputs), aws=aws)
    [adopted] = recovery.deployment["resources"]
    assert (adopted["id"], adopted["outputs"], adopted["inputs"]) == (identity, {}, inputs)
    assert recovery.looked_for == (f"{kind} thing",)
    assert "pending_operations" not in recovery.deployment


VPC = "aws:ec2/vpc:Vpc"
GROUP = "aws:lb/targetGroup:TargetGroup"


@pytest.mark.parametrize(
    ("kind", "inputs", "found", "why"),
    [
        ("aws:sqs/queue:Queue", {}, {}, "input 'name' was left to AWS"),
        ("aws:ec2/fleet:Fleet", {}, {}, "there is no look-up for aws:ec2/fleet:Fleet"),
        (VPC, {"tags": {"Name": "x"}}, {VPC: ["vpc-1", "vpc-2"]}, "AWS shows several: vpc-1, vpc-2"),
    ],
)
def test_a_cut_off_create_that_nobody_can_tell_from_others_is_named_and_let_go(
    kind: str, inputs: dict[str, Any], found: dict[str, list[str]], why: str
) -> None:
    recovery = _recover(resource(kind, "thing", **inputs), aws=FakeAws(found=found))
    assert recovery.deployment["resources"] == []
    assert recovery.unknown == (f"{kind} thing ({why})",)


def test_a_cut_off_create_of_which_aws_shows_nothing_is_made_anew() -> None:
    recovery = _recover(resource(VPC, "main", tags={"Name": "x"}), aws=FakeAws(found={VPC: []}))
    assert recovery.deployment["resources"] == []
    assert (recovery.absent, recovery.unknown) == ((f"{VPC} main",), ())


def test_what_the_state_knows_already_is_not_what_was_being_made() -> None:
    """A second subnet of the same tags, say, or a successor: the state tells them apart by id or ARN."""
    known = {**resource(VPC, "first"), "id": "vpc-1", "outputs": {"arn": "arn:vpc-1"}}
    recovery = _recover(resource(VPC, "second"), there=(known,), aws=FakeAws(found={VPC: ["vpc-1", "vpc-2"]}))
    assert [found["id"] for found in recovery.deployment["resources"]] == ["vpc-1", "vpc-2"]


def test_a_successor_that_is_there_beside_its_predecessor_is_named() -> None:
    old = {**resource(GROUP, "api", name="api-1"), "id": "arn:1"}
    recovery = _recover(resource(GROUP, "api", name="api-2"), there=(old,), aws=FakeAws(found={GROUP: ["arn:2"]}))
    assert [found["id"] for found in recovery.deployment["resources"]] == ["arn:1"]
    assert recovery.unknown == (f"{GROUP} api (its predecessor is still there)",)


def test_a_successor_whose_predecessor_had_to_go_first_takes_its_place() -> None:
    queue = resource("aws:sqs/queue:Queue", "jobs", name="q")
    old = {**queue, "id": "gone", "pendingReplacement": True}
    [adopted] = _recover(queue, there=(old,)).deployment["resources"]
    assert adopted["id"].endswith("/q")
    assert "pendingReplacement" not in adopted


def test_what_aws_makes_with_a_vpc_is_taken_over_again() -> None:
    recovery = _recover(resource("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", "default", vpcId="vpc-1"))
    assert recovery.deployment["resources"] == []
    assert (recovery.looked_for, recovery.absent, recovery.unknown) == ((), (), ())


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


def test_a_run_that_is_dead_but_that_its_parent_has_not_asked_for_is_dead(tmp_path: Path) -> None:
    program = tmp_path / "pulumi"
    program.symlink_to("/bin/true")
    process = subprocess.Popen([program])
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays a zombie
        require_dead([_owner(process=process.pid)], stage="dev", unlock=False)
    finally:
        process.wait()


def test_a_process_number_that_another_program_has_by_now_is_no_run() -> None:
    require_dead([_owner(process=os.getpid())], stage="dev", unlock=False)
