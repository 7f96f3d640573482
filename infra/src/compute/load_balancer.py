"""The load balancer: the only door into the network.

Its times fit one another:

- It closes idle connections after 60 s, and the server keeps them longer (75 s): the server never closes one that a
  request is on its way to, which would be a 502.
- A task that leaves gets no new request from the moment it is deregistered, and 30 s for those it has; no request of
  ours takes longer. Only then ECS sends SIGTERM.
- From SIGTERM to SIGKILL there are 30 s (compute/task.py). The server needs at most 24: 2 s of farewell to connections,
  10 s for requests, 12 s for the relay and the pools.
- A task counts as unready after 3 failed checks, 10 s apart, and as ready after 2: half a minute, during which the
  other tasks answer.
"""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.network.vpc import Network
from src.ports import API_PORT, HTTP_PORT, HTTPS_PORT

IDLE_TIMEOUT_SECONDS = 60
DEREGISTRATION_DELAY_SECONDS = 30
TLS_POLICY = "ELBSecurityPolicy-TLS13-1-2-2021-06"  # TLS 1.3, and 1.2 with forward secrecy

_TO_HTTPS: aws.lb.ListenerDefaultActionArgsDict = {
    "type": "redirect",
    "redirect": {"protocol": "HTTPS", "port": str(HTTPS_PORT), "status_code": "HTTP_301"},
}


@dataclass(frozen=True, kw_only=True)
class LoadBalancer:
    """Where the API answers, where its tasks register, and what makes the target group usable: listener and rule."""

    url: pulumi.Output[str]
    balancer: aws.lb.LoadBalancer
    target_group: aws.lb.TargetGroup
    doors: list[pulumi.Resource]


def create_load_balancer(
    *, network: Network, security_group: aws.ec2.SecurityGroup, certificate_arn: str | None
) -> LoadBalancer:
    """The load balancer over both public subnets; HTTPS with a redirect if there is a certificate, else plain HTTP.

    It and its target group are auto-named: names have 32 characters, a target group in use cannot be deleted, and so
    the new one must come first. Hence its address changes with every flip of compute, and nothing that is always on
    may depend on it: links use the setting publicUrl.
    """
    balancer = aws.lb.LoadBalancer(
        "api",
        load_balancer_type="application",
        internal=False,
        subnets=[subnet.id for subnet in network.public],
        security_groups=[security_group.id],
        idle_timeout=IDLE_TIMEOUT_SECONDS,
        drop_invalid_header_fields=True,
        desync_mitigation_mode="defensive",  # requests that a server could read as two are refused
        # A flip of compute deletes it; it holds nothing that the program could not make again.
        enable_deletion_protection=False,
    )
    target_group = aws.lb.TargetGroup(
        "api",
        vpc_id=network.vpc.id,
        target_type="ip",
        protocol="HTTP",
        port=API_PORT,
        deregistration_delay=DEREGISTRATION_DELAY_SECONDS,
        health_check={
            "path": "/readyz",
            "matcher": "200",
            "interval": 10,
            "timeout": 5,
            "healthy_threshold": 2,
            "unhealthy_threshold": 3,
        },
    )
    to_tasks: aws.lb.ListenerDefaultActionArgsDict = {"type": "forward", "target_group_arn": target_group.arn}
    # One listener on port 80 whatever the stage has: a second one, when a certificate comes, would be refused.
    listener = aws.lb.Listener(
        "http",
        load_balancer_arn=balancer.arn,
        port=HTTP_PORT,
        protocol="HTTP",
        default_actions=[_TO_HTTPS if certificate_arn else to_tasks],
    )
    if certificate_arn:
        listener = aws.lb.Listener(
            "https",
            load_balancer_arn=balancer.arn,
            port=HTTPS_PORT,
            protocol="HTTPS",
            ssl_policy=TLS_POLICY,
            certificate_arn=certificate_arn,
            default_actions=[to_tasks],
        )
    scheme = "https" if certificate_arn else "http"
    return LoadBalancer(
        url=pulumi.Output.concat(scheme, "://", balancer.dns_name),
        balancer=balancer,
        target_group=target_group,
        doors=[listener, _send_procedures(listener, target_group=target_group)],
    )


def _send_procedures(listener: aws.lb.Listener, *, target_group: aws.lb.TargetGroup) -> aws.lb.ListenerRule:
    """The rule for ``/trpc/*``. Pages take the default way; procedures have one of their own, so that they can be
    counted, limited or moved without touching the pages."""
    return aws.lb.ListenerRule(
        "procedures",
        listener_arn=listener.arn,
        priority=10,
        conditions=[{"path_pattern": {"values": ["/trpc/*"]}}],
        actions=[{"type": "forward", "target_group_arn": target_group.arn}],
    )
