"""SQS: queues and their policies."""

from local.handlers.handler import Handler, Inputs, Made, Outputs
from local.handlers.policies import as_this_machine_needs
from local.handlers.refusals import found, gone
from local.handlers.shapes import attribute_text, physical_name, tags_gone, tags_of
from local.widenings import Kind

# Input → attribute, and AWS's default (what an input that is gone goes back to).
_ATTRIBUTES = {
    "visibilityTimeoutSeconds": ("VisibilityTimeout", "30"),
    "messageRetentionSeconds": ("MessageRetentionPeriod", "345600"),
    "maxMessageSize": ("MaximumMessageSize", "1048576"),
    "delaySeconds": ("DelaySeconds", "0"),
    "receiveWaitTimeSeconds": ("ReceiveMessageWaitTimeSeconds", "0"),
    "redrivePolicy": ("RedrivePolicy", ""),
    "redriveAllowPolicy": ("RedriveAllowPolicy", ""),
    "sqsManagedSseEnabled": ("SqsManagedSseEnabled", "true"),
    "kmsMasterKeyId": ("KmsMasterKeyId", ""),
    "kmsDataKeyReusePeriodSeconds": ("KmsDataKeyReusePeriodSeconds", "300"),
}


class Queue(Handler):
    """A queue. A name in use with other attributes is refused, as AWS does."""

    resource_type = "aws:sqs/queue:Queue"
    replaced_by = frozenset({"fifoQueue", "name", "namePrefix"})

    def create(self, name: str, inputs: Inputs) -> Made:
        attributes = {
            attribute: attribute_text(inputs[key])
            for key, (attribute, _) in _ATTRIBUTES.items()
            if inputs.get(key) is not None
        }
        if inputs.get("fifoQueue"):
            attributes["FifoQueue"] = "true"
            attributes["ContentBasedDeduplication"] = attribute_text(bool(inputs.get("contentBasedDeduplication")))
        url: str = self.platform.aws("sqs").create_queue(
            QueueName=physical_name(inputs, name, limit=80), Attributes=attributes, tags=tags_of(inputs)
        )["QueueUrl"]
        if policy := inputs.get("policy"):
            _set_policy(self, url, policy)
        return Made(url, self._outputs(url, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        name = id.rsplit("/", 1)[-1] or inputs.get("name")
        if not name:
            return None
        answer = found(lambda: self.platform.aws("sqs").get_queue_url(QueueName=name))
        return Made(answer["QueueUrl"], self._outputs(answer["QueueUrl"], inputs)) if answer else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        sqs = self.platform.aws("sqs")
        attributes = {}
        for key, (attribute, default) in _ATTRIBUTES.items():
            if new.get(key) is not None:
                attributes[attribute] = attribute_text(new[key])
            elif old.get(key) is not None:
                attributes[attribute] = default
        if attributes:
            sqs.set_queue_attributes(QueueUrl=id, Attributes=attributes)
        if new.get("policy") or old.get("policy"):
            _set_policy(self, id, new.get("policy") or "")
        if removed := tags_gone(old, new):
            sqs.untag_queue(QueueUrl=id, TagKeys=removed)
        if tags := tags_of(new):
            sqs.tag_queue(QueueUrl=id, Tags=tags)
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("sqs").delete_queue(QueueUrl=id))

    def _outputs(self, url: str, inputs: Inputs) -> Outputs:
        name = url.rsplit("/", 1)[-1]
        return {
            **inputs,
            "name": name,
            "arn": f"arn:aws:sqs:{self.platform.region}:{self.platform.account}:{name}",
            "url": url,
            "tagsAll": tags_of(inputs),
        }


class QueuePolicy(Handler):
    """Who may use a queue."""

    resource_type = "aws:sqs/queuePolicy:QueuePolicy"
    replaced_by = frozenset({"queueUrl"})

    def create(self, name: str, inputs: Inputs) -> Made:
        _set_policy(self, inputs["queueUrl"], inputs["policy"])
        return Made(inputs["queueUrl"], dict(inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        url = id or inputs["queueUrl"]
        sqs = self.platform.aws("sqs")
        answer = found(lambda: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"]))
        return Made(url, dict(inputs)) if answer and answer.get("Attributes", {}).get("Policy") else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        _set_policy(self, id, new["policy"])
        return dict(new)

    def delete(self, id: str, outputs: Outputs) -> None:
        sqs = self.platform.aws("sqs")
        gone(lambda: sqs.set_queue_attributes(QueueUrl=id, Attributes={"Policy": ""}))


def _set_policy(handler: Handler, url: str, policy: str) -> None:
    document = policy and as_this_machine_needs(
        handler.platform, policy, kind=Kind.RESOURCE, owner=f"queue {url.rsplit('/', 1)[-1]}"
    )
    handler.platform.aws("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": document})
