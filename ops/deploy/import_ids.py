"""The id under which the provider finds a resource again that an unfinished create may have made.

A create that was cut off left no id in the state, only the inputs that it was sent with. Of most types the id that the
provider imports by (each resource's page in its registry documentation, section "Import") is made of those; of the
others AWS makes it up, and :mod:`ops.aws_look_ups` looks for the one resource that the inputs describe. Made again
instead, the first kind would be refused, since its name is taken, and the second would be there twice.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Inputs = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the stage's resources are; ARNs and URLs are made of it."""

    account: str
    region: str


class Finder(Protocol):
    """What finds a resource whose id AWS makes up; :class:`ops.aws_account.AwsAccount` asks AWS."""

    def candidates(self, kind: str, inputs: Inputs) -> Collection[str] | None:
        """The ids of all that may be a resource of this type and these inputs; None where there is no look-up."""


def _rule_id(own: Inputs) -> str:
    """A security group's rule: what it allows is its only identity."""
    sources = [
        *(own.get("cidrBlocks") or []),
        *([own["sourceSecurityGroupId"]] if own.get("sourceSecurityGroupId") else []),
    ]
    ports = f"{int(own['fromPort'])}_{int(own['toPort'])}"
    return "_".join((own["securityGroupId"], own["type"], own["protocol"], ports, *sources))


def _service_id(own: Inputs) -> str:
    return f"{str(own['cluster']).rpartition('/')[2]}/{own['name']}"


def _scaling_id(own: Inputs) -> str:
    return f"{own['serviceNamespace']}/{own['resourceId']}/{own['scalableDimension']}"


IMPORT_IDS: Mapping[str, Callable[[Inputs, Place], str]] = {
    "aws:appautoscaling/policy:Policy": lambda own, _: f"{_scaling_id(own)}/{own['name']}",
    "aws:appautoscaling/target:Target": lambda own, _: _scaling_id(own),
    "aws:backup/vault:Vault": lambda own, _: str(own["name"]),
    "aws:cloudwatch/logGroup:LogGroup": lambda own, _: str(own["name"]),
    "aws:cloudwatch/logMetricFilter:LogMetricFilter": lambda own, _: f"{own['logGroupName']}:{own['name']}",
    "aws:cloudwatch/metricAlarm:MetricAlarm": lambda own, _: str(own["name"]),
    "aws:dynamodb/table:Table": lambda own, _: str(own["name"]),
    "aws:ec2/route:Route": lambda own, _: f"{own['routeTableId']}_{own['destinationCidrBlock']}",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": lambda own, _: f"{own['subnetId']}/{own['routeTableId']}",
    "aws:ec2/securityGroupRule:SecurityGroupRule": lambda own, _: _rule_id(own),
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": lambda own, _: str(own["repository"]),
    "aws:ecr/repository:Repository": lambda own, _: str(own["name"]),
    "aws:ecs/cluster:Cluster": lambda own, _: str(own["name"]),
    "aws:ecs/service:Service": lambda own, _: _service_id(own),
    "aws:elasticache/replicationGroup:ReplicationGroup": lambda own, _: str(own["replicationGroupId"]),
    "aws:elasticache/subnetGroup:SubnetGroup": lambda own, _: str(own["name"]),
    "aws:iam/role:Role": lambda own, _: str(own["name"]),
    "aws:iam/rolePolicy:RolePolicy": lambda own, _: f"{own['role']}:{own['name']}",
    "aws:lambda/function:Function": lambda own, _: str(own["name"]),
    "aws:rds/instance:Instance": lambda own, _: str(own["identifier"]),
    "aws:rds/parameterGroup:ParameterGroup": lambda own, _: str(own["name"]),
    "aws:rds/subnetGroup:SubnetGroup": lambda own, _: str(own["name"]),
    "aws:route53/record:Record": lambda own, _: f"{own['zoneId']}_{own['name']}_{own['type']}",
    "aws:s3/bucket:Bucket": lambda own, _: str(own["bucket"]),
    "aws:s3/bucketCorsConfiguration:BucketCorsConfiguration": lambda own, _: str(own["bucket"]),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": lambda own, _: str(own["bucket"]),
    "aws:s3/bucketPolicy:BucketPolicy": lambda own, _: str(own["bucket"]),
    "aws:scheduler/schedule:Schedule": lambda own, _: f"{own.get('groupName') or 'default'}/{own['name']}",
    "aws:secretsmanager/secretPolicy:SecretPolicy": lambda own, _: str(own["secretArn"]),
    "aws:sesv2/configurationSet:ConfigurationSet": lambda own, _: str(own["configurationSetName"]),
    "aws:sesv2/emailIdentity:EmailIdentity": lambda own, _: str(own["emailIdentity"]),
    "aws:sns/topic:Topic": lambda own, at: f"arn:aws:sns:{at.region}:{at.account}:{own['name']}",
    "aws:sns/topicPolicy:TopicPolicy": lambda own, _: str(own["arn"]),
    "aws:sqs/queue:Queue": lambda own, at: f"https://sqs.{at.region}.amazonaws.com/{at.account}/{own['name']}",
    "aws:sqs/queuePolicy:QueuePolicy": lambda own, _: str(own["queueUrl"]),
    "aws:ssm/parameter:Parameter": lambda own, _: str(own["name"]),
}


# What AWS makes with a VPC or a bucket. A "create" only takes it over and sets its rules, and does so again.
TAKEN_OVER = frozenset(
    {
        "aws:ec2/defaultNetworkAcl:DefaultNetworkAcl",
        "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
        "aws:s3/bucketOwnershipControls:BucketOwnershipControls",
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
        "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    }
)


class UnidentifiedError(LookupError):
    """Nobody can tell whether the resource was made, or which of several it is."""


def import_id(kind: str, inputs: Inputs, *, place: Place, finder: Finder, known: Collection[str]) -> str | None:
    """The id of what a create of this type and these inputs may have made; None if AWS shows no such resource.

    ``known`` are the ids and ARNs of the type that the state has already: a predecessor looks like its successor.
    UnidentifiedError where inputs do not tell one from others.
    """
    make = IMPORT_IDS.get(kind)
    try:
        if make is not None:
            return make(inputs, place)
        candidates = finder.candidates(kind, inputs)
    except KeyError as error:
        raise UnidentifiedError(f"input {error} was left to AWS") from error
    if candidates is None:
        raise UnidentifiedError(f"there is no look-up for {kind}")
    found = [candidate for candidate in candidates if candidate not in known]
    if len(found) > 1:
        raise UnidentifiedError(f"AWS shows several: {', '.join(found)}")
    return found[0] if found else None
