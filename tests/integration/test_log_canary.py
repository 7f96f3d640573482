"""After a booking on the whole platform no process has logged what is a person's, or what opens something."""

import re
import secrets
from collections.abc import Mapping
from functools import partial
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from local.processes import wait_until
from tests.fixtures.platform import RunningPlatform, image_hash

pytestmark = pytest.mark.e2e

_SECONDS = 60.0
_TOKEN = re.compile(r"(?<![\w-])[\w-]{43}(?![\w-])")
_SHORTEST = 8  # anything shorter could be there by chance


def test_no_process_of_the_platform_logs_what_is_a_persons_or_opens_something(platform: RunningPlatform) -> None:
    mark = f"canary-{secrets.token_hex(6)}"
    email, password, name = f"{mark}@example.org", f"{mark} password", f"Ada {mark.title()}"
    visitor = platform.visitor()
    visitor.register(email=email, name=name, password=password)
    booking_id = visitor.book(event_id=platform.make_event(), seats=["A-1", "A-2"])["bookingId"]
    platform.wait_for_mails(to=email)
    tickets = platform.wait_for_tickets(visitor, count=2)
    for ticket in tickets:
        image_hash(ticket["imageUrl"])

    # The mail once more, one that cancels, and one whose link sets a new password.
    visitor.mutate("bookings.resendMail", {"bookingId": booking_id, "idempotencyKey": f"{mark}-again"})
    visitor.mutate("bookings.cancel", {"bookingId": booking_id, "idempotencyKey": f"{mark}-cancel"})
    visitor.mutate("auth.requestPasswordReset", {"email": email})
    mails = platform.wait_for_mails(to=email, count=4)
    [reset_mail] = [mail for mail in mails if mail["subject"] == "Set a new MiniTickets password"]
    [reset_token] = set(_TOKEN.findall(reset_mail["text"]))
    visitor.mutate("auth.resetPassword", {"token": reset_token, "password": f"{mark} second"})
    login = {"email": email, "password": f"{mark} second"}
    with httpx.Client(base_url=platform.api_url, timeout=20, trust_env=False) as browser:
        assert browser.post("/trpc/auth.login", json=login).status_code == 200
        session = browser.cookies["session"]
        for page in ("/bookings", f"/bookings/{booking_id}", "/tickets"):
            assert browser.get(page).status_code == 200

    opens = {f"QR text of {ticket['seat']}": ticket["qrToken"] for ticket in tickets}
    for ticket in tickets:
        signed = parse_qs(urlsplit(ticket["imageUrl"]).query)
        opens[f"signature of {ticket['seat']}'s URL"] = signed["X-Amz-Signature"][0]
    opens |= {
        "token of a reset": reset_token,
        "session": session,
        "address": email,
        "name": name,
        "password": password,
        "canary": mark,
    }
    assert all(len(text) >= _SHORTEST for text in opens.values())

    def logs() -> Mapping[str, str]:
        files = [file for file in (platform.folder.path / "logs").rglob("*") if file.is_file()]
        texts = {file.name: file.read_text(errors="replace") for file in files}
        for function in ("worker", "tickets"):
            group = f"/aws/lambda/minitickets-dev-{function}"
            pages = platform.aws("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
            texts[group] = "\n".join(event["message"] for page in pages for event in page["events"])
        return texts

    def tells_of_it(group: str) -> bool:
        return booking_id in logs()[group]

    # Not before each of them has said something about this booking: silence proves nothing.
    for group in ("/aws/lambda/minitickets-dev-worker", "/aws/lambda/minitickets-dev-tickets"):
        wait_until(f"{group} tells of the booking", partial(tells_of_it, group), seconds=_SECONDS)
    written = logs()
    assert any(booking_id in text for file, text in written.items() if file.startswith("minitickets-dev-api"))

    found = {
        f"{what} in {file}"
        for file, text in written.items()
        for what, secret in opens.items()
        if secret.lower() in text.lower()
    }
    assert found == set()
