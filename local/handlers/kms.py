"""KMS: keys of our own."""

from typing import Any

from local.handlers.handler import Handler, Inputs, Made, Outputs
from local.handlers.refusals import found
from local.handlers.shapes import plain, tags_gone, tags_of

_RECOVERY_DAYS = 30  # the provider's own default
_GONE = "PendingDeletion"


class Key(Handler):
    """A key. Deleted, it waits for its end; it has no name that could be in the way."""

    resource_type = "aws:kms/key:Key"
    replaced_by = frozenset({"customKeyStoreId", "customerMasterKeySpec", "keyUsage", "multiRegion", "xksKeyId"})

    def create(self, name: str, inputs: Inputs) -> Made:
        request: dict[str, Any] = {"Description": inputs.get("description", ""), "Tags": _tags(inputs)}
        if inputs.get("policy"):
            request["Policy"] = inputs["policy"]
        made = self.platform.aws("kms").create_key(**request)["KeyMetadata"]
        self._rotate(made["KeyId"], inputs)
        return Made(made["KeyId"], _outputs(made["KeyId"], made["Arn"], inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        answer = found(lambda: self.platform.aws("kms").describe_key(KeyId=id)) if id else None
        if answer is None or answer["KeyMetadata"]["KeyState"] == _GONE:
            return None
        return Made(id, _outputs(id, answer["KeyMetadata"]["Arn"], inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        kms = self.platform.aws("kms")
        if new.get("policy") and new["policy"] != old.get("policy"):
            kms.put_key_policy(KeyId=id, PolicyName="default", Policy=new["policy"])
        if new.get("description") != old.get("description"):
            kms.update_key_description(KeyId=id, Description=new.get("description", ""))
        self._rotate(id, new)
        if removed := tags_gone(old, new):
            kms.untag_resource(KeyId=id, TagKeys=removed)
        if tags := _tags(new):
            kms.tag_resource(KeyId=id, Tags=tags)
        return _outputs(id, old["arn"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        if self.read(id, outputs) is not None:
            days = plain(outputs.get("deletionWindowInDays", _RECOVERY_DAYS))
            self.platform.aws("kms").schedule_key_deletion(KeyId=id, PendingWindowInDays=days)

    def _rotate(self, key: str, inputs: Inputs) -> None:
        kms = self.platform.aws("kms")
        (kms.enable_key_rotation if inputs.get("enableKeyRotation") else kms.disable_key_rotation)(KeyId=key)


def _tags(inputs: Inputs) -> list[dict[str, str]]:
    return [{"TagKey": key, "TagValue": value} for key, value in sorted(tags_of(inputs).items())]


def _outputs(key: str, arn: str, inputs: Inputs) -> Outputs:
    return {**inputs, "keyId": key, "arn": arn, "tagsAll": tags_of(inputs)}
