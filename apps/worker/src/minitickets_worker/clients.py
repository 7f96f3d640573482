"""The AWS clients of one process, with time-outs that add up to less than a message's time."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sesv2 import SESV2Client
    from mypy_boto3_sqs import SQSClient

CONNECT_SECONDS = 0.4
DYNAMODB_READ_SECONDS = 0.6
SQS_READ_SECONDS = 0.6
# The longest, because a send whose answer comes too late may be sent a second time.
SES_READ_SECONDS = 1.5

DYNAMODB_CALL_SECONDS = CONNECT_SECONDS + DYNAMODB_READ_SECONDS
SQS_CALL_SECONDS = CONNECT_SECONDS + SQS_READ_SECONDS
SES_CALL_SECONDS = CONNECT_SECONDS + SES_READ_SECONDS

IDLE_SECONDS = 20.0
"""Connections unused for longer are dropped before the next event."""


def _config(read_seconds: float) -> Config:
    # One attempt: boto3 would wait 60 s and repeat a send whose answer was lost. Repetition is decided where it is
    # known whether it is safe and whether there is time (processed_jobs, mailer).
    return Config(connect_timeout=CONNECT_SECONDS, read_timeout=read_seconds, retries={"total_max_attempts": 1})


class Clients:
    """One client a service, made once per process: a new one per call leaks sockets."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.dynamodb: DynamoDBClient = boto3.client("dynamodb", config=_config(DYNAMODB_READ_SECONDS))
        self.ses: SESV2Client = boto3.client("sesv2", config=_config(SES_READ_SECONDS))
        self.sqs: SQSClient = boto3.client("sqs", config=_config(SQS_READ_SECONDS))
        self._monotonic = monotonic
        self._used_at = monotonic()

    def drop_idle_connections(self) -> None:
        """Close what a freeze may have killed. Call it before and after each event.

        Lambda freezes the process between events. A send on a connection that died meanwhile is lost, but looks like
        one whose answer was lost, and its mail would wait minutes for the next attempt.
        """
        now = self._monotonic()
        if now - self._used_at > IDLE_SECONDS:
            for client in (self.dynamodb, self.ses, self.sqs):
                client.close()
        self._used_at = now
