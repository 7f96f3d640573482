"""SNS: topics, their policies, subscriptions."""

import json
from typing import Any

from local.handlers.handler import Handler, Inputs, Made, Outputs
from local.handlers.policies import as_this_machine_needs
from local.handlers.refusals import found, gone
from local.handlers.shapes import attribute_text, physical_name, tag_list, tags_gone, tags_of
from local.widenings import Kind

# Input → attribute, and the value that means "not set".
_TOPIC_ATTRIBUTES = {
    "displayName": ("DisplayName", ""),
    "kmsMasterKeyId": ("KmsMasterKeyId", ""),
    "deliveryPolicy": ("DeliveryPolicy", ""),
    "signatureVersion": ("SignatureVersion", "1"),
    "tracingConfig": ("TracingConfig", "PassThrough"),
}
_SUBSCRIPTION_ATTRIBUTES = {
    "rawMessageDelivery": ("RawMessageDelivery", "false"),
    "redrivePolicy": ("RedrivePolicy", ""),
    "filterPolicy": ("FilterPolicy", ""),
    "filterPolicyScope": ("FilterPolicyScope", "MessageAttributes"),
    "deliveryPolicy": ("DeliveryPolicy", ""),
}


class Topic(Handler):
    """A topic. Like AWS, a name in use with the same attributes is the same topic."""

    resource_type = "aws:sns/topic:Topic"
    replaced_by = frozenset({"fifoTopic", "name", "namePrefix"})

    def create(self, name: str, inputs: Inputs) -> Made:
        topic = physical_name(inputs, name)
        attributes = {"FifoTopic": "true"} if inputs.get("fifoTopic") else {}
        arn: str = self.platform.aws("sns").create_topic(Name=topic, Attributes=attributes, Tags=tag_list(inputs))[
            "TopicArn"
        ]
        self._configure(arn, {}, inputs)
        return Made(arn, self._outputs(arn, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        arn = id or self._arn(inputs)
        if arn is None or found(lambda: self.platform.aws("sns").get_topic_attributes(TopicArn=arn)) is None:
            return None
        return Made(arn, self._outputs(arn, inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self._configure(id, old, new)
        sns = self.platform.aws("sns")
        if removed := tags_gone(old, new):
            sns.untag_resource(ResourceArn=id, TagKeys=removed)
        if tags := tag_list(new):
            sns.tag_resource(ResourceArn=id, Tags=tags)
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("sns").delete_topic(TopicArn=id))

    def _arn(self, inputs: Inputs) -> str | None:
        name = inputs.get("name")
        return f"arn:aws:sns:{self.platform.region}:{self.platform.account}:{name}" if name else None

    def _configure(self, arn: str, old: Inputs, new: Inputs) -> None:
        sns = self.platform.aws("sns")
        for attribute, value in _changes(_TOPIC_ATTRIBUTES, old, new):
            sns.set_topic_attributes(TopicArn=arn, AttributeName=attribute, AttributeValue=value)
        if policy := new.get("policy"):
            _set_topic_policy(self, arn, policy)

    def _outputs(self, arn: str, inputs: Inputs) -> Outputs:
        return {
            **inputs,
            "arn": arn,
            "name": arn.rsplit(":", 1)[-1],
            "owner": self.platform.account,
            "tagsAll": tags_of(inputs),
        }


class TopicPolicy(Handler):
    """Who may use a topic. Without one, the topic's owner may."""

    resource_type = "aws:sns/topicPolicy:TopicPolicy"
    replaced_by = frozenset({"arn"})

    def create(self, name: str, inputs: Inputs) -> Made:
        _set_topic_policy(self, inputs["arn"], inputs["policy"])
        return Made(inputs["arn"], {**inputs, "owner": self.platform.account})

    def read(self, id: str, inputs: Inputs) -> Made | None:
        arn = id or inputs["arn"]
        topic = found(lambda: self.platform.aws("sns").get_topic_attributes(TopicArn=arn))
        if topic is None or "__default_policy_ID" in topic["Attributes"].get("Policy", "__default_policy_ID"):
            return None
        return Made(arn, {**inputs, "owner": self.platform.account})

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        _set_topic_policy(self, id, new["policy"])
        return {**new, "owner": self.platform.account}

    def delete(self, id: str, outputs: Outputs) -> None:
        # The provider's own way: back to what AWS gives a new topic.
        statement = {
            "Sid": "__default_statement_ID",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": ["SNS:Publish", "SNS:Subscribe", "SNS:Receive"],
            "Resource": id,
            "Condition": {"StringEquals": {"AWS:SourceOwner": self.platform.account}},
        }
        default = json.dumps({"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]})
        sns = self.platform.aws("sns")
        gone(lambda: sns.set_topic_attributes(TopicArn=id, AttributeName="Policy", AttributeValue=default))


class TopicSubscription(Handler):
    """A queue's subscription to a topic."""

    resource_type = "aws:sns/topicSubscription:TopicSubscription"
    replaced_by = frozenset({"endpoint", "protocol", "topic"})

    def create(self, name: str, inputs: Inputs) -> Made:
        attributes = {
            attribute: attribute_text(inputs[key])
            for key, (attribute, _) in _SUBSCRIPTION_ATTRIBUTES.items()
            if inputs.get(key) is not None
        }
        arn: str = self.platform.aws("sns").subscribe(
            TopicArn=inputs["topic"],
            Protocol=inputs["protocol"],
            Endpoint=inputs["endpoint"],
            Attributes=attributes,
            ReturnSubscriptionArn=True,
        )["SubscriptionArn"]
        return Made(arn, self._outputs(arn, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        sns = self.platform.aws("sns")
        if id:
            exists = found(lambda: sns.get_subscription_attributes(SubscriptionArn=id)) is not None
            return Made(id, self._outputs(id, inputs)) if exists else None
        listed = found(lambda: sns.list_subscriptions_by_topic(TopicArn=inputs["topic"])["Subscriptions"]) or []
        for entry in listed:
            if (entry["Protocol"], entry["Endpoint"]) == (inputs["protocol"], inputs["endpoint"]):
                return Made(entry["SubscriptionArn"], self._outputs(entry["SubscriptionArn"], inputs))
        return None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        for attribute, value in _changes(_SUBSCRIPTION_ATTRIBUTES, old, new):
            self.platform.aws("sns").set_subscription_attributes(
                SubscriptionArn=id, AttributeName=attribute, AttributeValue=value
            )
        return self._outputs(id, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        gone(lambda: self.platform.aws("sns").unsubscribe(SubscriptionArn=id))

    def _outputs(self, arn: str, inputs: Inputs) -> Outputs:
        return {**inputs, "arn": arn, "ownerId": self.platform.account, "pendingConfirmation": False}


def _set_topic_policy(handler: Handler, arn: str, policy: str) -> None:
    document = as_this_machine_needs(handler.platform, policy, kind=Kind.RESOURCE, owner=f"topic {arn}")
    handler.platform.aws("sns").set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue=document)


def _changes(attributes: dict[str, tuple[str, str]], old: Inputs, new: Inputs) -> list[tuple[str, str]]:
    """What to set: everything that is there, and the default of what no longer is."""
    changes: list[tuple[str, Any]] = []
    for key, (attribute, default) in attributes.items():
        if new.get(key) is not None:
            changes.append((attribute, attribute_text(new[key])))
        elif old.get(key) is not None:
            changes.append((attribute, default))
    return changes
