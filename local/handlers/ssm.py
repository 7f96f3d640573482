"""Systems Manager: parameters."""

from local.handlers.handler import Handler, Inputs, Made, Outputs
from local.handlers.refusals import found, gone
from local.handlers.shapes import tag_list, tags_gone, tags_of


class Parameter(Handler):
    """A parameter. A name in use is refused unless the program says ``overwrite``."""

    resource_type = "aws:ssm/parameter:Parameter"
    replaced_by = frozenset({"dataType", "name", "type"})

    def create(self, name: str, inputs: Inputs) -> Made:
        overwrite = bool(inputs.get("overwrite"))
        # Tags and overwriting exclude each other in one call.
        version = self._put(inputs, overwrite=overwrite)
        if tags := tag_list(inputs):
            self.platform.aws("ssm").add_tags_to_resource(
                ResourceType="Parameter", ResourceId=inputs["name"], Tags=tags
            )
        return Made(inputs["name"], self._outputs(inputs, version))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        name = id or inputs["name"]
        stored = found(lambda: self.platform.aws("ssm").get_parameter(Name=name, WithDecryption=True)["Parameter"])
        if stored is None:
            return None
        outputs = self._outputs(inputs, stored["Version"])
        return Made(name, {**outputs, "value": stored["Value"], "type": stored["Type"]})

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        ssm = self.platform.aws("ssm")
        version = self._put(new, overwrite=True)
        if removed := tags_gone(old, new):
            ssm.remove_tags_from_resource(ResourceType="Parameter", ResourceId=id, TagKeys=removed)
        if tags := tag_list(new):
            ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId=id, Tags=tags)
        return self._outputs(new, version)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("ssm").delete_parameter(Name=id))

    def _put(self, inputs: Inputs, *, overwrite: bool) -> int:
        request = {
            "Name": inputs["name"],
            "Value": inputs.get("value") or inputs.get("insecureValue"),
            "Type": inputs["type"],
            "Description": inputs.get("description", ""),
            "Overwrite": overwrite,
        }
        for key in ("tier", "dataType", "allowedPattern"):
            if inputs.get(key):
                request[key[0].upper() + key[1:]] = inputs[key]
        return int(self.platform.aws("ssm").put_parameter(**request)["Version"])

    def _outputs(self, inputs: Inputs, version: int) -> Outputs:
        path = str(inputs["name"]).lstrip("/")
        return {
            **inputs,
            "value": inputs.get("value") or inputs.get("insecureValue"),
            "arn": f"arn:aws:ssm:{self.platform.region}:{self.platform.account}:parameter/{path}",
            "version": version,
            "tagsAll": tags_of(inputs),
        }
