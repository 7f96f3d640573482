"""Which jobs are done: the memory of the idempotent consumer (ADR 0005)."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from minitickets_worker.clients import DYNAMODB_CALL_SECONDS, SES_CALL_SECONDS
from minitickets_worker.invocation import Invocation

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

LEASE_SECONDS = 25
"""How long an attempt owns its job: longer than the function may run (10 s), and shorter than the queue's visibility
timeout less one more run (60 s less 10 s), so that the next attempt never finds the lease of a dead one."""

KEEP_SECONDS = 30 * 24 * 3600
"""How long a record is kept: far longer than a message can live in the queues (4 and 14 days)."""

_MAX_ATTEMPTS = 3
_FIRST_PAUSE_SECONDS = 0.05
# What is still to be called after the step, each call lasting until its time-out.
_AFTER_LEASE_SECONDS = SES_CALL_SECONDS + DYNAMODB_CALL_SECONDS
_AFTER_READ_SECONDS = DYNAMODB_CALL_SECONDS + _AFTER_LEASE_SECONDS

_IN_PROGRESS = "in-progress"
_DONE = "done"
_REFUSED = "refused"
_FINISHED = frozenset({_DONE, _REFUSED})

_THROTTLED = frozenset({"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"})

_Result = TypeVar("_Result")


class JobInProgressError(RuntimeError):
    """Another attempt holds a live lease on the job. The message must come back: that attempt may die."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """One attempt's claim on a job. ``owner`` is unique per attempt, not per worker."""

    job_key: str
    owner: str


