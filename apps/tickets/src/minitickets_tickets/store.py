"""The tickets table: who holds which seat, and whether its image is there."""

from typing import TYPE_CHECKING, Self

import boto3

from minitickets_tickets.aws import CLIENT_CONFIG, aws_call
from minitickets_tickets.failures import CallFailed, TicketMismatch
from minitickets_tickets.ticket import CREATING, READY, StoredTicket, Ticket

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_CONDITION_FAILED = "ConditionalCheckFailedException"


class DynamoTickets:
    """Tickets in a DynamoDB table with the key ``userId`` + ``ticketId``."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    @classmethod
    def connect(cls, *, table: str) -> Self:
        """With a client of its own, under the function's role."""
        return cls(boto3.client("dynamodb", config=CLIENT_CONFIG), table=table)

    def reserve(self, ticket: Ticket) -> StoredTicket:
        """Store ``ticket`` as ``creating``, unless one is there; returns what is stored now, whoever stored it.

        So a reply that was lost, or a second attempt, finds the first one's token. Raises CallFailed.
        """
        try:
            with aws_call("PutItem"):
                self._client.put_item(
                    TableName=self._table,
                    Item=_item(ticket),
                    ConditionExpression="attribute_not_exists(userId)",
                )
        except CallFailed as failure:
            if failure.code != _CONDITION_FAILED:
                raise
            return self._read(ticket)
        return _stored(_item(ticket))

    def mark_ready(self, ticket: Ticket, *, token: str, at: str) -> None:
        """Record that the image of ``token`` is in the bucket, since ``at`` (ISO 8601, UTC).

        A ticket that is past ``creating`` stays as it is: a late attempt must not undo a later state. Raises
        TicketMismatch if another token is stored by now, CallFailed if AWS does not do it.
        """
        try:
            with aws_call("UpdateItem"):
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(ticket),
                    UpdateExpression="SET #status = :ready, readyAt = :at",
                    ConditionExpression="qrToken = :token AND #status = :creating",
                    ExpressionAttributeNames={"#status": "status"},
                    ExpressionAttributeValues={
                        ":ready": {"S": READY},
                        ":at": {"S": at},
                        ":token": {"S": token},
                        ":creating": {"S": CREATING},
                    },
                )
        except CallFailed as failure:
            if failure.code != _CONDITION_FAILED:
                raise
            # Another attempt was first, or this one's own earlier write was: both leave our token behind.
            if self._read(ticket).token != token:
                raise TicketMismatch(ticket.ticket_id, "qrToken") from None

    def follow_event(self, ticket: Ticket) -> bool:
        """Give the stored ticket the event's title, place and time of ``ticket``, unless it has them of a later move.

        Whether it has them of this call: of moves that come in any order, or twice, the latest stays. Token, image and
        state are left alone. A ticket that was removed meanwhile is not made anew. Raises CallFailed.
        """
        attributes = _event_attributes(ticket)
        try:
            with aws_call("UpdateItem"):
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(ticket),
                    UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in attributes),
                    ConditionExpression="attribute_exists(userId)"
                    " AND (attribute_not_exists(#eventSequence) OR #eventSequence < :eventSequence)",
                    # `timeZone` is one of DynamoDB's reserved words, so none stands in an expression by itself.
                    ExpressionAttributeNames={f"#{name}": name for name in attributes},
                    ExpressionAttributeValues={f":{name}": value for name, value in attributes.items()},
                )
        except CallFailed as failure:
            if failure.code != _CONDITION_FAILED:
                raise
            return False
        return True

    def _read(self, ticket: Ticket) -> StoredTicket:
        with aws_call("GetItem"):
            reply = self._client.get_item(TableName=self._table, Key=_key(ticket), ConsistentRead=True)
        if "Item" not in reply:
            raise CallFailed("GetItem", "the ticket was removed meanwhile", may_pass=True)
        return _stored(reply["Item"])


def _key(ticket: Ticket) -> dict[str, "AttributeValueTypeDef"]:
    return {"userId": {"S": ticket.user_id}, "ticketId": {"S": ticket.ticket_id}}


def _item(ticket: Ticket) -> dict[str, "AttributeValueTypeDef"]:
    return {
        **_key(ticket),
        "bookingId": {"S": ticket.booking_id},
        "eventId": {"S": ticket.event_id},
        "seat": {"S": ticket.seat},
        **_event_attributes(ticket),
        "status": {"S": CREATING},
        "qrToken": {"S": ticket.token},
        "imageKey": {"S": ticket.image_key},
        "correlationId": {"S": ticket.correlation_id},
        "createdAt": {"S": ticket.created_at},
    }


def _event_attributes(ticket: Ticket) -> dict[str, "AttributeValueTypeDef"]:
    """What follows the event when it moves."""
    return {
        "eventTitle": {"S": ticket.event_title},
        "venue": {"S": ticket.venue},
        "eventStartsAt": {"S": ticket.event_starts_at},
        "timeZone": {"S": ticket.time_zone},
        "eventDate": {"S": ticket.event_date},
        "eventDateKey": {"S": ticket.event_date_key},
        "eventSequence": {"N": str(ticket.event_sequence)},
    }


def _stored(item: dict[str, "AttributeValueTypeDef"]) -> StoredTicket:
    def text(name: str) -> str:
        return item.get(name, {}).get("S", "")

    return StoredTicket(
        user_id=text("userId"),
        ticket_id=text("ticketId"),
        booking_id=text("bookingId"),
        event_id=text("eventId"),
        seat=text("seat"),
        status=text("status"),
        event_sequence=int(item.get("eventSequence", {}).get("N", "0")),  # absent: made before events could move
        token=text("qrToken"),
    )
