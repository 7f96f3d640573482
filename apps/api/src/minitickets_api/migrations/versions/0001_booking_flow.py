"""Users, events and seats, bookings, the outbox, idempotency keys."""

from pathlib import Path

from minitickets_api.migrations.sql import run_script

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_script(Path(__file__).with_suffix(".sql"))
