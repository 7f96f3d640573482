"""Whether the API runs already: a stage whose image is unknown must not lose its service."""

import re

import pulumi
import pulumi_aws as aws

# How the provider says that a cluster has no service of a name; every other failure of the look-up stops the run.
_NO_SERVICE = re.compile(r"no matching ECS Service|couldn't find resource|empty result", re.IGNORECASE)
# A deleted service can be described for a while. DRAINING means that somebody is deleting it right now.
_GONE = frozenset({"INACTIVE", "DRAINING"})


class ImageMissingError(pulumi.RunError):
    """The stage says no image, and yet its API runs."""


def require_no_service(name: str) -> None:
    """Raise ImageMissingError if the stage ``name`` has a running service.

    For a run that knows no image: it declares no service, and so would delete one that is there. A look-up that fails
    for any other reason than that there is nothing stops the run too.
    """
    service = f"{name}-api"
    if _has_cluster(name) and _is_running(cluster=name, service=service):
        raise ImageMissingError(
            f"minitickets:image is not set, and service {service} runs in cluster {name}: going on would delete it. "
            "Set the image that it runs (`aws ecs describe-task-definition --task-definition "
            f"{service} --query 'taskDefinition.containerDefinitions[0].image'`), push a new one (`make push`), or "
            "switch compute off (`make compute-off`) if it is meant to go"
        )


def _has_cluster(name: str) -> bool:
    """Asked first, because the list of clusters is never an error, and a stage that never ran has none."""
    return any(arn.rpartition("/")[2] == name for arn in aws.ecs.get_clusters().cluster_arns)


def _is_running(*, cluster: str, service: str) -> bool:
    try:
        found = aws.ecs.get_service(cluster_arn=cluster, service_name=service)
    except Exception as error:
        if _NO_SERVICE.search(str(error)):  # the SDK knows one kind of exception for every failed look-up
            return False
        raise
    return found.status not in _GONE
