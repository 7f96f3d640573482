"""Booking events: one topic, fanned out to a queue for each consumer.

    topic ─┬─ jobs ────▶ worker     (fails maxReceiveCount times → jobs-dlq)
           └─ tickets ─▶ tickets    (fails maxReceiveCount times → tickets-dlq)

What SNS cannot deliver to a queue at all (its policy broken, the queue gone) goes to ``…-undelivered``.
"""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from src.jobs.worker import TIMEOUT_SECONDS as WORKER_TIMEOUT_SECONDS
from src.policies import compact_json, document
from src.tickets.lambda_ import TIMEOUT_SECONDS as TICKETS_TIMEOUT_SECONDS

# A message must stay hidden while a batch of it is tried, throttled and tried again: AWS advises six timeouts.
VISIBILITY_TIMEOUTS = 6

_DAY_SECONDS = 24 * 60 * 60
RETENTION_SECONDS = 4 * _DAY_SECONDS
# A message keeps its age when it moves to a dead-letter queue, so that one must keep longer: the most that SQS allows.
DEAD_LETTER_RETENTION_SECONDS = 14 * _DAY_SECONDS


@dataclass(frozen=True, kw_only=True)
class ConsumerQueue:
    """A consumer's queue and where its failures end."""

    queue: aws.sqs.Queue
    dead_letters: aws.sqs.Queue
    undelivered: aws.sqs.Queue


@dataclass(frozen=True, kw_only=True)
class BookingEvents:
    """The topic that the API publishes to, and the queue of each consumer."""

    topic: aws.sns.Topic
    jobs: ConsumerQueue
    tickets: ConsumerQueue


def create_booking_events(name: str, *, account_id: str, max_receive_count: int) -> BookingEvents:
    """The topic ``…-booking-events`` with its queues ``…-jobs`` and ``…-tickets``.

    ``max_receive_count`` is how often a message is tried before it becomes a dead letter.
    """
    # SNS's own key: publishers of this account need no KMS permission for it, and delivery into queues with SQS's
    # managed key needs no key policy (a customer's key would need one, and fail silently without).
    topic = aws.sns.Topic("booking-events", name=f"{name}-booking-events", kms_master_key_id="alias/aws/sns")

    def consumer(thing: str, function_timeout_seconds: int) -> ConsumerQueue:
        return _create_consumer_queue(
            name,
            thing=thing,
            topic=topic,
            account_id=account_id,
            max_receive_count=max_receive_count,
            visibility_timeout_seconds=VISIBILITY_TIMEOUTS * function_timeout_seconds,
        )

    return BookingEvents(
        topic=topic,
        jobs=consumer("jobs", WORKER_TIMEOUT_SECONDS),
        tickets=consumer("tickets", TICKETS_TIMEOUT_SECONDS),
    )


def _create_consumer_queue(
    name: str,
    *,
    thing: str,
    topic: aws.sns.Topic,
    account_id: str,
    max_receive_count: int,
    visibility_timeout_seconds: int,
) -> ConsumerQueue:
    dead_letters = _create_queue(name, thing=f"{thing}-dlq", retention_seconds=DEAD_LETTER_RETENTION_SECONDS)
    undelivered = _create_queue(name, thing=f"{thing}-undelivered", retention_seconds=DEAD_LETTER_RETENTION_SECONDS)
    queue = aws.sqs.Queue(
        thing,
        name=f"{name}-{thing}",
        message_retention_seconds=RETENTION_SECONDS,
        visibility_timeout_seconds=visibility_timeout_seconds,
        receive_wait_time_seconds=20,
        sqs_managed_sse_enabled=True,
        redrive_policy=compact_json({"deadLetterTargetArn": dead_letters.arn, "maxReceiveCount": max_receive_count}),
    )
    doors = [
        _let_topic_in(thing, queue=queue, topic=topic, account_id=account_id),
        _let_topic_in(f"{thing}-undelivered", queue=undelivered, topic=topic, account_id=account_id),
    ]
    aws.sns.TopicSubscription(
        thing,
        topic=topic.arn,
        protocol="sqs",
        endpoint=queue.arn,
        raw_message_delivery=True,
        redrive_policy=compact_json({"deadLetterTargetArn": undelivered.arn}),
        # An event that comes before the queue lets the topic in would be undelivered.
        opts=pulumi.ResourceOptions(depends_on=doors),
    )
    return ConsumerQueue(queue=queue, dead_letters=dead_letters, undelivered=undelivered)


def _create_queue(name: str, *, thing: str, retention_seconds: int) -> aws.sqs.Queue:
    return aws.sqs.Queue(
        thing,
        name=f"{name}-{thing}",
        message_retention_seconds=retention_seconds,
        sqs_managed_sse_enabled=True,
    )


def _let_topic_in(
    resource_name: str, *, queue: aws.sqs.Queue, topic: aws.sns.Topic, account_id: str
) -> aws.sqs.QueuePolicy:
    return aws.sqs.QueuePolicy(
        resource_name,
        queue_url=queue.url,
        policy=document(
            {
                "Sid": "AllowBookingEvents",
                "Effect": "Allow",
                "Principal": {"Service": "sns.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": queue.arn,
                "Condition": {
                    "ArnEquals": {"aws:SourceArn": topic.arn},
                    "StringEquals": {"aws:SourceAccount": account_id},
                },
            }
        ),
    )
