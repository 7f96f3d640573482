"""A function in a process of its own, as Lambda runs it: ``python -m tests.faults.function_process worker``.

Takes an event a line on standard input and prints each reply; with ``--poll URL`` it is fed from a queue as an event
source mapping does it, until standard input is closed. Its environment is the function's.
"""

import importlib
import json
import select
import sys
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import boto3
import click

_HANDLERS = {"worker": "minitickets_worker.batch", "tickets": "minitickets_tickets.handler"}
_BATCH = {"worker": 10, "tickets": 1}
_TIMEOUT_SECONDS = {"worker": 10.0, "tickets": 30.0}


@dataclass
class Context:
    """Lambda's context of one invocation of ``seconds``."""

    seconds: float
    function_name: str
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    function_version: str = "1"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:000000000000:function:local"
    _began: float = field(default_factory=time.monotonic)

    def get_remaining_time_in_millis(self) -> int:
        return int(1000 * (self.seconds - (time.monotonic() - self._began)))


def _poll(handler: Any, function: str, queue_url: str, seconds: float) -> None:
    sqs = boto3.client("sqs")
    while not select.select([sys.stdin], [], [], 0)[0]:
        messages = sqs.receive_message(
            QueueUrl=queue_url,
            MaxNumberOfMessages=_BATCH[function],
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        ).get("Messages", [])
        if not messages:
            time.sleep(0.05)
            continue
        records = [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message["Attributes"],
            }
            for message in messages
        ]
        reply = handler({"Records": records}, Context(seconds=seconds, function_name=function))
        failed = {failure["itemIdentifier"] for failure in reply["batchItemFailures"]}
        for record in records:
            if record["messageId"] not in failed:
                sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=str(record["receiptHandle"]))


@click.command()
@click.argument("function", type=click.Choice(sorted(_HANDLERS)))
@click.option("--seconds", type=float, help="Time of an invocation; default: the function's own.")
@click.option("--poll", "queue_url", help="URL of the queue that feeds it.")
def main(function: str, seconds: float | None, queue_url: str | None) -> None:
    """Handle what comes, until standard input is closed."""
    seconds = seconds or _TIMEOUT_SECONDS[function]
    handler = importlib.import_module(_HANDLERS[function]).lambda_handler
    if queue_url is not None:
        _poll(handler, function, queue_url, seconds)
        return
    for line in sys.stdin:
        reply = handler(json.loads(line), Context(seconds=seconds, function_name=function))
        print("REPLY " + json.dumps(reply), flush=True)  # noqa: T201 - the reply to its parent


if __name__ == "__main__":
    main()
