"""Lambda functions: what the worker and the tickets function have in common."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from src.roles import ServiceRole

RUNTIME = "python3.13"
ARCHITECTURE = "arm64"  # a fifth cheaper than x86_64; the zips hold no native code, so they run on both


def create_function_logs(name: str, *, function: str, retention_days: int) -> aws.cloudwatch.LogGroup:
    """The log group that Lambda writes a function's output to.

    It must be there before the function: Lambda's own would keep everything for ever.
    """
    return aws.cloudwatch.LogGroup(
        f"{function}-logs", name=f"/aws/lambda/{name}-{function}", retention_in_days=retention_days
    )


def create_function(
    name: str,
    *,
    function: str,
    handler: str,
    code: pulumi.Archive,
    role: ServiceRole,
    logs: aws.cloudwatch.LogGroup,
    timeout_seconds: int,
    memory_mib: int,
    environment: Mapping[str, pulumi.Input[str]],
) -> aws.lambda_.Function:
    """A function outside the VPC: it reaches AWS by HTTPS under its role, and no database.

    It waits for its role's policy, so that its first invocation can already write a log.
    """
    return aws.lambda_.Function(
        function,
        name=f"{name}-{function}",
        role=role.role.arn,
        runtime=RUNTIME,
        architectures=[ARCHITECTURE],
        handler=handler,
        code=code,
        timeout=timeout_seconds,
        memory_size=memory_mib,
        environment={
            "variables": {
                "POWERTOOLS_SERVICE_NAME": function,
                "POWERTOOLS_LOG_LEVEL": "INFO",
                **environment,
            }
        },
        opts=pulumi.ResourceOptions(depends_on=[logs, role.policy]),
    )
