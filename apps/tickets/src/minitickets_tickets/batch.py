"""A batch of queue messages: each is issued, acknowledged unread or reported failed, none disturbs another."""

import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from aws_lambda_powertools import Logger

from minitickets_contracts.fields import ContractError
from minitickets_contracts.messages import BookingConfirmed, BookingMessage, EventMoved, message_type
from minitickets_tickets.failures import CallFailed, OutOfTime, TicketMismatch
from minitickets_tickets.issue import Issued

# Either makes sure that the booking's tickets exist, and says when and where their event is: they come in any order.
_WANTED: dict[str, type[BookingMessage]] = {each.TYPE: each for each in (BookingConfirmed, EventMoved)}


class Issue(Protocol):
    """Issues the tickets of one booking."""

    def __call__(self, message: BookingMessage, *, seconds_left: Callable[[], float]) -> Issued: ...


def process_batch(
    event: Mapping[str, Any], *, issue: Issue, logger: Logger, seconds_left: Callable[[], float]
) -> dict[str, list[dict[str, str]]]:
    """The partial batch response to an SQS ``event``: the ids of the messages that have to come again.

    Raises nothing for its messages, even when all fail: an exception would make all of them come again, and tell
    nobody why. ValueError for an event that is no SQS batch.
    """
    if "Records" not in event:
        raise ValueError("event: must hold the Records of an SQS batch; this function is fed by its queue")
    failed = [
        record["messageId"]
        for record in event["Records"]
        if not _is_done(record, issue=issue, logger=logger, seconds_left=seconds_left)
    ]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _is_done(record: Mapping[str, Any], *, issue: Issue, logger: Logger, seconds_left: Callable[[], float]) -> bool:
    with logger.append_context_keys(
        sqsMessageId=record["messageId"], receives=record.get("attributes", {}).get("ApproximateReceiveCount")
    ):
        try:
            # Both queues get every message: what belongs to another consumer is none of ours.
            wanted = _WANTED.get(message_type(record["body"]))
            if wanted is None:
                logger.info("Acknowledged a message of another type")
                return True
            message = wanted.from_json(record["body"])
        except ContractError as error:
            logger.error("The message is malformed", reason=str(error))  # noqa: TRY400 - a trace adds nothing
            return False
        with logger.append_context_keys(correlation_id=message.correlation_id, bookingId=message.booking_id):
            return _is_issued(message, issue=issue, logger=logger, seconds_left=seconds_left)


def _is_issued(message: BookingMessage, *, issue: Issue, logger: Logger, seconds_left: Callable[[], float]) -> bool:
    try:
        issued = issue(message, seconds_left=seconds_left)
    except OutOfTime as error:
        logger.warning("The rest of the booking's tickets waits for the next attempt", reason=str(error))
        return False
    except (CallFailed, ContractError, TicketMismatch) as error:
        logger.error("The booking's tickets are not issued", reason=str(error))  # noqa: TRY400 - as above
        return False
    except Exception as error:  # noqa: BLE001 - one message must not fail its siblings
        # Neither its text nor a trace, which ends with it: they may hold what must not be logged.
        logger.error("The booking's tickets are not issued", reason=type(error).__name__, frames=_frames(error))  # noqa: TRY400 - as said above
        return False
    logger.info("The booking's tickets are ready", made=issued.made, found=issued.found, moved=issued.moved)
    return True


def _frames(error: Exception) -> list[str]:
    return [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
