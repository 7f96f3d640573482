"""Accounts and events for a stage on this machine: put there by a one-off task of the API, as on AWS."""

import json
import secrets
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from local.session import Session


def seed(session: Session, document: Mapping[str, Any]) -> dict[str, Any]:
    """Put accounts and events into the stage's database (``minitickets_api.seed`` describes both)."""
    output = session.run_task(["python", "-m", "minitickets_api.seed"], environment={"SEED": json.dumps(document)})
    made: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return made


def organiser(email: str = "organiser@example.org") -> dict[str, Any]:
    """An organiser's account, with a password of its own."""
    return {"email": email, "name": "Otto Organiser", "password": secrets.token_urlsafe(9), "organiser": True}


def evening(title: str, *, rows: Mapping[str, int], organiser_email: str) -> dict[str, Any]:
    """An event a month ahead, in a zone that is not this machine's; ``rows`` are the seats of each row."""
    return {
        "eventId": str(uuid.uuid4()),
        "title": title,
        "venue": "Paramount Theatre, Seattle",
        "startsAt": (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT20:00:00"),
        "timeZone": "America/Los_Angeles",
        "rows": [{"row": row, "seats": count} for row, count in rows.items()],
        "priceMinor": 4_500,
        "currency": "USD",
        "organiser": organiser_email,
    }
