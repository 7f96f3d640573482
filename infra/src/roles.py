"""Roles: one a process, with one inline policy that says all it may do."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.policies import Statement, document


@dataclass(frozen=True, kw_only=True)
class ServiceRole:
    """A role and its policy. Whoever needs the permissions at once depends on the policy, not only on the role."""

    role: aws.iam.Role
    policy: aws.iam.RolePolicy


def create_role(
    resource_name: str, *, name: str, description: str, trust_policy: pulumi.Input[str], statements: list[Statement]
) -> ServiceRole:
    """A role called ``name`` that ``trust_policy`` lets a service assume, with exactly ``statements``."""
    role = aws.iam.Role(resource_name, name=name, description=description, assume_role_policy=trust_policy)
    policy = aws.iam.RolePolicy(resource_name, role=role.name, name=resource_name, policy=document(*statements))
    return ServiceRole(role=role, policy=policy)
