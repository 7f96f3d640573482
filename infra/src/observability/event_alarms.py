"""Alarms between a booking and its mail and tickets. Always on, and ten: as many as AWS gives an account for free."""

import pulumi
import pulumi_aws as aws

from src.jobs.booking_events import BookingEvents, ConsumerQueue
from src.observability.alarm import Limit, create_alarm

# A throttled mail waits up to 15 minutes for its next attempt (the worker's back-off): twice that is not back-off.
OLDEST_MESSAGE_SECONDS = 30 * 60


def create_event_alarms(
    name: str,
    *,
    events: BookingEvents,
    worker: aws.lambda_.Function,
    tickets: aws.lambda_.Function,
    topic: aws.sns.Topic,
) -> None:
    """For each consumer: dead letters, what SNS could not deliver, the oldest message, the function's failures."""
    consumers = (
        ("jobs", "mail", events.jobs, "worker", worker),
        ("tickets", "tickets", events.tickets, "tickets", tickets),
    )
    for queue_thing, goods, queue, function_thing, function in consumers:
        _watch_queue(name, thing=queue_thing, goods=goods, queue=queue, topic=topic)
        _watch_function(name, thing=function_thing, function=function, topic=topic)


def _watch_queue(name: str, *, thing: str, goods: str, queue: ConsumerQueue, topic: aws.sns.Topic) -> None:
    ends = (
        ("dlq", queue.dead_letters.name, f"Bookings whose {goods} failed every attempt."),
        ("undelivered", queue.undelivered.name, f"Booking events that SNS could not hand to the {thing} queue."),
    )
    for end, queue_name, meaning in ends:
        create_alarm(
            name,
            thing=f"{thing}-{end}",
            meaning=meaning,
            limit=_queue_limit("ApproximateNumberOfMessagesVisible", queue_name, value=0),
            topic=topic,
        )
    create_alarm(
        name,
        thing=f"{thing}-age",
        meaning=f"Customers have waited half an hour for their {goods}.",
        limit=_queue_limit("ApproximateAgeOfOldestMessage", queue.queue.name, value=OLDEST_MESSAGE_SECONDS),
        topic=topic,
    )


def _queue_limit(metric: str, queue_name: pulumi.Input[str], *, value: float) -> Limit:
    return Limit(
        namespace="AWS/SQS", metric=metric, dimensions={"QueueName": queue_name}, statistic="Maximum", value=value
    )


def _watch_function(name: str, *, thing: str, function: aws.lambda_.Function, topic: aws.sns.Topic) -> None:
    # Failed messages are reported, not raised: an error is a crash, a time-out, or a function that cannot start.
    watched = (
        ("Errors", 1, f"The {thing} function crashed or ran out of time."),
        ("Throttles", 3, f"The {thing} function has been refused to run for a quarter of an hour."),
    )
    for metric, periods, meaning in watched:
        create_alarm(
            name,
            thing=f"{thing}-{metric.lower()}",
            meaning=meaning,
            limit=Limit(
                namespace="AWS/Lambda",
                metric=metric,
                dimensions={"FunctionName": function.name},
                statistic="Sum",
                value=0,
                periods=periods,
            ),
            topic=topic,
        )
