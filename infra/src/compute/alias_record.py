"""The name under which people find the load balancer, whose own name changes with every flip of compute."""

from urllib.parse import urlsplit

import pulumi_aws as aws


def create_alias_record(*, public_url: str, zone_id: str, balancer: aws.lb.LoadBalancer) -> aws.route53.Record:
    """An alias of the load balancer in the hosted zone ``zone_id``, named as the host in ``public_url``.

    An alias costs nothing, not even for its queries. A record of that name that somebody made by hand is refused, not
    taken over.
    """
    host = urlsplit(public_url).hostname or ""
    return aws.route53.Record(
        "api",
        zone_id=zone_id,
        name=host,
        type="A",
        aliases=[{"name": balancer.dns_name, "zone_id": balancer.zone_id, "evaluate_target_health": False}],
        allow_overwrite=False,
    )
