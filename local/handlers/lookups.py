"""Look-ups of the program (``aws.get_…``), answered from the emulator as the provider would answer from AWS."""

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from local.handlers.handler import InvokeError, Outputs, PlatformServices
from local.handlers.refusals import code_of, found
from local.handlers.shapes import chosen, plain

_NO_RESULTS = "Your query returned no results. Please change your search criteria and try again."

Arguments = Mapping[str, Any]


def look_up(platform: PlatformServices, token: str, arguments: Arguments) -> Outputs:
    """The result of a look-up; InvokeError if it finds nothing, is refused, or is not known here."""
    answer = LOOK_UPS.get(token)
    if answer is None:
        raise InvokeError(f"no handler for the look-up {token}: add one in local/handlers/lookups.py")
    try:
        return {"region": platform.region, **answer(platform, arguments)}
    except ClientError as error:
        raise InvokeError(f"{code_of(error)}: {error.response['Error'].get('Message', '')}") from error


def _caller_identity(platform: PlatformServices, arguments: Arguments) -> Outputs:
    identity = platform.aws("sts").get_caller_identity()
    return {
        "id": identity["Account"],
        "accountId": identity["Account"],
        "arn": identity["Arn"],
        "userId": identity["UserId"],
    }


def _region(platform: PlatformServices, arguments: Arguments) -> Outputs:
    region = arguments.get("region") or arguments.get("name") or platform.region
    return {
        "id": region,
        "name": region,
        "region": region,
        "description": region,
        "endpoint": f"ec2.{region}.amazonaws.com",
    }


