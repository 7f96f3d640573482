"""DynamoDB: tables, with their indexes, expiry, backups, encryption and protection."""

from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.refusals import found, gone
from local.handlers.shapes import physical_name, plain, tag_list, tags_gone, tags_of


class Table(Handler):
    """A table. Changes of its indexes go one at a time, as AWS wants them."""

    resource_type = "aws:dynamodb/table:Table"
    replaced_by = frozenset(
        {"hashKey", "localSecondaryIndexes", "name", "rangeKey", "restoreDateTime", "restoreToLatestTime"}
    )

    def create(self, name: str, inputs: Inputs) -> Made:
        table = physical_name(inputs, name)
        request: dict[str, Any] = {
            "TableName": table,
            "KeySchema": _key_schema(inputs),
            "AttributeDefinitions": _attributes(inputs),
            "DeletionProtectionEnabled": bool(inputs.get("deletionProtectionEnabled")),
            "Tags": tag_list(inputs),
            **_billing(inputs),
        }
        for key, theirs in (
            ("globalSecondaryIndexes", "GlobalSecondaryIndexes"),
            ("localSecondaryIndexes", "LocalSecondaryIndexes"),
        ):
            if indexes := inputs.get(key):
                request[theirs] = [_index(index) for index in indexes]
        if encryption := inputs.get("serverSideEncryption"):
            request["SSESpecification"] = _encryption(encryption)
        if inputs.get("streamEnabled"):
            request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": inputs["streamViewType"]}
        if inputs.get("tableClass"):
            request["TableClass"] = inputs["tableClass"]
        described = self.platform.aws("dynamodb").create_table(**request)["TableDescription"]
        self._set_expiry(table, {}, inputs)
        self._set_backups(table, {}, inputs)
        return Made(table, _outputs(described, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        table = id or inputs.get("name")
        if not table:
            return None
        answer = found(lambda: self.platform.aws("dynamodb").describe_table(TableName=table))
        return Made(table, _outputs(answer["Table"], inputs)) if answer else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        dynamodb = self.platform.aws("dynamodb")
        live = dynamodb.describe_table(TableName=id)["Table"]
        wanted = bool(new.get("deletionProtectionEnabled"))
        if bool(live.get("DeletionProtectionEnabled")) != wanted:
            dynamodb.update_table(TableName=id, DeletionProtectionEnabled=wanted)
        if old.get("serverSideEncryption") != new.get("serverSideEncryption"):
            encryption = _encryption(new.get("serverSideEncryption") or {"enabled": False})
            dynamodb.update_table(TableName=id, SSESpecification=encryption)
        if (old.get("billingMode"), old.get("readCapacity"), old.get("writeCapacity")) != (
            new.get("billingMode"),
            new.get("readCapacity"),
            new.get("writeCapacity"),
        ):
            dynamodb.update_table(TableName=id, **_billing(new))
        self._set_indexes(id, live, new)
        self._set_expiry(id, old, new)
        self._set_backups(id, old, new)
        arn = live["TableArn"]
        if removed := tags_gone(old, new):
            dynamodb.untag_resource(ResourceArn=arn, TagKeys=removed)
        if tags := tag_list(new):
            dynamodb.tag_resource(ResourceArn=arn, Tags=tags)
        return _outputs(dynamodb.describe_table(TableName=id)["Table"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("dynamodb").delete_table(TableName=id))

    def _set_indexes(self, table: str, live: dict[str, Any], new: Inputs) -> None:
        dynamodb = self.platform.aws("dynamodb")
        existing = {index["IndexName"]: index for index in live.get("GlobalSecondaryIndexes", [])}
        wanted = {index["IndexName"]: index for index in map(_index, new.get("globalSecondaryIndexes") or [])}
        stale = [
            name
            for name, index in existing.items()
            if name not in wanted or index["KeySchema"] != wanted[name]["KeySchema"]
        ]
        for name in stale:
            dynamodb.update_table(TableName=table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": name}}])
        for name, index in wanted.items():
            if name in existing and name not in stale:
                continue
            dynamodb.update_table(
                TableName=table,
                AttributeDefinitions=_attributes(new),
                GlobalSecondaryIndexUpdates=[{"Create": index}],
            )

    def _set_expiry(self, table: str, old: Inputs, new: Inputs) -> None:
        before, after = old.get("ttl") or {}, new.get("ttl") or {}
        if before == after:
            return
        was_on, is_on = bool(before.get("enabled")), bool(after.get("enabled"))
        if was_on and is_on and before.get("attributeName") != after.get("attributeName"):
            raise HandlerError(
                f"ValidationException: TimeToLive of {table} is active on a different AttributeName: current "
                f"AttributeName is {before.get('attributeName')}; switch it off in one run and on in the next"
            )
        attribute = after.get("attributeName") or before.get("attributeName")
        if was_on == is_on or not attribute:
            return
        self.platform.aws("dynamodb").update_time_to_live(
            TableName=table, TimeToLiveSpecification={"AttributeName": attribute, "Enabled": is_on}
        )

    def _set_backups(self, table: str, old: Inputs, new: Inputs) -> None:
        before, after = old.get("pointInTimeRecovery") or {}, new.get("pointInTimeRecovery") or {}
        if bool(before.get("enabled")) == bool(after.get("enabled")):
            return
        self.platform.aws("dynamodb").update_continuous_backups(
            TableName=table,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": bool(after.get("enabled"))},
        )


def _key_schema(keyed: Inputs) -> list[dict[str, str]]:
    if given := keyed.get("keySchemas"):
        return [{"AttributeName": key["attributeName"], "KeyType": key["keyType"]} for key in given]
    schema = [{"AttributeName": keyed["hashKey"], "KeyType": "HASH"}] if keyed.get("hashKey") else []
    if keyed.get("rangeKey"):
        schema.append({"AttributeName": keyed["rangeKey"], "KeyType": "RANGE"})
    return schema


def _attributes(inputs: Inputs) -> list[dict[str, str]]:
    return [{"AttributeName": entry["name"], "AttributeType": entry["type"]} for entry in inputs["attributes"]]


def _index(index: Inputs) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": index["projectionType"]}
    if index.get("nonKeyAttributes"):
        projection["NonKeyAttributes"] = list(index["nonKeyAttributes"])
    return {"IndexName": index["name"], "KeySchema": _key_schema(index), "Projection": projection}


def _billing(inputs: Inputs) -> dict[str, Any]:
    if inputs.get("billingMode") == "PAY_PER_REQUEST":
        return {"BillingMode": "PAY_PER_REQUEST"}
    units = {
        "ReadCapacityUnits": plain(inputs.get("readCapacity", 1)),
        "WriteCapacityUnits": plain(inputs.get("writeCapacity", 1)),
    }
    return {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}


def _encryption(encryption: Inputs) -> dict[str, Any]:
    if not encryption.get("enabled"):
        return {"Enabled": False}
    key = {"KMSMasterKeyId": encryption["kmsKeyArn"]} if encryption.get("kmsKeyArn") else {}
    return {"Enabled": True, "SSEType": "KMS", **key}


def _outputs(described: dict[str, Any], inputs: Inputs) -> Outputs:
    return {
        **inputs,
        "name": described["TableName"],
        "arn": described["TableArn"],
        "streamArn": described.get("LatestStreamArn", ""),
        "deletionProtectionEnabled": bool(described.get("DeletionProtectionEnabled")),
        "tagsAll": tags_of(inputs),
    }
