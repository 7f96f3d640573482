"""The books of a running platform, read where each part keeps them."""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from minitickets_contracts.messages import BookingConfirmed, message_type
from minitickets_contracts.token import SigningKeys
from tests.faults.ledger import AcceptedMail, BookingRow, Books, JobRecord, OutboxRow, TicketItem
from tests.fixtures.platform import RunningPlatform

_READERS = 8  # of images, at a time
_PEEK_SECONDS = 5  # how long a dead letter that was looked at is hidden from the next look


def read_books(platform: RunningPlatform, *, events: Collection[str], customers: Collection[str]) -> Books:
    """All that the platform holds about bookings of ``events``, and every mail to the addresses of ``customers``."""
    tickets = [item for item in _tickets(platform) if item.event_id in events]
    secret = platform.aws("secretsmanager").get_secret_value(SecretId=platform.outputs["signingSecretArn"])
    return Books(
        keys=SigningKeys.from_json(secret["SecretString"]),
        bookings=_bookings(platform, events),
        held_seats=_held_seats(platform, events),
        outbox=_outbox(platform, events),
        mails=[mail for mail in _mails(platform) if mail.recipient in customers],
        jobs=_jobs(platform),
        tickets=tickets,
        images=_images(platform, [item.image_key for item in tickets]),
        dead_mails=dead_bookings(platform, "jobsDlqUrl"),
    )


def dead_bookings(platform: RunningPlatform, queue: str) -> frozenset[str]:
    """Bookings whose confirmation is in a dead-letter queue (``queue``: the stack output with its URL). It stays."""
    sqs, url = platform.aws("sqs"), platform.outputs[queue]
    found: set[str] = set()
    while letters := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=_PEEK_SECONDS).get(
        "Messages"
    ):
        found |= {
            BookingConfirmed.from_json(letter["Body"]).booking_id
            for letter in letters
            if message_type(letter["Body"]) == BookingConfirmed.TYPE
        }
    return frozenset(found)


def _bookings(platform: RunningPlatform, events: Collection[str]) -> dict[str, BookingRow]:
    rows = platform.rows(
        "select booking_id, event_id, seats, email, cancelled_at from bookings join users using (user_id)"
        " where event_id = any($1::uuid[])",
        list(events),
    )
    return {
        str(row["booking_id"]): BookingRow(
            event_id=str(row["event_id"]),
            seats=tuple(row["seats"]),
            email=row["email"],
            is_cancelled=row["cancelled_at"] is not None,
        )
        for row in rows
    }


def _held_seats(platform: RunningPlatform, events: Collection[str]) -> dict[tuple[str, str], str]:
    rows = platform.rows(
        "select event_id, seat, booking_id from booked_seats where event_id = any($1::uuid[])", list(events)
    )
    return {(str(row["event_id"]), row["seat"]): str(row["booking_id"]) for row in rows}


def _outbox(platform: RunningPlatform, events: Collection[str]) -> list[OutboxRow]:
    rows = platform.rows(
        "select outbox.booking_id, sent_at, parked_at, last_error from outbox join bookings using (booking_id)"
        " where event_id = any($1::uuid[]) and body::json ->> 'type' = $2",
        list(events),
        BookingConfirmed.TYPE,
    )
    return [
        OutboxRow(
            booking_id=str(row["booking_id"]),
            is_sent=row["sent_at"] is not None,
            parked=None if row["parked_at"] is None else str(row["last_error"]),
        )
        for row in rows
    ]


def _mails(platform: RunningPlatform) -> Iterator[AcceptedMail]:
    for mail in platform.session.client.get("/mails"):
        recipient = mail["to"][0] if isinstance(mail["to"], list) else mail["to"]
        yield AcceptedMail(message_id=mail["messageId"], recipient=recipient, text=mail["text"])


def _jobs(platform: RunningPlatform) -> dict[str, JobRecord]:
    return {
        item["jobKey"]["S"]: JobRecord(status=item["status"]["S"], result=item.get("result", {}).get("S"))
        for item in _items(platform, "processedJobsTable")
    }


def _tickets(platform: RunningPlatform) -> Iterator[TicketItem]:
    for item in _items(platform, "ticketsTable"):
        yield TicketItem(
            booking_id=item["bookingId"]["S"],
            event_id=item["eventId"]["S"],
            seat=item["seat"]["S"],
            status=item["status"]["S"],
            token=item["qrToken"]["S"],
            image_key=item["imageKey"]["S"],
        )


def _items(platform: RunningPlatform, table: str) -> Iterator[dict[str, Any]]:
    pages = platform.aws("dynamodb").get_paginator("scan")
    for page in pages.paginate(TableName=platform.outputs[table], ConsistentRead=True):
        yield from page["Items"]


def _images(platform: RunningPlatform, keys: Collection[str]) -> dict[str, bytes]:
    s3, bucket = platform.aws("s3"), platform.outputs["assetsBucket"]

    def read(key: str) -> bytes | None:
        try:
            content: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        except s3.exceptions.NoSuchKey:
            return None
        return content

    with ThreadPoolExecutor(max_workers=_READERS) as readers:
        return {key: png for key, png in zip(keys, readers.map(read, keys), strict=True) if png is not None}
