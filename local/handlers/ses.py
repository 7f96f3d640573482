"""SES version 2: sender identities and configuration sets.

The emulator verifies an identity at once and has no mail-from domain or event destination: those are remembered in
the outputs only (see ``registry.REMEMBERED_ONLY``).
"""

from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.refusals import found, gone
from local.handlers.shapes import capitalised, tag_list, tags_gone, tags_of


class EmailIdentity(Handler):
    """An address or domain that mails may come from; verified at once here."""

    resource_type = "aws:sesv2/emailIdentity:EmailIdentity"
    replaced_by = frozenset({"emailIdentity"})

    def create(self, name: str, inputs: Inputs) -> Made:
        ses = self.platform.aws("sesv2")
        identity = inputs["emailIdentity"]
        if found(lambda: ses.get_email_identity(EmailIdentity=identity)) is not None:
            raise HandlerError(f"AlreadyExistsException: email identity {identity} already exists")
        request: dict[str, Any] = {"EmailIdentity": identity, "Tags": tag_list(inputs)}
        if inputs.get("configurationSetName"):
            request["ConfigurationSetName"] = inputs["configurationSetName"]
        ses.create_email_identity(**request)
        return Made(identity, self._outputs(identity, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        identity = id or inputs["emailIdentity"]
        exists = found(lambda: self.platform.aws("sesv2").get_email_identity(EmailIdentity=identity)) is not None
        return Made(identity, self._outputs(identity, inputs)) if exists else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        _retag(self, self._arn(id), old, new)
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("sesv2").delete_email_identity(EmailIdentity=id))

    def _arn(self, identity: str) -> str:
        return f"arn:aws:ses:{self.platform.region}:{self.platform.account}:identity/{identity}"

    def _outputs(self, identity: str, inputs: Inputs) -> Outputs:
        return {
            **inputs,
            "arn": self._arn(identity),
            "identityType": "EMAIL_ADDRESS" if "@" in identity else "DOMAIN",
            "verifiedForSendingStatus": True,
            "verificationStatus": "SUCCESS",
            "tagsAll": tags_of(inputs),
        }


class ConfigurationSet(Handler):
    """Options that a mail is sent with."""

    resource_type = "aws:sesv2/configurationSet:ConfigurationSet"
    replaced_by = frozenset({"configurationSetName"})
    _OPTIONS = ("deliveryOptions", "reputationOptions", "sendingOptions", "suppressionOptions", "trackingOptions")

    def create(self, name: str, inputs: Inputs) -> Made:
        options = capitalised({key: inputs[key] for key in self._OPTIONS if inputs.get(key) is not None})
        self.platform.aws("sesv2").create_configuration_set(
            ConfigurationSetName=inputs["configurationSetName"], Tags=tag_list(inputs), **options
        )
        return Made(inputs["configurationSetName"], self._outputs(inputs["configurationSetName"], inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        name = id or inputs["configurationSetName"]
        exists = found(lambda: self.platform.aws("sesv2").get_configuration_set(ConfigurationSetName=name)) is not None
        return Made(name, self._outputs(name, inputs)) if exists else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        if any(old.get(key) != new.get(key) for key in self._OPTIONS):
            # SES has a call for each option; making the set anew has the same end.
            self.delete(id, old)
            return self.create("", new).outputs
        _retag(self, self._arn(id), old, new)
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("sesv2").delete_configuration_set(ConfigurationSetName=id))

    def _arn(self, name: str) -> str:
        return f"arn:aws:ses:{self.platform.region}:{self.platform.account}:configuration-set/{name}"

    def _outputs(self, name: str, inputs: Inputs) -> Outputs:
        return {**inputs, "arn": self._arn(name), "tagsAll": tags_of(inputs)}


def _retag(handler: Handler, arn: str, old: Inputs, new: Inputs) -> None:
    ses = handler.platform.aws("sesv2")
    if removed := tags_gone(old, new):
        ses.untag_resource(ResourceArn=arn, TagKeys=removed)
    if tags_of(new) != tags_of(old) and tags_of(new):
        ses.tag_resource(ResourceArn=arn, Tags=tag_list(new))
