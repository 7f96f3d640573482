"""Entry point of the ticket function. The stores are wired once, while Lambda starts the process at full speed."""

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from minitickets_tickets.batch import process_batch
from minitickets_tickets.images import TicketImages
from minitickets_tickets.issue import TicketIssuer
from minitickets_tickets.settings import load_settings
from minitickets_tickets.signing import SigningSecret
from minitickets_tickets.store import DynamoTickets

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

settings = load_settings()
logger = Logger(stage=settings.stage)
issuer = TicketIssuer(
    tickets=DynamoTickets.connect(table=settings.tickets_table),
    images=TicketImages.connect(bucket=settings.assets_bucket),
    signing=SigningSecret.connect(arn=settings.signing_secret_arn),
)


@logger.inject_lambda_context
def lambda_handler(event: dict[str, Any], context: "LambdaContext") -> dict[str, list[dict[str, str]]]:
    """Issue the tickets of each booking in an SQS batch; returns the partial batch response."""
    return process_batch(
        event,
        issue=issuer.issue,
        logger=logger,
        seconds_left=lambda: context.get_remaining_time_in_millis() / 1000,
    )
