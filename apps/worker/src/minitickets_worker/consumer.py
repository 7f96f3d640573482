"""A batch of messages: each is finished, or reported as failed and put back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypedDict

from aws_lambda_powertools import Logger

from minitickets_contracts.fields import ContractError
from minitickets_contracts.messages import message_type
from minitickets_worker.invocation import MESSAGE_SECONDS, Invocation
from minitickets_worker.logs import error_facts, message_identity
from minitickets_worker.mailer import MailNotSentError, MailOutcomeUnknownError, MailQuotaError, MailThrottledError
from minitickets_worker.processed_jobs import JobInProgressError
from minitickets_worker.visibility import JobsQueue, draw_visibility

# Poison does not get better by waiting: it shall lie in the dead-letter queue, where an alarm shows it, soon.
_POISON_VISIBILITY_SECONDS = 0


class RecordAttributes(TypedDict):
    """The part of a record's attributes that the worker reads."""

    ApproximateReceiveCount: str


class Record(TypedDict):
    """The part of an SQS record that the worker reads."""

    messageId: str
    receiptHandle: str
    body: str
    attributes: RecordAttributes


class ItemFailure(TypedDict):
    """One message that Lambda must not delete."""

    itemIdentifier: str


class BatchResponse(TypedDict):
    """Lambda's partial batch response."""

    batchItemFailures: list[ItemFailure]


Handlers = Mapping[str, Callable[[str], None]]
"""By message type: what parses and handles a body. It returns when the message is finished."""


@dataclass(frozen=True, kw_only=True)
class _Unfinished:
    """Why a message must come back: at once, if ``poison``; ``stop`` if its siblings need not be tried now."""

    event: str
    facts: Mapping[str, object] = field(default_factory=dict)
    error: bool = False
    poison: bool = False
    stop: bool = False


_UNTRIED = _Unfinished(event="message untried", stop=True)


def consume(
    records: Sequence[Record],
    *,
    handlers: Handlers,
    queue: JobsQueue,
    invocation: Invocation,
    random: Random,
    log: Logger,
) -> BatchResponse:
    """Handle each record while there is time; the ids of those that are not finished.

    Nothing that a message does raises: a batch that fails whole is reported whole. (Powertools' batch processor would
    try every record to the end, and raise when all fail.)
    """
    comes_back: dict[str, int] = {}
    failures: list[ItemFailure] = []
    stopped = False
    untried = 0
    for record in records:
        with log.append_context_keys(sqsMessageId=record["messageId"], **message_identity(record["body"])):
            # A throttled send has waited until now: those behind it would be throttled too.
            if stopped or invocation.seconds_left() < MESSAGE_SECONDS:
                unfinished: _Unfinished | None = _UNTRIED
                untried += 1
            else:
                unfinished = _handle(record["body"], handlers, log)
            if unfinished is None:
                continue
            stopped = stopped or unfinished.stop
            receives = int(record["attributes"]["ApproximateReceiveCount"])
            seconds = draw_visibility(receives=receives, random=random)
            if unfinished.poison:
                seconds = _POISON_VISIBILITY_SECONDS
            report = log.error if unfinished.error else log.warning
            report(unfinished.event, extra={**unfinished.facts, "receives": receives, "comesBackInSeconds": seconds})
        comes_back[record["receiptHandle"]] = seconds
        failures.append({"itemIdentifier": record["messageId"]})
    if untried:
        log.warning("batch stopped early", extra={"untried": untried, "size": len(records)})
    if comes_back and (put_back := queue.put_back(comes_back)) < len(comes_back):
        log.warning("visibility not set", extra={"messages": len(comes_back) - put_back})
    return {"batchItemFailures": failures}


def _handle(body: str, handlers: Handlers, log: Logger) -> _Unfinished | None:
    """Finish one message, or say why it must come back."""
    try:
        handler = handlers.get(message_type(body))
        if handler is None:
            # Both queues get every message: what is not ours is somebody else's.
            log.info("message not ours")
        else:
            handler(body)
    except ContractError as error:
        # Its text names the field and never the value.
        facts = {"field": error.field, "problem": error.problem}
        return _Unfinished(event="message poisoned", facts=facts, error=True, poison=True)
    except JobInProgressError:
        return _Unfinished(event="job in progress elsewhere")
    except MailThrottledError as error:
        return _Unfinished(event="mail throttled", facts={"code": error.code}, stop=True)
    except MailQuotaError as error:
        return _Unfinished(event="mail quota used up", facts={"code": error.code}, error=True, stop=True)
    except MailNotSentError as error:
        return _Unfinished(event="mail not sent", facts={"code": error.code}, error=True)
    except MailOutcomeUnknownError as error:
        return _Unfinished(event="mail outcome unknown", facts={"code": error.code})
    except Exception as error:  # noqa: BLE001 - whatever one message does must not fail its siblings
        return _Unfinished(event="message failed", facts=error_facts(error), error=True)
    return None
