"""Every resource type that the local platform knows, and what of it has no effect here."""

from collections.abc import Mapping
from types import MappingProxyType

from local.handlers import (
    appautoscaling,
    backup,
    cloudwatch,
    dynamodb,
    ec2,
    ec2_network_acl,
    ec2_routes,
    ec2_security_groups,
    ecr,
    ecs,
    ecs_service,
    elasticache,
    elbv2,
    iam,
    kms,
    lambda_,
    rds,
    rds_groups,
    route53,
    s3,
    scheduler,
    secretsmanager,
    ses,
    sns,
    sqs,
    ssm,
)
from local.handlers.handler import Handler

_ALL: tuple[type[Handler], ...] = (
    appautoscaling.Policy,
    appautoscaling.Target,
    backup.Plan,
    backup.Selection,
    backup.Vault,
    cloudwatch.Dashboard,
    cloudwatch.LogGroup,
    cloudwatch.LogMetricFilter,
    cloudwatch.MetricAlarm,
    dynamodb.Table,
    ec2.Eip,
    ec2.InternetGateway,
    ec2.NatGateway,
    ec2.Subnet,
    ec2.Vpc,
    ec2.VpcEndpoint,
    ec2_network_acl.DefaultNetworkAcl,
    ec2_routes.Route,
    ec2_routes.RouteTable,
    ec2_routes.RouteTableAssociation,
    ec2_security_groups.DefaultSecurityGroup,
    ec2_security_groups.SecurityGroup,
    ec2_security_groups.SecurityGroupEgressRule,
    ec2_security_groups.SecurityGroupIngressRule,
    ec2_security_groups.SecurityGroupRule,
    ecr.LifecyclePolicy,
    ecr.Repository,
    ecs.Cluster,
    ecs.TaskDefinitionHandler,
    ecs_service.Service,
    elasticache.ReplicationGroup,
    elasticache.SubnetGroup,
    elbv2.Listener,
    elbv2.ListenerRule,
    elbv2.LoadBalancer,
    elbv2.TargetGroup,
    iam.Policy,
    iam.Role,
    iam.RolePolicy,
    iam.RolePolicyAttachment,
    kms.Key,
    lambda_.EventSourceMapping,
    lambda_.Function,
    lambda_.Permission,
    rds.Instance,
    rds_groups.ParameterGroup,
    rds_groups.SubnetGroup,
    route53.Record,
    s3.Bucket,
    s3.BucketCors,
    s3.BucketLifecycle,
    s3.BucketOwnershipControls,
    s3.BucketPolicy,
    s3.BucketPublicAccessBlock,
    s3.BucketServerSideEncryption,
    s3.BucketVersioning,
    scheduler.Schedule,
    secretsmanager.Secret,
    secretsmanager.SecretPolicy,
    secretsmanager.SecretVersion,
    ses.ConfigurationSet,
    ses.EmailIdentity,
    sns.Topic,
    sns.TopicPolicy,
    sns.TopicSubscription,
    sqs.Queue,
    sqs.QueuePolicy,
    ssm.Parameter,
)


def _with_region(handler: type[Handler]) -> type[Handler]:
    # The provider has taken `region` at every resource since its version 7; another region is another resource.
    handler.replaced_by = handler.replaced_by | {"region"}
    return handler


HANDLERS: Mapping[str, type[Handler]] = MappingProxyType(
    {handler.resource_type: _with_region(handler) for handler in _ALL}
)

# Inputs that are remembered in the outputs, for whoever compares, and do nothing else on this machine.
REMEMBERED_ONLY: Mapping[str, str] = MappingProxyType(
    {
        "aws:appautoscaling/*": "there is nothing that scales: a service runs the tasks that it was declared with",
        "aws:backup/*": "nothing is backed up: a database here ends in its final snapshot only",
        "aws:cloudwatch/logMetricFilter:LogMetricFilter": "a task's log is a file here, and no metric counts its lines",
        "aws:ec2/*": "the network is in the emulator's control plane only: no packet here passes a route or a group",
        "aws:ecr/repository:Repository": "there is no image store: a task's process runs from this tree",
        "aws:ecs/taskDefinition:TaskDefinition": (
            "cpu, memory, user, readonlyRootFilesystem, linuxParameters, healthCheck, volumes and logConfiguration of "
            "a container: it is a plain process, its log a file below the stage's state; the load balancer's health "
            "check decides"
        ),
        "aws:elasticache/replicationGroup:ReplicationGroup": (
            "nodeType, numCacheClusters, encryption in transit: one Valkey on loopback, without TLS"
        ),
        "aws:lb/listener:Listener": "port, certificate and redirect: a load balancer is one plain port of this machine",
        "aws:lb/listenerRule:ListenerRule": "every condition",
        "aws:lb/targetGroup:TargetGroup": "stickiness, weights, deregistrationDelay: a target drains until it closes",
        "aws:rds/instance:Instance": "size, storage, zones, backups: one PostgreSQL on loopback, without TLS",
        "aws:rds/parameterGroup:ParameterGroup": "rds.* and ssl* parameters",
        "aws:route53/record:Record": "nobody asks for the name: a load balancer is a port of loopback",
        "aws:sesv2/emailIdentity:EmailIdentity": "configurationSetName after creation; an identity is verified at once",
    }
)
