"""Secrets Manager: secrets, their values, their policies."""

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.policies import as_this_machine_needs
from local.handlers.refusals import found, gone
from local.handlers.shapes import physical_name, plain, tag_list, tags_gone, tags_of
from local.widenings import Kind

_DEFAULT_RECOVERY_DAYS = 30


class Secret(Handler):
    """A secret's shell. Its name is refused while it is in use, or while a deleted one waits out its recovery."""

    resource_type = "aws:secretsmanager/secret:Secret"
    replaced_by = frozenset({"name", "namePrefix"})

    def create(self, name: str, inputs: Inputs) -> Made:
        client = self.platform.aws("secretsmanager")
        secret = physical_name(inputs, name)
        existing = found(lambda: client.describe_secret(SecretId=secret))
        if existing and existing.get("DeletedDate"):
            raise HandlerError(
                "InvalidRequestException: You can't create this secret because a secret with this name is already "
                f"scheduled for deletion ({secret}, until {existing['DeletedDate']:%Y-%m-%d}). Restore it, or give "
                "the secret a recovery window of 0 days before it is deleted"
            )
        request = {"Name": secret, "Description": inputs.get("description", ""), "Tags": tag_list(inputs)}
        if inputs.get("kmsKeyId"):
            request["KmsKeyId"] = inputs["kmsKeyId"]
        arn: str = client.create_secret(**request)["ARN"]
        if inputs.get("policy"):
            self._set_policy(arn, inputs["policy"])
        return Made(arn, _secret_outputs(arn, secret, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        secret = id or inputs.get("name")
        if not secret:
            return None
        answer = found(lambda: self.platform.aws("secretsmanager").describe_secret(SecretId=secret))
        if answer is None or answer.get("DeletedDate"):
            return None
        return Made(answer["ARN"], _secret_outputs(answer["ARN"], answer["Name"], inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        client = self.platform.aws("secretsmanager")
        client.update_secret(SecretId=id, Description=new.get("description", ""))
        if new.get("policy"):
            self._set_policy(id, new["policy"])
        elif old.get("policy"):
            client.delete_resource_policy(SecretId=id)
        if removed := tags_gone(old, new):
            client.untag_resource(SecretId=id, TagKeys=removed)
        if tags := tag_list(new):
            client.tag_resource(SecretId=id, Tags=tags)
        return _secret_outputs(id, old["name"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        days = plain(outputs.get("recoveryWindowInDays", _DEFAULT_RECOVERY_DAYS))
        how = {"ForceDeleteWithoutRecovery": True} if days == 0 else {"RecoveryWindowInDays": days}
        gone(lambda: self.platform.aws("secretsmanager").delete_secret(SecretId=id, **how))

    def _set_policy(self, arn: str, policy: str) -> None:
        document = as_this_machine_needs(self.platform, policy, kind=Kind.RESOURCE, owner=f"secret {arn}")
        self.platform.aws("secretsmanager").put_resource_policy(SecretId=arn, ResourcePolicy=document)


class SecretVersion(Handler):
    """A secret's value. What is read is what is stored, which a program that ignores later values relies on."""

    resource_type = "aws:secretsmanager/secretVersion:SecretVersion"
    replaced_by = frozenset({"secretBinary", "secretId", "secretString"})

    def create(self, name: str, inputs: Inputs) -> Made:
        made = self.platform.aws("secretsmanager").put_secret_value(
            SecretId=inputs["secretId"], SecretString=inputs["secretString"]
        )
        return self._made(inputs, made["ARN"], made["VersionId"], inputs["secretString"])

    def read(self, id: str, inputs: Inputs) -> Made | None:
        secret, version = id.split("|", 1) if id else (inputs["secretId"], "")
        request = {"SecretId": secret, **({"VersionId": version} if version else {})}
        stored = found(lambda: self.platform.aws("secretsmanager").get_secret_value(**request))
        # The emulator gives a secret without a value an empty version; AWS has none.
        if stored is None or "SecretString" not in stored:
            return None
        return self._made(inputs, stored["ARN"], stored["VersionId"], stored["SecretString"])

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        secret, version = id.split("|", 1)
        client = self.platform.aws("secretsmanager")
        stages = client.describe_secret(SecretId=secret).get("VersionIdsToStages", {}).get(version, [])
        for stage in new.get("versionStages") or []:
            if stage not in stages:
                client.update_secret_version_stage(SecretId=secret, VersionStage=stage, MoveToVersionId=version)
        return {**old, **new, "secretString": old["secretString"]}

    def delete(self, id: str, outputs: Outputs) -> None:
        """AWS deletes no version by itself: it goes with its secret."""

    def _made(self, inputs: Inputs, arn: str, version: str, value: str) -> Made:
        outputs = {
            **inputs,
            "arn": arn,
            "secretArn": arn,
            "versionId": version,
            "secretString": value,
            "versionStages": list(inputs.get("versionStages") or ["AWSCURRENT"]),
        }
        return Made(f"{inputs['secretId']}|{version}", outputs)


class SecretPolicy(Handler):
    """Who may use a secret."""

    resource_type = "aws:secretsmanager/secretPolicy:SecretPolicy"
    replaced_by = frozenset({"secretArn"})

    def create(self, name: str, inputs: Inputs) -> Made:
        self._put(inputs)
        return Made(inputs["secretArn"], dict(inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        secret = id or inputs["secretArn"]
        answer = found(lambda: self.platform.aws("secretsmanager").get_resource_policy(SecretId=secret))
        return Made(secret, dict(inputs)) if answer and answer.get("ResourcePolicy") else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._put(new)
        return dict(new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("secretsmanager").delete_resource_policy(SecretId=id))

    def _put(self, inputs: Inputs) -> None:
        arn = inputs["secretArn"]
        document = as_this_machine_needs(self.platform, inputs["policy"], kind=Kind.RESOURCE, owner=f"secret {arn}")
        if document:
            self.platform.aws("secretsmanager").put_resource_policy(SecretId=arn, ResourcePolicy=document)
        else:
            self.delete(arn, {})


def _secret_outputs(arn: str, name: str, inputs: Inputs) -> Outputs:
    return {**inputs, "name": name, "arn": arn, "tagsAll": tags_of(inputs)}
