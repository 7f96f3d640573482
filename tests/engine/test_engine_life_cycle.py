"""A stage whose very first deploy is killed, is finished, and is destroyed so that nothing of it is left."""

from pathlib import Path

import pytest

from local.emulator import Clients
from tests.fixtures.deployed_stage import DATABASE, SERVICE, DeployedStage, new_stage

pytestmark = pytest.mark.engine


def test_a_killed_first_up_is_finished_and_destroy_leaves_nothing(tmp_path: Path, cli: Path) -> None:
    with new_stage(tmp_path, cli) as stage:
        deployed = DeployedStage(stage=stage)
        stage.pulumi.make_stack()
        deployed.kill_up(when=lambda: deployed.makes(SERVICE))
        assert (stage.pulumi.state() or {})["pending_operations"]

        run = deployed.deploy("up")
        assert "was cut off while" in run.output
        assert "cancel: its process is gone, its lock is taken away" in run.output
        assert stage.resources().count(DATABASE) == stage.resources().count(SERVICE) == 1
        assert stage.plan().steps == ()

        deployed.deploy("sleep")
        assert deployed.snapshots()
        deployed.deploy("destroy")
        assert stage.remaining() == []
        assert _left(stage.endpoint) == []
        assert not (stage.pulumi.state() or {}).get("resources")

        deployed.deploy("up")
        assert deployed.life()["bornFrom"] is None, "a stage made anew begins with an empty database"


def _left(endpoint: str) -> list[str]:
    """Whatever of the stage AWS would still hold, and mostly charge for."""
    aws = Clients(endpoint)
    try:
        return [
            *(found["DBSnapshotIdentifier"] for found in aws("rds").describe_db_snapshots()["DBSnapshots"]),
            *(found["DBInstanceIdentifier"] for found in aws("rds").describe_db_instances()["DBInstances"]),
            *(found["Name"] for found in aws("secretsmanager").list_secrets()["SecretList"]),
            *(found["Name"] for found in aws("s3").list_buckets()["Buckets"]),
            *aws("dynamodb").list_tables()["TableNames"],
            *aws("sqs").list_queues().get("QueueUrls", []),
            *(found["TopicArn"] for found in aws("sns").list_topics()["Topics"]),
            *(found["FunctionName"] for found in aws("lambda").list_functions()["Functions"]),
            *(found["repositoryName"] for found in aws("ecr").describe_repositories()["repositories"]),
            *(found["LoadBalancerName"] for found in aws("elbv2").describe_load_balancers()["LoadBalancers"]),
            *(found["logGroupName"] for found in aws("logs").describe_log_groups(logGroupNamePrefix="/")["logGroups"]),
            *(found["Name"] for found in aws("ssm").get_parameters_by_path(Path="/minitickets-dev")["Parameters"]),
        ]
    finally:
        aws.close()
