"""IAM: roles, their inline policies, managed policies and their attachments."""

import json

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.policies import as_this_machine_needs
from local.handlers.refusals import found, gone
from local.handlers.shapes import physical_name, plain, tag_list, tags_gone, tags_of
from local.widenings import Kind

_LONGEST_ROLE_NAME = 64
_LONGEST_POLICY_NAME = 128


class Role(Handler):
    """A role. A name in use is refused; so is deleting one that still has policies, unless the program forces it."""

    resource_type = "aws:iam/role:Role"
    replaced_by = frozenset({"name", "namePrefix", "path"})

    def create(self, name: str, inputs: Inputs) -> Made:
        role = physical_name(inputs, name, limit=_LONGEST_ROLE_NAME)
        optional = {"PermissionsBoundary": inputs["permissionsBoundary"]} if inputs.get("permissionsBoundary") else {}
        made = self.platform.aws("iam").create_role(
            RoleName=role,
            Path=inputs.get("path", "/"),
            AssumeRolePolicyDocument=self._trust(role, inputs),
            Description=inputs.get("description", ""),
            MaxSessionDuration=plain(inputs.get("maxSessionDuration", 3600)),
            Tags=tag_list(inputs),
            **optional,
        )["Role"]
        return Made(role, _role_outputs(made["Arn"], made["RoleId"], inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        name = id or inputs.get("name")
        if not name:
            return None
        answer = found(lambda: self.platform.aws("iam").get_role(RoleName=name))
        return Made(name, _role_outputs(answer["Role"]["Arn"], answer["Role"]["RoleId"], inputs)) if answer else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        iam = self.platform.aws("iam")
        iam.update_assume_role_policy(RoleName=id, PolicyDocument=self._trust(id, new))
        iam.update_role(
            RoleName=id,
            Description=new.get("description", ""),
            MaxSessionDuration=plain(new.get("maxSessionDuration", 3600)),
        )
        if new.get("permissionsBoundary"):
            iam.put_role_permissions_boundary(RoleName=id, PermissionsBoundary=new["permissionsBoundary"])
        elif old.get("permissionsBoundary"):
            iam.delete_role_permissions_boundary(RoleName=id)
        if removed := tags_gone(old, new):
            iam.untag_role(RoleName=id, TagKeys=removed)
        if tags := tag_list(new):
            iam.tag_role(RoleName=id, Tags=tags)
        return _role_outputs(old["arn"], old["uniqueId"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        iam = self.platform.aws("iam")
        if outputs.get("forceDetachPolicies"):
            for policy in (found(lambda: iam.list_attached_role_policies(RoleName=id)) or {}).get(
                "AttachedPolicies", []
            ):
                iam.detach_role_policy(RoleName=id, PolicyArn=policy["PolicyArn"])
            for name in (found(lambda: iam.list_role_policies(RoleName=id)) or {}).get("PolicyNames", []):
                iam.delete_role_policy(RoleName=id, PolicyName=name)
        gone(lambda: iam.delete_role(RoleName=id))

    def resume(self, id: str, outputs: Outputs) -> None:
        self._trust(id, outputs)  # says again what is loosened

    def _trust(self, role: str, inputs: Inputs) -> str:
        return as_this_machine_needs(
            self.platform, inputs["assumeRolePolicy"], kind=Kind.TRUST, owner=f"trust of role {role}"
        )


class RolePolicy(Handler):
    """An inline policy: what a role may do."""

    resource_type = "aws:iam/rolePolicy:RolePolicy"
    replaced_by = frozenset({"name", "namePrefix", "role"})

    def create(self, name: str, inputs: Inputs) -> Made:
        policy = physical_name(inputs, name, limit=_LONGEST_POLICY_NAME)
        outputs = {**inputs, "name": policy}
        self._put(outputs)
        return Made(f"{inputs['role']}:{policy}", outputs)

    def read(self, id: str, inputs: Inputs) -> Made | None:
        role, name = id.split(":", 1) if id else (inputs["role"], inputs.get("name"))
        if not name or not found(lambda: self.platform.aws("iam").get_role_policy(RoleName=role, PolicyName=name)):
            return None
        return Made(f"{role}:{name}", {**inputs, "name": name})

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        outputs = {**new, "name": old["name"]}
        self._put(outputs)
        return outputs

    def delete(self, id: str, outputs: Outputs) -> None:
        iam = self.platform.aws("iam")
        gone(lambda: iam.delete_role_policy(RoleName=outputs["role"], PolicyName=outputs["name"]))

    def resume(self, id: str, outputs: Outputs) -> None:
        self._document(outputs)  # says again what is loosened

    def _document(self, outputs: Inputs) -> str:
        return as_this_machine_needs(
            self.platform, outputs["policy"], kind=Kind.IDENTITY, owner=f"role {outputs['role']}"
        )

    def _put(self, outputs: Inputs) -> None:
        self.platform.aws("iam").put_role_policy(
            RoleName=outputs["role"], PolicyName=outputs["name"], PolicyDocument=self._document(outputs)
        )


class Policy(Handler):
    """A managed policy."""

    resource_type = "aws:iam/policy:Policy"
    replaced_by = frozenset({"description", "name", "namePrefix", "path"})

    def create(self, name: str, inputs: Inputs) -> Made:
        policy = physical_name(inputs, name, limit=_LONGEST_POLICY_NAME)
        arn: str = self.platform.aws("iam").create_policy(
            PolicyName=policy,
            Path=inputs.get("path", "/"),
            PolicyDocument=self._document(policy, inputs),
            Description=inputs.get("description", ""),
            Tags=tag_list(inputs),
        )["Policy"]["Arn"]
        return Made(arn, {**inputs, "name": policy, "arn": arn, "tagsAll": tags_of(inputs)})

    def read(self, id: str, inputs: Inputs) -> Made | None:
        name = inputs.get("name")
        path = inputs.get("path", "/")
        arn = id or (name and f"arn:aws:iam::{self.platform.account}:policy{path}{name}")
        if not arn or not found(lambda: self.platform.aws("iam").get_policy(PolicyArn=arn)):
            return None
        return Made(arn, {**inputs, "name": arn.rsplit("/", 1)[-1], "arn": arn, "tagsAll": tags_of(inputs)})

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        iam = self.platform.aws("iam")
        # A policy keeps five versions at most.
        for version in iam.list_policy_versions(PolicyArn=id)["Versions"][3:]:
            if not version["IsDefaultVersion"]:
                iam.delete_policy_version(PolicyArn=id, VersionId=version["VersionId"])
        iam.create_policy_version(PolicyArn=id, PolicyDocument=self._document(old["name"], new), SetAsDefault=True)
        return {**new, "name": old["name"], "arn": id, "tagsAll": tags_of(new)}

    def delete(self, id: str, outputs: Outputs) -> None:
        iam = self.platform.aws("iam")
        versions = found(lambda: iam.list_policy_versions(PolicyArn=id)["Versions"]) or []
        for version in versions:
            if not version["IsDefaultVersion"]:
                iam.delete_policy_version(PolicyArn=id, VersionId=version["VersionId"])
        gone(lambda: iam.delete_policy(PolicyArn=id))

    def _document(self, name: str, inputs: Inputs) -> str:
        return as_this_machine_needs(self.platform, inputs["policy"], kind=Kind.IDENTITY, owner=f"policy {name}")


class RolePolicyAttachment(Handler):
    """A managed policy at a role. AWS's own policies go in as they are: there is nothing of ours to widen."""

    resource_type = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    replaced_by = frozenset({"policyArn", "role"})

    def create(self, name: str, inputs: Inputs) -> Made:
        self.platform.aws("iam").attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
        return Made(f"{inputs['role']}/{inputs['policyArn']}", dict(inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        attached = found(lambda: self.platform.aws("iam").list_attached_role_policies(RoleName=inputs["role"]))
        arns = [policy["PolicyArn"] for policy in (attached or {}).get("AttachedPolicies", [])]
        known = inputs["policyArn"] in arns
        return Made(f"{inputs['role']}/{inputs['policyArn']}", dict(inputs)) if known else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        raise HandlerError("a policy's attachment cannot change: every input replaces it")

    def delete(self, id: str, outputs: Outputs) -> None:
        iam = self.platform.aws("iam")
        gone(lambda: iam.detach_role_policy(RoleName=outputs["role"], PolicyArn=outputs["policyArn"]))


def _role_outputs(arn: str, unique_id: str, inputs: Inputs) -> Outputs:
    return {
        **inputs,
        "name": arn.rsplit("/", 1)[-1],
        "arn": arn,
        "uniqueId": unique_id,
        "assumeRolePolicy": json.dumps(json.loads(inputs["assumeRolePolicy"]), separators=(",", ":")),
        "tagsAll": tags_of(inputs),
    }
