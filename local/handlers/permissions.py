"""What the emulator does not ask and AWS does: whether a role may do what a service does in its name."""

import json
from collections.abc import Sequence
from typing import Any

from local.handlers.handler import HandlerError, PlatformServices


def missing_actions(platform: PlatformServices, role_arn: str, actions: Sequence[str], resource: str) -> list[str]:
    """Which of ``actions`` the role may not do on ``resource``; statements with conditions do not count here."""
    answers = platform.aws("iam").simulate_principal_policy(
        PolicySourceArn=role_arn, ActionNames=list(actions), ResourceArns=[resource]
    )["EvaluationResults"]
    return [answer["EvalActionName"] for answer in answers if answer["EvalDecision"] != "allowed"]


def require_trust(platform: PlatformServices, role_arn: str, service: str, refusal: str) -> None:
    """HandlerError with ``refusal`` unless the role's trust policy lets ``service`` (``lambda.amazonaws.com``) in."""
    document = platform.aws("iam").get_role(RoleName=role_arn.rsplit("/", 1)[-1])["Role"]["AssumeRolePolicyDocument"]
    statements = (json.loads(document) if isinstance(document, str) else document)["Statement"]
    if not any(_lets_in(statement, service) for statement in statements):
        raise HandlerError(f"{refusal} ({role_arn} does not trust {service})")


def _lets_in(statement: dict[str, Any], service: str) -> bool:
    principal = statement.get("Principal", {})
    trusted = principal.get("Service", []) if isinstance(principal, dict) else []
    return statement.get("Effect") == "Allow" and service in ([trusted] if isinstance(trusted, str) else trusted)