def _partition(platform: PlatformServices, arguments: Arguments) -> Outputs:
    return {"id": "aws", "partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


def _availability_zones(platform: PlatformServices, arguments: Arguments) -> Outputs:
    filters = [{"Name": entry["name"], "Values": list(entry["values"])} for entry in arguments.get("filters") or []]
    if arguments.get("state"):
        filters.append({"Name": "state", "Values": [arguments["state"]]})
    zones = platform.aws("ec2").describe_availability_zones(Filters=filters)["AvailabilityZones"]
    return {
        "id": platform.region,
        "names": [zone["ZoneName"] for zone in zones],
        "zoneIds": [zone["ZoneId"] for zone in zones],
        "groupNames": sorted({zone.get("GroupName", platform.region) for zone in zones}),
    }


def _random_password(platform: PlatformServices, arguments: Arguments) -> Outputs:
    request = chosen(
        arguments,
        {
            "passwordLength": "PasswordLength",
            "excludeCharacters": "ExcludeCharacters",
            "excludeLowercase": "ExcludeLowercase",
            "excludeNumbers": "ExcludeNumbers",
            "excludePunctuation": "ExcludePunctuation",
            "excludeUppercase": "ExcludeUppercase",
            "includeSpace": "IncludeSpace",
            "requireEachIncludedType": "RequireEachIncludedType",
        },
    )
    password = platform.aws("secretsmanager").get_random_password(**request)["RandomPassword"]
    return {"id": "random-password", "randomPassword": password}


def _secret_version(platform: PlatformServices, arguments: Arguments) -> Outputs:
    request = chosen(arguments, {"secretId": "SecretId", "versionId": "VersionId", "versionStage": "VersionStage"})
    stored = platform.aws("secretsmanager").get_secret_value(**request)
    if "SecretString" not in stored:
        raise InvokeError(f"ResourceNotFoundException: Secrets Manager can't find a value of {arguments['secretId']}")
    return {
        "id": f"{arguments['secretId']}|{stored['VersionId']}",
        "arn": stored["ARN"],
        "secretId": arguments["secretId"],
        "secretString": stored["SecretString"],
        "versionId": stored["VersionId"],
        "versionStages": stored.get("VersionStages", []),
    }


def _instances(platform: PlatformServices, arguments: Arguments) -> Outputs:
    """Instances by filter; nobody is no error. The emulator forgets the filters it does not know: we ask for all."""
    listed = platform.aws("rds").describe_db_instances()["DBInstances"]
    for entry in arguments.get("filters") or []:
        if entry["name"] != "db-instance-id":
            raise InvokeError(
                f"the local platform filters database instances by db-instance-id only, not {entry['name']}"
            )
        listed = [instance for instance in listed if instance["DBInstanceIdentifier"] in entry["values"]]
    if arguments.get("tags"):
        raise InvokeError("the local platform does not filter database instances by tags")
    return {
        "id": platform.region,
        "instanceIdentifiers": [instance["DBInstanceIdentifier"] for instance in listed],
        "instanceArns": [instance["DBInstanceArn"] for instance in listed],
    }


def _instance(platform: PlatformServices, arguments: Arguments) -> Outputs:
    identifier = arguments["dbInstanceIdentifier"]
    rds = platform.aws("rds")
    listed = found(lambda: rds.describe_db_instances(DBInstanceIdentifier=identifier)["DBInstances"])
    if not listed:
        raise InvokeError(_NO_RESULTS)
    live = listed[0]
    return {
        "id": identifier,
        "dbInstanceIdentifier": identifier,
        "dbInstanceArn": live["DBInstanceArn"],
        "dbInstanceStatus": live["DBInstanceStatus"],
        "address": "127.0.0.1",
        "port": live["Endpoint"]["Port"],
        "resourceId": live["DbiResourceId"],
    }


def _snapshot(platform: PlatformServices, arguments: Arguments) -> Outputs:
    request = chosen(
        arguments,
        {
            "dbSnapshotIdentifier": "DBSnapshotIdentifier",
            "dbInstanceIdentifier": "DBInstanceIdentifier",
            "snapshotType": "SnapshotType",
        },
    )
    listed = found(lambda: platform.aws("rds").describe_db_snapshots(**request)["DBSnapshots"]) or []
    if not listed:
        raise InvokeError(_NO_RESULTS)
    if len(listed) > 1 and not arguments.get("mostRecent"):
        raise InvokeError("Your query returned more than one result. Please try a more specific search criteria.")
    newest = max(listed, key=lambda snapshot: str(snapshot.get("SnapshotCreateTime", "")))
    return {
        "id": newest["DBSnapshotIdentifier"],
        "dbSnapshotIdentifier": newest["DBSnapshotIdentifier"],
        "dbInstanceIdentifier": newest["DBInstanceIdentifier"],
        "dbSnapshotArn": newest.get("DBSnapshotArn", ""),
        "status": newest["Status"],
        "engine": newest["Engine"],
        "engineVersion": newest["EngineVersion"],
        "snapshotType": newest["SnapshotType"],
        "encrypted": bool(newest.get("Encrypted")),
        "snapshotCreateTime": str(newest.get("SnapshotCreateTime", "")),
    }


def _clusters(platform: PlatformServices, arguments: Arguments) -> Outputs:
    pages = platform.aws("ecs").get_paginator("list_clusters").paginate()
    return {"id": platform.region, "clusterArns": [arn for page in pages for arn in page["clusterArns"]]}


def _service(platform: PlatformServices, arguments: Arguments) -> Outputs:
    cluster, name = arguments["clusterArn"], arguments["serviceName"]
    answer = found(lambda: platform.aws("ecs").describe_services(cluster=cluster, services=[name]))
    if answer is None or not answer["services"]:
        raise InvokeError("no matching ECS Service found")
    live = answer["services"][0]
    return {
        "id": live["serviceArn"],
        "arn": live["serviceArn"],
        "clusterArn": live["clusterArn"],
        "serviceName": live["serviceName"],
        "status": live["status"],
        "desiredCount": live["desiredCount"],
        "taskDefinition": live["taskDefinition"],
    }


def _parameters_by_path(platform: PlatformServices, arguments: Arguments) -> Outputs:
    pages = (
        platform.aws("ssm")
        .get_paginator("get_parameters_by_path")
        .paginate(
            Path=arguments["path"],
            Recursive=bool(arguments.get("recursive")),
            WithDecryption=bool(arguments.get("withDecryption", True)),
        )
    )
    listed = [parameter for page in pages for parameter in page["Parameters"]]
    return {
        "id": arguments["path"],
        "path": arguments["path"],
        "names": [parameter["Name"] for parameter in listed],
        "values": [parameter["Value"] for parameter in listed],
        "types": [parameter["Type"] for parameter in listed],
        "arns": [parameter["ARN"] for parameter in listed],
    }


def _parameter(platform: PlatformServices, arguments: Arguments) -> Outputs:
    stored = found(
        lambda: platform.aws("ssm").get_parameter(
            Name=arguments["name"], WithDecryption=bool(arguments.get("withDecryption", True))
        )["Parameter"]
    )
    if stored is None:
        raise InvokeError(f"ParameterNotFound: {arguments['name']}: {_NO_RESULTS}")
    return {
        "id": stored["Name"],
        "name": stored["Name"],
        "value": stored["Value"],
        "insecureValue": stored["Value"] if stored["Type"] != "SecureString" else "",
        "type": stored["Type"],
        "arn": stored["ARN"],
        "version": plain(stored["Version"]),
    }


LOOK_UPS: Mapping[str, Callable[[PlatformServices, Arguments], Outputs]] = {
    "aws:ecs/getClusters:getClusters": _clusters,
    "aws:ecs/getService:getService": _service,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getRegion:getRegion": _region,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
    "aws:secretsmanager/getRandomPassword:getRandomPassword": _random_password,
    "aws:secretsmanager/getSecretVersion:getSecretVersion": _secret_version,
    "aws:rds/getInstances:getInstances": _instances,
    "aws:rds/getInstance:getInstance": _instance,
    "aws:rds/getSnapshot:getSnapshot": _snapshot,
    "aws:ssm/getParametersByPath:getParametersByPath": _parameters_by_path,
    "aws:ssm/getParameter:getParameter": _parameter,
}
