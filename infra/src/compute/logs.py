"""The API's log group. It stays when compute is off: it keeps the evidence, and costs nothing while idle."""

import pulumi_aws as aws


def create_api_logs(name: str, *, retention_days: int) -> aws.cloudwatch.LogGroup:
    """The log group ``/ecs/…-api``."""
    return aws.cloudwatch.LogGroup("api-logs", name=f"/ecs/{name}-api", retention_in_days=retention_days)
