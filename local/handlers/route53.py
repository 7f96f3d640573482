"""Route 53: records of a hosted zone. Nobody asks them here: a load balancer is a port of loopback."""

from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.refusals import found, gone
from local.handlers.shapes import chosen, plain


class Record(Handler):
    """A record set. One that somebody else made is refused unless it may be overwritten."""

    resource_type = "aws:route53/record:Record"
    replaced_by = frozenset({"name", "setIdentifier", "type", "zoneId"})

    def create(self, name: str, inputs: Inputs) -> Made:
        if self._live(inputs) and not inputs.get("allowOverwrite"):
            raise HandlerError(
                f"InvalidChangeBatch: Tried to create resource record set [name='{inputs['name']}', "
                f"type='{inputs['type']}'] but it already exists"
            )
        self._change("UPSERT", inputs)
        return Made(_id(inputs), _outputs(inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        return Made(_id(inputs), _outputs(inputs)) if self._live(inputs) else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._change("UPSERT", new)
        return _outputs(new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self._change("DELETE", outputs))

    def _live(self, inputs: Inputs) -> bool:
        listed = found(
            lambda: self.platform.aws("route53").list_resource_record_sets(
                HostedZoneId=inputs["zoneId"], StartRecordName=inputs["name"], StartRecordType=inputs["type"]
            )
        )
        return any(
            (entry["Name"].rstrip("."), entry["Type"]) == (str(inputs["name"]).rstrip("."), inputs["type"])
            for entry in (listed or {}).get("ResourceRecordSets", [])
        )

    def _change(self, action: str, inputs: Inputs) -> None:
        self.platform.aws("route53").change_resource_record_sets(
            HostedZoneId=inputs["zoneId"],
            ChangeBatch={"Changes": [{"Action": action, "ResourceRecordSet": _record_set(inputs)}]},
        )


def _record_set(inputs: Inputs) -> dict[str, Any]:
    written = chosen(inputs, {"name": "Name", "type": "Type", "ttl": "TTL", "setIdentifier": "SetIdentifier"})
    for alias in inputs.get("aliases") or []:
        written["AliasTarget"] = {
            "DNSName": alias["name"],
            "HostedZoneId": alias["zoneId"],
            "EvaluateTargetHealth": bool(alias.get("evaluateTargetHealth")),
        }
    if records := inputs.get("records"):
        written["ResourceRecords"] = [{"Value": value} for value in plain(records)]
    return written


def _id(inputs: Inputs) -> str:
    return f"{inputs['zoneId']}_{inputs['name']}_{inputs['type']}"


def _outputs(inputs: Inputs) -> Outputs:
    return {**inputs, "fqdn": str(inputs["name"]).rstrip(".")}
