"""SES's limits on the whole platform: real bookings, the worker's zip, queue and mapping, and what it writes down."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.emulator import ACCOUNT, REGION
from local.processes import wait_until
from minitickets_contracts.keys import booking_confirmed_job_key
from tests.faults.dead_letters import QueueCounts, move_as_told, queue_counts
from tests.faults.platform_books import dead_bookings
from tests.faults.runbook_commands import runbook_command
from tests.faults.stage_changes import coming_back_sooner, mail_limits, purge
from tests.fixtures.platform import Customer, RunningPlatform
from tests.fixtures.recorded_calls import RecordedCalls

pytestmark = pytest.mark.faults

BOOKINGS = 20  # a tenth of the documented burst, whose messages come back in a twentieth of the time
_SECONDS = 90.0  # a burst takes 40 s, and twice as long once in a hundred
_EMPTY = QueueCounts(waiting=0, hidden=0)
_NAMES = {"$P": "minitickets-dev", "$ACCOUNT": ACCOUNT, "<region>": REGION}
_WORKER = "minitickets-dev-worker"


@pytest.fixture(autouse=True)
def only_this_tests_messages(platform: RunningPlatform) -> Iterator[None]:
    purge(platform)
    yield
    purge(platform)


@pytest.fixture
def calls(platform: RunningPlatform) -> RecordedCalls:
    calls = RecordedCalls(platform.folder.path / "calls.jsonl")
    calls.mark()
    return calls


def customers(platform: RunningPlatform, count: int) -> list[Customer]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: platform.register(), range(count)))


def book_together(platform: RunningPlatform, people: Sequence[Customer]) -> list[str]:
    """A seat for each, all at once; the bookings' ids."""
    event_id = platform.make_event()
    with ThreadPoolExecutor(len(people)) as pool:
        booked = pool.map(
            lambda numbered: numbered[1].visitor.book(event_id=event_id, seats=[f"A-{numbered[0]}"]),
            enumerate(people, start=1),
        )
        return [booking["bookingId"] for booking in booked]


def job_of(platform: RunningPlatform, booking_id: str) -> dict[str, Any]:
    found = platform.aws("dynamodb").get_item(
        TableName=platform.outputs["processedJobsTable"],
        Key={"jobKey": {"S": booking_confirmed_job_key(booking_id)}},
        ConsistentRead=True,
    )
    item: dict[str, Any] = found.get("Item", {})
    return item


def status_of(platform: RunningPlatform, booking_id: str) -> str | None:
    status: str | None = job_of(platform, booking_id).get("status", {}).get("S")
    return status


def test_a_burst_at_one_mail_a_second_reaches_every_mailbox_once_and_makes_no_dead_letter(
    platform: RunningPlatform, calls: RecordedCalls
) -> None:
    people = customers(platform, BOOKINGS)

    with mail_limits(platform, perSecond=1), coming_back_sooner(platform, times=20) as said:
        bookings = book_together(platform, people)
        wait_until(
            "every mail is accepted and recorded",
            lambda: all(status_of(platform, booking_id) == "done" for booking_id in bookings),
            seconds=_SECONDS,
        )
        wait_until("nothing comes back", lambda: queue_counts(platform, "jobsQueueUrl") == _EMPTY, seconds=_SECONDS)

    assert [len(platform.mails(to=person.email)) for person in people] == [1] * BOOKINGS
    assert queue_counts(platform, "jobsDlqUrl") == _EMPTY
    # It was a burst above the rate: SES refused, and the worker had messages wait as long as it should.
    assert [call for call in calls.of(_WORKER, "ses:SendEmail") if call.status == 429]
    assert said
    assert min(said) >= 25


def test_a_dead_letter_that_is_redriven_as_the_runbook_says_is_mailed_once_however_often_it_comes(
    platform: RunningPlatform, calls: RecordedCalls
) -> None:
    [ada] = people = customers(platform, 1)
    command = runbook_command("aws sqs start-message-move-task", names=_NAMES)

    with coming_back_sooner(platform, times=600):
        with mail_limits(platform, perDay=0):
            [booking_id] = book_together(platform, people)
            wait_until(
                "its receives have run out",
                lambda: queue_counts(platform, "jobsDlqUrl").waiting == 1,
                seconds=_SECONDS,
            )
        assert dead_bookings(platform, "jobsDlqUrl") == {booking_id}
        assert (platform.mails(to=ada.email), status_of(platform, booking_id)) == ([], "in-progress")
        # At most one each receive: polls that race may spend one without an attempt.
        assert 1 <= len(calls.of(_WORKER, "ses:SendEmail")) <= 3

        assert (command.service, command.operation) == ("sqs", "start_message_move_task")
        [letter] = move_as_told(platform, **command.input)
        platform.wait_for_mails(to=ada.email)
        # Somebody redrives a copy too: another message id, the same job.
        calls.mark()
        platform.aws("sqs").send_message(QueueUrl=platform.outputs["jobsQueueUrl"], MessageBody=letter)
        wait_until(
            "the copy is finished",
            lambda: (
                len(calls.of(_WORKER, "dynamodb:GetItem")) >= 1 and queue_counts(platform, "jobsQueueUrl") == _EMPTY
            ),
            seconds=_SECONDS,
        )

    assert json.loads(letter)["bookingId"] == booking_id
    [mail] = platform.mails(to=ada.email)
    assert (status_of(platform, booking_id), job_of(platform, booking_id)["result"]["S"]) == ("done", mail["messageId"])
    assert queue_counts(platform, "jobsDlqUrl") == _EMPTY


def test_a_refused_mail_is_listed_by_the_runbooks_command_with_its_reason_and_no_address(
    platform: RunningPlatform, calls: RecordedCalls
) -> None:
    people = customers(platform, 2)
    refused = people[0]
    with mail_limits(platform, rejected=[refused.email]):
        refused_id, mailed_id = book_together(platform, people)
        for booking_id, status in ((refused_id, "refused"), (mailed_id, "done")):
            wait_until(
                f"the mail is {status}",
                lambda booking_id=booking_id, status=status: status_of(platform, booking_id) == status,  # type: ignore[misc]  # mypy cannot infer a lambda's defaults
                seconds=_SECONDS,
            )
    wait_until("nothing comes back", lambda: queue_counts(platform, "jobsQueueUrl") == _EMPTY, seconds=_SECONDS)

    listed = runbook_command("aws dynamodb scan", names=_NAMES).run(platform.aws)

    job_keys = {job_key: rest for job_key, *rest in listed}
    finished_at = job_of(platform, refused_id)["finishedAt"]["N"]
    assert job_keys[booking_confirmed_job_key(refused_id)] == ["MessageRejected", finished_at]
    assert booking_confirmed_job_key(mailed_id) not in job_keys
    assert refused.email not in json.dumps(job_of(platform, refused_id)), "a record holds nobody's address"
    assert platform.mails(to=refused.email) == []
    assert len(calls.of(_WORKER, "ses:SendEmail")) == 2, "a refused mail is not tried again"
    assert queue_counts(platform, "jobsDlqUrl") == _EMPTY
    # And the booking is none the worse for it.
    assert [booking["status"] for booking in refused.visitor.bookings()] == ["confirmed"]
    assert len(platform.wait_for_tickets(refused.visitor, count=1)) == 1
