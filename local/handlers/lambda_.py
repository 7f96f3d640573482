"""Lambda: functions from their real zips, the mappings that feed them, who may invoke them."""

import base64
import hashlib
from pathlib import Path
from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.permissions import missing_actions, require_trust
from local.handlers.refusals import found, gone
from local.handlers.shapes import capitalised, physical_name, plain, tags_gone, tags_of

_SERVICE = "lambda.amazonaws.com"
_POLLING = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")


class Function(Handler):
    """A function. Its environment is the program's, and what lets this machine record its mails and calls.

    Refuses what AWS refuses when it runs one, which the emulator does not ask: a role that Lambda may not assume, or
    that may not write the function's log group.
    """

    resource_type = "aws:lambda/function:Function"
    replaced_by = frozenset({"name", "packageType"})

    def create(self, name: str, inputs: Inputs) -> Made:
        function = physical_name(inputs, name, limit=64)
        self._require_permissions(function, inputs)
        code = self._code(inputs)
        configuration = self._configuration(function, inputs)
        made = self.platform.aws("lambda").create_function(
            FunctionName=function,
            Code={"ZipFile": code},
            Architectures=list(inputs.get("architectures") or ["x86_64"]),
            Publish=bool(inputs.get("publish")),
            Tags=tags_of(inputs),
            **configuration,
        )
        self._reserve(function, {}, inputs)
        return Made(function, self._outputs(made["FunctionArn"], code, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        function = id or inputs.get("name")
        if not function:
            return None
        answer = found(lambda: self.platform.aws("lambda").get_function(FunctionName=function))
        if answer is None:
            return None
        live = answer["Configuration"]
        outputs = self._outputs(live["FunctionArn"], b"", inputs)
        return Made(function, {**outputs, "codeSha256": live["CodeSha256"], "sourceCodeSize": live["CodeSize"]})

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._require_permissions(id, new)
        code = self._code(new)
        client = self.platform.aws("lambda")
        client.update_function_configuration(FunctionName=id, **self._configuration(id, new))
        client.update_function_code(
            FunctionName=id, ZipFile=code, Architectures=list(new.get("architectures") or ["x86_64"])
        )
        self._reserve(id, old, new)
        if removed := tags_gone(old, new):
            client.untag_resource(Resource=old["arn"], TagKeys=removed)
        if tags := tags_of(new):
            client.tag_resource(Resource=old["arn"], Tags=tags)
        return self._outputs(old["arn"], code, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("lambda").delete_function(FunctionName=id))

    def resume(self, id: str, outputs: Outputs) -> None:
        """The recorders may answer on other ports than before the restart."""
        client = self.platform.aws("lambda")
        wanted = self._environment(outputs)
        live = client.get_function_configuration(FunctionName=id).get("Environment", {}).get("Variables", {})
        if live != wanted:
            client.update_function_configuration(FunctionName=id, Environment={"Variables": wanted})

    def _require_permissions(self, function: str, inputs: Inputs) -> None:
        refusal = "InvalidParameterValueException: The role defined for the function cannot be assumed by Lambda."
        require_trust(self.platform, inputs["role"], _SERVICE, refusal)
        group = (inputs.get("loggingConfig") or {}).get("logGroup") or f"/aws/lambda/{function}"
        stream = f"arn:aws:logs:{self.platform.region}:{self.platform.account}:log-group:{group}:log-stream:x"
        missing = missing_actions(self.platform, inputs["role"], ["logs:CreateLogStream", "logs:PutLogEvents"], stream)
        if missing:
            raise HandlerError(
                f"AccessDeniedException: {inputs['role']} is not authorized to perform {', '.join(missing)} on "
                f"{group}: function {function} would run without a log. Allow it in the role's policy, and let the "
                "function depend on that policy"
            )

    def _code(self, inputs: Inputs) -> bytes:
        code = inputs.get("code")
        path = code.get("path") if isinstance(code, dict) else code
        if not isinstance(path, str):
            raise HandlerError(
                "the local platform takes a function's code as a file archive (a zip made by make build)"
            )
        file = Path(path)
        if not file.is_absolute():
            file = self.platform.root / "infra" / file
        try:
            return file.read_bytes()
        except OSError as error:
            raise HandlerError(f"cannot read {file}: {error.strerror}; `make build` makes it") from error

    def _environment(self, inputs: Inputs) -> dict[str, str]:
        role_name = str(inputs["role"]).rsplit("/", 1)[-1]
        return {
            **((inputs.get("environment") or {}).get("variables") or {}),
            "AWS_ENDPOINT_URL_SESV2": self.platform.mail_endpoint,
            "AWS_CSM_ENABLED": "true",
            "AWS_CSM_PORT": str(self.platform.calls_port),
            "AWS_CSM_CLIENT_ID": role_name,
        }

    def _configuration(self, function: str, inputs: Inputs) -> dict[str, Any]:
        configuration: dict[str, Any] = {
            "Role": inputs["role"],
            "Runtime": inputs["runtime"],
            "Handler": inputs["handler"],
            "Description": inputs.get("description", ""),
            "Timeout": plain(inputs.get("timeout", 3)),
            "MemorySize": plain(inputs.get("memorySize", 128)),
            "Environment": {"Variables": self._environment(inputs)},
            "TracingConfig": {"Mode": (inputs.get("tracingConfig") or {}).get("mode", "PassThrough")},
            "EphemeralStorage": {"Size": plain((inputs.get("ephemeralStorage") or {}).get("size", 512))},
            "Layers": list(inputs.get("layers") or []),
        }
        logging = capitalised(inputs.get("loggingConfig") or {})
        configuration["LoggingConfig"] = logging or {"LogFormat": "Text", "LogGroup": f"/aws/lambda/{function}"}
        if target := (inputs.get("deadLetterConfig") or {}).get("targetArn"):
            configuration["DeadLetterConfig"] = {"TargetArn": target}
        return configuration

    def _reserve(self, function: str, old: Inputs, new: Inputs) -> None:
        client = self.platform.aws("lambda")
        reserved = plain(new.get("reservedConcurrentExecutions", -1))
        if reserved >= 0:
            client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=reserved)
        elif plain(old.get("reservedConcurrentExecutions", -1)) >= 0:
            client.delete_function_concurrency(FunctionName=function)

    def _outputs(self, arn: str, code: bytes, inputs: Inputs) -> Outputs:
        region = self.platform.region
        return {
            **inputs,
            "name": arn.rsplit(":", 1)[-1],
            "arn": arn,
            "invokeArn": f"arn:aws:apigateway:{region}:lambda:path/2015-03-31/functions/{arn}/invocations",
            "qualifiedArn": f"{arn}:$LATEST",
            "version": "$LATEST",
            "codeSha256": base64.b64encode(hashlib.sha256(code).digest()).decode(),
            "sourceCodeSize": len(code),
            "tagsAll": tags_of(inputs),
        }


class EventSourceMapping(Handler):
    """What feeds a function from a queue.

    Refuses what AWS refuses at this moment and the emulator does not: a role that may not receive, delete and read
    attributes; a queue whose messages would come back while the function still runs; a second mapping of the pair.
    """

    resource_type = "aws:lambda/eventSourceMapping:EventSourceMapping"
    replaced_by = frozenset({"eventSourceArn", "queues", "startingPosition", "startingPositionTimestamp", "topics"})

    def create(self, name: str, inputs: Inputs) -> Made:
        self._require_permissions(inputs)
        if existing := self._existing(inputs):
            raise HandlerError(
                f"ResourceConflictException: An event source mapping with SQS arn ({inputs['eventSourceArn']}) and "
                f"function ({inputs['functionName']}) already exists. Please update or delete the existing mapping "
                f"with UUID {existing}"
            )
        uuid: str = self.platform.aws("lambda").create_event_source_mapping(
            EventSourceArn=inputs["eventSourceArn"],
            FunctionName=inputs["functionName"],
            Tags=tags_of(inputs),
            **_mapping_options(inputs, removed=False),
        )["UUID"]
        return Made(uuid, self._outputs(uuid, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        uuid = id or self._existing(inputs)
        if not uuid or not found(lambda: self.platform.aws("lambda").get_event_source_mapping(UUID=uuid)):
            return None
        return Made(uuid, self._outputs(uuid, inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._require_permissions(new)
        self.platform.aws("lambda").update_event_source_mapping(
            UUID=id, FunctionName=new["functionName"], **_mapping_options(new, removed=True)
        )
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("lambda").delete_event_source_mapping(UUID=id))

    def _existing(self, inputs: Inputs) -> str | None:
        listed = found(
            lambda: self.platform.aws("lambda").list_event_source_mappings(
                FunctionName=inputs["functionName"], EventSourceArn=inputs["eventSourceArn"]
            )["EventSourceMappings"]
        )
        return str(listed[0]["UUID"]) if listed else None

    def _require_permissions(self, inputs: Inputs) -> None:
        function = self.platform.aws("lambda").get_function_configuration(FunctionName=inputs["functionName"])
        missing = missing_actions(self.platform, function["Role"], _POLLING, inputs["eventSourceArn"])
        if missing:
            calls = ", ".join(action.removeprefix("sqs:") for action in missing)
            raise HandlerError(
                "InvalidParameterValueException: The provided execution role does not have permissions to call "
                f"{calls} on SQS ({function['Role']}, {inputs['eventSourceArn']})"
            )
        queue = inputs["eventSourceArn"].rsplit(":", 1)[-1]
        sqs = self.platform.aws("sqs")
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
        if int(attributes["VisibilityTimeout"]) < function["Timeout"]:
            raise HandlerError(
                f"InvalidParameterValueException: Queue visibility timeout: {attributes['VisibilityTimeout']} seconds "
                f"is less than Function timeout: {function['Timeout']} seconds"
            )

    def _outputs(self, uuid: str, inputs: Inputs) -> Outputs:
        function = str(inputs["functionName"]).rsplit(":", 1)[-1]
        prefix = f"arn:aws:lambda:{self.platform.region}:{self.platform.account}"
        return {
            **inputs,
            "uuid": uuid,
            "arn": f"{prefix}:event-source-mapping:{uuid}",
            "functionArn": f"{prefix}:function:{function}",
            "state": "Enabled" if inputs.get("enabled", True) else "Disabled",
            "tagsAll": tags_of(inputs),
        }


def _mapping_options(inputs: Inputs, *, removed: bool) -> dict[str, Any]:
    """The mapping's options; with ``removed``, what is not there is set back to AWS's default."""
    options: dict[str, Any] = {
        "Enabled": bool(inputs.get("enabled", True)),
        "BatchSize": plain(inputs.get("batchSize", 10)),
        "MaximumBatchingWindowInSeconds": plain(inputs.get("maximumBatchingWindowInSeconds", 0)),
        "FunctionResponseTypes": list(inputs.get("functionResponseTypes") or []),
    }
    for key, theirs in (("scalingConfig", "ScalingConfig"), ("filterCriteria", "FilterCriteria")):
        if inputs.get(key) or removed:
            options[theirs] = capitalised(inputs.get(key) or {})
    return options


class Permission(Handler):
    """Who may invoke a function."""

    resource_type = "aws:lambda/permission:Permission"
    replaced_by = frozenset(
        {
            "action", "eventSourceToken", "function", "functionUrlAuthType", "principal", "principalOrgId", "qualifier",
            "sourceAccount", "sourceArn", "statementId", "statementIdPrefix",
        }
    )  # fmt: skip

    def create(self, name: str, inputs: Inputs) -> Made:
        statement = physical_name(inputs, name, key="statementId", limit=100)
        request = {"StatementId": statement, "FunctionName": inputs["function"]}
        for key in ("action", "principal", "sourceArn", "sourceAccount"):
            if inputs.get(key):
                request[key[0].upper() + key[1:]] = inputs[key]
        self.platform.aws("lambda").add_permission(**request)
        return Made(statement, {**inputs, "statementId": statement})

    def read(self, id: str, inputs: Inputs) -> Made | None:
        statement = id or inputs.get("statementId")
        answer = found(lambda: self.platform.aws("lambda").get_policy(FunctionName=inputs["function"]))
        if not statement or answer is None or f'"{statement}"' not in answer["Policy"]:
            return None
        return Made(statement, {**inputs, "statementId": statement})

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        raise HandlerError("a function's permission cannot change: every input replaces it")

    def delete(self, id: str, outputs: Outputs) -> None:
        client = self.platform.aws("lambda")
        gone(lambda: client.remove_permission(FunctionName=outputs["function"], StatementId=id))
