"""A stage that is made and destroyed by runs which are killed in every step: each next one finishes what it finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.emulator import Clients
from local.engine.holds import Hold, Moment
from local.engine.operations import CREATE, DELETE
from tests.fixtures.deployed_stage import DeployedStage, new_stage

pytestmark = pytest.mark.engine

# All that can be begun at once is: fewer than the provider has threads for.
_AT_ONCE = "48"


@dataclass(frozen=True, kw_only=True)
class Kills:
    """The resources that a command's runs were killed at (``<type> <name>``), by the moment."""

    at: Mapping[Moment, set[str]]

    @property
    def twice(self) -> set[str]:
        """Those before which, and during which, a run was killed."""
        return self.at[Moment.BEFORE] & self.at[Moment.DURING]


def _kill_in_every_step(stage: DeployedStage, command: str, verb: str) -> Kills:
    """Run a command until it ends well. Each run is killed where it would do something: at the first time before that,
    at the second when it is done and the engine has not heard. That it has heard is the kill before the next step."""
    moments: dict[str, Moment | None] = {}
    at: dict[Moment, set[str]] = {moment: set() for moment in Moment}
    while held := stage.killed(command, Hold(verb=verb, moments=moments, otherwise=Moment.BEFORE)):
        for key in held:
            moment = moments.get(key, Moment.BEFORE)
            assert moment is not None
            at[moment].add(key)
            moments[key] = Moment.DURING if moment is Moment.BEFORE else None
    return Kills(at=at)


def test_runs_that_are_killed_in_every_step_make_a_whole_stage_and_leave_nothing_of_it(
    tmp_path: Path, cli: Path
) -> None:
    with new_stage(tmp_path, cli) as stage:
        stage.environment["PULUMI_PARALLEL"] = _AT_ONCE
        deployed = DeployedStage(stage=stage)

        made = _kill_in_every_step(deployed, "up", CREATE)

        state = _in_state(deployed)
        assert made.twice == set(state)
        assert set(stage.resources()) == set(state), "nothing was made twice"
        assert _ids(deployed) == state
        assert stage.plan().steps == ()

        gone = _kill_in_every_step(deployed, "destroy", DELETE)

        assert gone.twice == set(state)
        assert stage.remaining() == []
        assert _left(stage.endpoint) == []
        assert not (stage.pulumi.state() or {}).get("resources")

        deployed.deploy("up")
        assert deployed.life()["bornFrom"] is None, "a stage made anew begins with an empty database"


def _in_state(deployed: DeployedStage) -> dict[str, str]:
    """The ids of the resources in the engine's state."""
    state = deployed.stage.pulumi.state() or {}
    assert not state.get("pending_operations")
    return {
        f"{found['type']} {found['urn'].rpartition('::')[2]}": found["id"]
        for found in state["resources"]
        if found["type"].startswith("aws:")
    }


def _ids(deployed: DeployedStage) -> dict[str, str]:
    """The ids of the resources on the platform."""
    return {f"{found['type']} {found['name']}": found["id"] for found in deployed.stage.control.get("/resources")}


def _left(endpoint: str) -> list[str]:
    """Whatever of the stage AWS would still hold, and mostly charge for."""
    aws = Clients(endpoint)
    ec2 = aws("ec2")
    try:
        return [
            *(found["DBSnapshotIdentifier"] for found in aws("rds").describe_db_snapshots()["DBSnapshots"]),
            *(found["DBInstanceIdentifier"] for found in aws("rds").describe_db_instances()["DBInstances"]),
            *(found["BackupVaultName"] for found in aws("backup").list_backup_vaults()["BackupVaultList"]),
            *(found["Name"] for found in aws("secretsmanager").list_secrets()["SecretList"]),
            *(found["Name"] for found in aws("s3").list_buckets()["Buckets"]),
            *aws("dynamodb").list_tables()["TableNames"],
            *aws("sqs").list_queues().get("QueueUrls", []),
            *(found["TopicArn"] for found in aws("sns").list_topics()["Topics"]),
            *(found["FunctionName"] for found in aws("lambda").list_functions()["Functions"]),
            *(found["UUID"] for found in aws("lambda").list_event_source_mappings()["EventSourceMappings"]),
            *(found["repositoryName"] for found in aws("ecr").describe_repositories()["repositories"]),
            *(found["LoadBalancerName"] for found in aws("elbv2").describe_load_balancers()["LoadBalancers"]),
            *(found["TargetGroupName"] for found in aws("elbv2").describe_target_groups()["TargetGroups"]),
            *(found["logGroupName"] for found in aws("logs").describe_log_groups(logGroupNamePrefix="/")["logGroups"]),
            *(found["Name"] for found in aws("ssm").get_parameters_by_path(Path="/minitickets-dev")["Parameters"]),
            *(found["VpcId"] for found in ec2.describe_vpcs()["Vpcs"] if not found["IsDefault"]),
            *(found["VpcEndpointId"] for found in ec2.describe_vpc_endpoints()["VpcEndpoints"]),
            *(found["GroupId"] for found in _tagged(ec2.describe_security_groups()["SecurityGroups"])),
            *(found["RouteTableId"] for found in _tagged(ec2.describe_route_tables()["RouteTables"])),
            *(found["InternetGatewayId"] for found in _tagged(ec2.describe_internet_gateways()["InternetGateways"])),
            *(found["RoleName"] for found in aws("iam").list_roles()["Roles"]),
        ]
    finally:
        aws.close()


def _tagged(listed: list[dict[str, object]]) -> list[dict[str, object]]:
    """Those that the program made: AWS's own have no tags."""
    return [found for found in listed if found.get("Tags")]
