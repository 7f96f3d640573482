"""What the worker talks to, in memory: a table with DynamoDB's conditions, SES, SQS, and a clock that tests turn."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.fixtures.dynamodb_conditions import Condition

Item = dict[str, dict[str, str]]


def client_error(
    code: str, *, status: int = 400, message: str = "", operation: str = "Call", **more: Any
) -> ClientError:
    """The error that botocore raises for an answer of the service."""
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}, **more},  # type: ignore[typeddict-item]  # what AWS adds is no part of the type
        operation,
    )


def lost_reply() -> ReadTimeoutError:
    """The error that botocore raises when no answer came in time."""
    return ReadTimeoutError(endpoint_url="https://service.invalid")


@dataclass
class FakeInvocation:
    """Time that passes only by being slept, or turned by a test."""

    time: float = 1_000_000.75
    ends: float = 1_000_009.75

    def now(self) -> float:
        return self.time

    def seconds_left(self) -> float:
        return self.ends - self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


Fault = Callable[[], None]
"""Raises what the call shall raise, or does something else (kills the process, turns the clock)."""


@dataclass
class Faults:
    """What goes wrong with the next calls: before they are applied, or after (the reply is lost)."""

    before: list[Fault | None] = field(default_factory=list)
    after: list[Fault | None] = field(default_factory=list)

    def strike_before(self) -> None:
        if self.before and (fault := self.before.pop(0)):
            fault()

    def strike_after(self) -> None:
        if self.after and (fault := self.after.pop(0)):
            fault()


def raising(error: BaseException) -> Fault:
    """A fault that raises ``error``."""

    def fault() -> None:
        raise error

    return fault


class Killed(BaseException):
    """The process dies here: no code of the worker may catch it."""


class FakeTable:
    """GetItem and PutItem of one table with the key ``jobKey``, as strict as DynamoDB about expressions."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.reads = Faults()
        self.writes = Faults()
        self.history: list[Item] = []
        self.calls = 0

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool) -> dict[str, Any]:
        assert ConsistentRead, "an eventually consistent read may miss the record of a moment ago"
        self.calls += 1
        self.reads.strike_before()
        item = self.items.get(Key["jobKey"]["S"])
        self.reads.strike_after()
        return {} if item is None else {"Item": dict(item)}

    def put_item(
        self,
        *,
        TableName: str,
        Item: Item,
        ConditionExpression: str,
        ExpressionAttributeNames: Mapping[str, str],
        ExpressionAttributeValues: Item,
        ReturnValuesOnConditionCheckFailure: str,
    ) -> dict[str, Any]:
        self.calls += 1
        self.writes.strike_before()
        for value in Item.values():
            assert set(value) in ({"S"}, {"N"})
            assert value.get("S") != ""
            assert re.fullmatch(r"-?\d+", value.get("N", "0")), "numbers are whole"
        old = self.items.get(Item["jobKey"]["S"])
        condition = Condition(ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues)
        if not condition.holds(old or {}):
            more: dict[str, Any] = (
                {"Item": dict(old)} if old and ReturnValuesOnConditionCheckFailure == "ALL_OLD" else {}
            )
            self.writes.strike_after()
            raise client_error("ConditionalCheckFailedException", operation="PutItem", **more)
        self.items[Item["jobKey"]["S"]] = dict(Item)
        self.history.append(dict(Item))
        self.writes.strike_after()
        return {}


class FakeSes:
    """SES that accepts, or does what a test says; ``allow`` may throttle by raising."""

    def __init__(self, *, allow: Callable[[], None] = lambda: None) -> None:
        self.sends = Faults()
        self.accepted: list[dict[str, Any]] = []
        self.attempts = 0
        self._allow = allow

    def send_email(self, **request: Any) -> dict[str, str]:
        assert set(request) == {"FromEmailAddress", "Destination", "Content"}
        assert set(request["Content"]) == {"Simple"}, "Raw content needs another action than the role has"
        self.attempts += 1
        self.sends.strike_before()
        self._allow()
        self.accepted.append(request)
        self.sends.strike_after()
        return {"MessageId": f"ses-{len(self.accepted)}"}

    def recipients(self) -> list[str]:
        return [request["Destination"]["ToAddresses"][0] for request in self.accepted]


class FakeSqs:
    """Remembers the visibility that was set for each receipt handle."""

    def __init__(self) -> None:
        self.calls = Faults()
        self.visibility: dict[str, int] = {}
        self.failing: set[str] = set()

    def change_message_visibility_batch(
        self,
        *,
        QueueUrl: str,
        Entries: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        self.calls.strike_before()
        assert 1 <= len(Entries) <= 10
        assert len({entry["Id"] for entry in Entries}) == len(Entries)
        answer: dict[str, Any] = {"Successful": [], "Failed": []}
        for entry in Entries:
            assert isinstance(entry["VisibilityTimeout"], int)
            if entry["ReceiptHandle"] in self.failing:
                answer["Failed"].append({"Id": entry["Id"], "SenderFault": True, "Code": "ReceiptHandleIsInvalid"})
            else:
                self.visibility[entry["ReceiptHandle"]] = entry["VisibilityTimeout"]
                answer["Successful"].append({"Id": entry["Id"]})
        return answer
