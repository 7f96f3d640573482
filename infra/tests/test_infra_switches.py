"""What the switches take away, and what they leave alone."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Record
    from tests.recording import Recording

pytestmark = pytest.mark.infra

# What each switch removes, and nothing else.
COMPUTE = {
    "aws:ecs/cluster:Cluster main",
    "aws:ecs/service:Service api",
    "aws:ecs/taskDefinition:TaskDefinition api",
    "aws:iam/role:Role api-execution",
    "aws:iam/role:Role api-task",
    "aws:iam/rolePolicy:RolePolicy api-execution",
    "aws:iam/rolePolicy:RolePolicy api-task",
    "aws:cloudwatch/metricAlarm:MetricAlarm api-errors",
    "aws:cloudwatch/metricAlarm:MetricAlarm api-tasks",
    "aws:cloudwatch/metricAlarm:MetricAlarm load-balancer-errors",
    "aws:cloudwatch/metricAlarm:MetricAlarm outbox-delayed",
    "aws:cloudwatch/metricAlarm:MetricAlarm outbox-parked",
    "aws:lb/listener:Listener http",
    "aws:lb/listenerRule:ListenerRule procedures",
    "aws:lb/loadBalancer:LoadBalancer api",
    "aws:lb/targetGroup:TargetGroup api",
}
NAT_GATEWAYS = {
    "aws:ec2/eip:Eip nat-0",
    "aws:ec2/eip:Eip nat-1",
    "aws:ec2/natGateway:NatGateway nat-0",
    "aws:ec2/natGateway:NatGateway nat-1",
    "aws:ec2/route:Route private-0",
    "aws:ec2/route:Route private-1",
}
DATA = {
    "aws:cloudwatch/metricAlarm:MetricAlarm database-connections",
    "aws:cloudwatch/metricAlarm:MetricAlarm database-cpu",
    "aws:cloudwatch/metricAlarm:MetricAlarm database-storage",
    "aws:elasticache/replicationGroup:ReplicationGroup redis",
    "aws:elasticache/subnetGroup:SubnetGroup redis",
    "aws:rds/instance:Instance db",
    "aws:rds/parameterGroup:ParameterGroup db",
    "aws:rds/subnetGroup:SubnetGroup db",
    "aws:secretsmanager/secret:Secret redis-token",
    "aws:secretsmanager/secretVersion:SecretVersion redis-token",
}
BACKUP_PLAN = {
    "aws:backup/plan:Plan db",
    "aws:backup/selection:Selection db",
    "aws:cloudwatch/metricAlarm:MetricAlarm backup-failed",
}
SERVERLESS_SERVICES = {"sns", "sqs", "lambda", "dynamodb", "s3", "sesv2", "iam", "secretsmanager", "cloudwatch"}

ALWAYS = {
    "alarmTopicArn",
    "assetsBucket",
    "jobsDlqUrl",
    "jobsQueueUrl",
    "processedJobsTable",
    "repositoryUrl",
    "sender",
    "signingSecretArn",
    "stage",
    "ticketsDlqUrl",
    "ticketsQueueUrl",
    "ticketsTable",
    "topicArn",
}

REMEMBERED = {
    "/minitickets-dev/database-life": '{"bornFrom":null,"final":"minitickets-dev-db-final-x","rewoundAt":null}',
    "/minitickets-dev/database-up": "minitickets-dev-db-final-x",
}


def test_compute_removes_exactly_the_api_and_what_only_it_needs(both_on: "Recording", compute_off: "Recording") -> None:
    assert both_on.resources.keys() - compute_off.resources.keys() == COMPUTE
    assert compute_off.resources.keys() <= both_on.resources.keys()


def test_data_removes_exactly_the_stores_and_what_only_they_need(
    compute_off: "Recording", both_off: "Recording"
) -> None:
    assert compute_off.resources.keys() - both_off.resources.keys() == DATA
    assert both_off.resources.keys() <= compute_off.resources.keys()


def test_the_backup_plan_goes_with_data_and_its_vault_and_role_stay(record: "Record") -> None:
    on = record({"backupPlanDays": "35", "computeEnabled": "false"})
    off = record({"backupPlanDays": "35", "computeEnabled": "false", "dataEnabled": "false"})
    assert on.resources.keys() - off.resources.keys() == DATA | BACKUP_PLAN
    assert {"aws:backup/vault:Vault db", "aws:iam/role:Role backup"} <= off.resources.keys()


def test_nat_gateways_go_with_compute(record: "Record") -> None:
    on = record({"natGateways": "2"})
    off = record({"natGateways": "2", "computeEnabled": "false"})
    assert on.resources.keys() - off.resources.keys() == COMPUTE | NAT_GATEWAYS


def test_what_stays_has_the_same_inputs_whatever_is_on(record: "Record") -> None:
    on, half, off = (
        record(
            {"computeEnabled": compute, "dataEnabled": data},
            instances=["minitickets-dev-db"] if data == "true" else [],
            parameters=REMEMBERED,
        )
        for compute, data in (("true", "true"), ("false", "true"), ("false", "false"))
    )
    for key, resource in off.resources.items():
        assert half.resources[key].inputs == resource.inputs, key
        assert on.resources[key].inputs == resource.inputs, key


def test_the_serverless_half_is_the_same_even_when_a_database_is_born(
    both_on: "Recording", compute_off: "Recording", both_off: "Recording"
) -> None:
    serverless = {
        key: resource
        for key, resource in both_off.resources.items()
        if resource.type.split(":")[1].split("/")[0] in SERVERLESS_SERVICES
    }
    assert len(serverless) > 30
    for key, resource in serverless.items():
        for other in (both_on, compute_off):
            assert (other.resources[key].inputs, other.resources[key].depends_on) == (
                resource.inputs,
                resource.depends_on,
            ), key


@pytest.mark.parametrize(
    ("switches", "outputs"),
    [
        (("true", "true"), ALWAYS | {"apiUrl", "apiCluster", "apiTaskDefinition", "databaseIdentifier"}),
        (("false", "true"), ALWAYS | {"databaseIdentifier"}),
        (("false", "false"), ALWAYS),
    ],
)
def test_the_outputs_are_those_that_are_documented(
    record: "Record", switches: tuple[str, str], outputs: set[str]
) -> None:
    recording = record({"computeEnabled": switches[0], "dataEnabled": switches[1]})
    assert set(recording.outputs) == outputs
    assert all(value for value in recording.outputs.values())


def test_compute_without_data_is_refused_before_anything_is_looked_up_or_made(
    record: "Record", program_failed: type[Any]
) -> None:
    with pytest.raises(program_failed, match="Set dataEnabled to true, or computeEnabled to false") as failure:
        record({"computeEnabled": "true", "dataEnabled": "false"})
    assert (failure.value.resources, failure.value.lookups) == ({}, [])


def test_two_runs_ask_for_the_same(record_anew: "Record") -> None:
    def run() -> "Recording":
        return record_anew({}, instances=["minitickets-dev-db"], parameters=REMEMBERED)

    first, second = run(), run()
    assert first.resources == second.resources
    assert first.outputs == second.outputs


def test_without_an_image_everything_is_there_but_the_task_and_its_service(
    record: "Record", both_on: "Recording"
) -> None:
    recording = record({"image": ""})
    assert both_on.resources.keys() - recording.resources.keys() == {
        "aws:cloudwatch/metricAlarm:MetricAlarm api-tasks",
        "aws:ecs/service:Service api",
        "aws:ecs/taskDefinition:TaskDefinition api",
    }
    assert "apiUrl" in recording.outputs
    assert "apiTaskDefinition" not in recording.outputs


def test_the_local_platform_must_know_exactly_these_types(record: "Record", both_on: "Recording") -> None:
    everything = record(
        {
            "natGateways": "1",
            "publicUrl": "https://tickets.example.org",
            "certificateArn": CERTIFICATE,
            "apiMaxTasks": "2",
            "hostedZoneId": "Z01234",
            "alarmKey": "true",
            "backupPlanDays": "35",
            "secretRotationReminderDays": "90",
            "secretAdministrators": '["arn:aws:iam::123456789012:user/engineer"]',
        }
    )
    assert {type_.split(":", 1)[1] for type_ in everything.types()} == TYPES
    assert {type_.split(":", 1)[1] for type_ in both_on.types()} == TYPES - {
        "appautoscaling/policy:Policy",
        "appautoscaling/target:Target",
        "backup/plan:Plan",
        "backup/selection:Selection",
        "kms/key:Key",
        "route53/record:Record",
        "scheduler/schedule:Schedule",
        "secretsmanager/secretPolicy:SecretPolicy",
        "ec2/eip:Eip",
        "ec2/natGateway:NatGateway",
        "s3/bucketCorsConfiguration:BucketCorsConfiguration",
    }


CERTIFICATE = "arn:aws:acm:us-east-1:123456789012:certificate/one"
TYPES = {
    "appautoscaling/policy:Policy",
    "appautoscaling/target:Target",
    "backup/plan:Plan",
    "backup/selection:Selection",
    "backup/vault:Vault",
    "cloudwatch/logGroup:LogGroup",
    "cloudwatch/logMetricFilter:LogMetricFilter",
    "cloudwatch/metricAlarm:MetricAlarm",
    "dynamodb/table:Table",
    "ec2/defaultNetworkAcl:DefaultNetworkAcl",
    "ec2/defaultSecurityGroup:DefaultSecurityGroup",
    "ec2/eip:Eip",
    "ec2/internetGateway:InternetGateway",
    "ec2/natGateway:NatGateway",
    "ec2/route:Route",
    "ec2/routeTable:RouteTable",
    "ec2/routeTableAssociation:RouteTableAssociation",
    "ec2/securityGroup:SecurityGroup",
    "ec2/securityGroupRule:SecurityGroupRule",
    "ec2/subnet:Subnet",
    "ec2/vpc:Vpc",
    "ec2/vpcEndpoint:VpcEndpoint",
    "ecr/lifecyclePolicy:LifecyclePolicy",
    "ecr/repository:Repository",
    "ecs/cluster:Cluster",
    "ecs/service:Service",
    "ecs/taskDefinition:TaskDefinition",
    "elasticache/replicationGroup:ReplicationGroup",
    "elasticache/subnetGroup:SubnetGroup",
    "iam/role:Role",
    "iam/rolePolicy:RolePolicy",
    "kms/key:Key",
    "lambda/eventSourceMapping:EventSourceMapping",
    "lambda/function:Function",
    "lb/listener:Listener",
    "lb/listenerRule:ListenerRule",
    "lb/loadBalancer:LoadBalancer",
    "lb/targetGroup:TargetGroup",
    "rds/instance:Instance",
    "rds/parameterGroup:ParameterGroup",
    "rds/subnetGroup:SubnetGroup",
    "route53/record:Record",
    "s3/bucket:Bucket",
    "s3/bucketCorsConfiguration:BucketCorsConfiguration",
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "s3/bucketOwnershipControls:BucketOwnershipControls",
    "s3/bucketPolicy:BucketPolicy",
    "s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "scheduler/schedule:Schedule",
    "secretsmanager/secret:Secret",
    "secretsmanager/secretPolicy:SecretPolicy",
    "secretsmanager/secretVersion:SecretVersion",
    "sesv2/emailIdentity:EmailIdentity",
    "sns/topic:Topic",
    "sns/topicPolicy:TopicPolicy",
    "sns/topicSubscription:TopicSubscription",
    "sqs/queue:Queue",
    "sqs/queuePolicy:QueuePolicy",
    "ssm/parameter:Parameter",
}