class DynamoProcessedJobs:
    """Records in the table of processed jobs, by GetItem and PutItem alone.

    A call is repeated while it can help and time is left; a first attempt is made even with no time left. Errors of
    botocore pass through: the message then comes back.
    """

    def __init__(self, *, client: "DynamoDBClient", table: str, invocation: Invocation) -> None:
        self._client = client
        self._table = table
        self._invocation = invocation

    def begin(self, job_key: str) -> Lease | None:
        """A lease on the job, or None if it is finished: done, or refused for good.

        Raises JobInProgressError while another attempt holds a live lease.
        """
        found = self._repeat(
            lambda: self._client.get_item(
                TableName=self._table, Key={"jobKey": {"S": job_key}}, ConsistentRead=True
            ).get("Item", {}),
            reserve_seconds=_AFTER_READ_SECONDS,
        )
        now = int(self._invocation.now())
        # An expired item that TTL has not deleted yet still counts.
        if _status(found) in _FINISHED:
            return None
        if _status(found) == _IN_PROGRESS and int(found["leaseUntil"]["N"]) >= now:
            raise JobInProgressError(job_key)
        lease = Lease(job_key=job_key, owner=uuid.uuid4().hex)
        # The second in which it begins counts as its first, so that a message that comes back LEASE_SECONDS later
        # finds it over, whatever the fractions of the two seconds were.
        in_the_way = self._put(
            lease,
            {"status": {"S": _IN_PROGRESS}, "leaseUntil": {"N": str(now + LEASE_SECONDS - 1)}},
            condition="attribute_not_exists(jobKey) OR (#status = :inProgress AND leaseUntil < :now)",
            values={":inProgress": {"S": _IN_PROGRESS}, ":now": {"N": str(now)}},
            reserve_seconds=_AFTER_LEASE_SECONDS,
        )
        if in_the_way is None or _owner(in_the_way) == lease.owner:
            return lease
        if _status(in_the_way) in _FINISHED:
            return None
        raise JobInProgressError(job_key)

    def complete(self, lease: Lease, *, result: str) -> None:
        """Record the job as done, with what proves it. Whoever's effect was accepted may: the lease may be over.

        A record of ``done`` is never overwritten; one of ``refused`` by another attempt is, because the effect that was
        accepted is the truth.
        """
        self._put(
            lease,
            {"status": {"S": _DONE}, "result": {"S": result}, "finishedAt": {"N": str(int(self._invocation.now()))}},
            condition="attribute_not_exists(jobKey) OR #status <> :done",
            values={":done": {"S": _DONE}},
        )

    def refuse(self, lease: Lease, *, reason: str) -> None:
        """Record that the effect is refused for good, unless the job is finished. ``reason`` holds no personal data."""
        self._put(
            lease,
            {"status": {"S": _REFUSED}, "reason": {"S": reason}, "finishedAt": {"N": str(int(self._invocation.now()))}},
            condition="attribute_not_exists(jobKey) OR #status = :inProgress",
            values={":inProgress": {"S": _IN_PROGRESS}},
        )

    def release(self, lease: Lease) -> bool:
        """Give the job back before its effect was tried; whether that worked.

        A lease that is not this attempt's any more is left alone. One that cannot be given back ends by itself, so a
        failure here must not hide why the job was given up.
        """
        try:
            self._put(
                lease,
                # There is no right to delete: a lease that is over says the same.
                {"status": {"S": _IN_PROGRESS}, "leaseUntil": {"N": "0"}},
                condition="#owner = :owner AND #status = :inProgress",
                values={":owner": {"S": lease.owner}, ":inProgress": {"S": _IN_PROGRESS}},
            )
        except (BotoCoreError, ClientError):
            return False
        return True

    def _put(
        self,
        lease: Lease,
        attributes: "Mapping[str, AttributeValueTypeDef]",
        *,
        condition: str,
        values: "Mapping[str, AttributeValueTypeDef]",
        reserve_seconds: float = 0.0,
    ) -> "Mapping[str, AttributeValueTypeDef] | None":
        """Write the job's record if ``condition`` holds; None, or the record that was in the way.

        The repetition of a write whose answer was lost finds its own record in the way.
        """
        names = {"#status": "status", "#owner": "owner"}
        item: dict[str, AttributeValueTypeDef] = {
            "jobKey": {"S": lease.job_key},
            "owner": {"S": lease.owner},
            "expiresAt": {"N": str(int(self._invocation.now()) + KEEP_SECONDS)},
            **attributes,
        }

        def write() -> "Mapping[str, AttributeValueTypeDef] | None":
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression=condition,
                    # A name that the expression does not use is refused.
                    ExpressionAttributeNames={name: names[name] for name in names if name in condition},
                    ExpressionAttributeValues=dict(values),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                    raise
                return cast("Mapping[str, AttributeValueTypeDef]", error.response.get("Item", {}))
            return None

        return self._repeat(write, reserve_seconds=reserve_seconds)

    def _repeat(self, call: Callable[[], _Result], *, reserve_seconds: float) -> _Result:
        """``call``'s result; repeated while it failed in passing and ``reserve_seconds`` stay for what follows it."""
        attempt = 1
        while True:
            try:
                return call()
            except (BotoCoreError, ClientError) as error:
                pause = _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
                needed = pause + DYNAMODB_CALL_SECONDS + reserve_seconds
                if attempt == _MAX_ATTEMPTS or not _passes(error) or self._invocation.seconds_left() < needed:
                    raise
            self._invocation.sleep(pause)
            attempt += 1


def _status(item: "Mapping[str, AttributeValueTypeDef]") -> str | None:
    return item["status"]["S"] if "status" in item else None


def _owner(item: "Mapping[str, AttributeValueTypeDef]") -> str | None:
    return item["owner"]["S"] if "owner" in item else None


def _passes(error: BotoCoreError | ClientError) -> bool:
    """Whether the call may succeed a moment later: throttled, the service's own fault, or a connection that broke."""
    if isinstance(error, ClientError):
        answer = error.response
        return answer["Error"]["Code"] in _THROTTLED or answer["ResponseMetadata"]["HTTPStatusCode"] >= 500
    return isinstance(error, BotoConnectionError | HTTPClientError)
