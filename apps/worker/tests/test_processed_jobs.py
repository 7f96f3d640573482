"""The idempotent consumer's memory, against a table with DynamoDB's conditions."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from apps.worker.tests.fakes import FakeInvocation, FakeTable, client_error, lost_reply, raising
from minitickets_worker.processed_jobs import (
    KEEP_SECONDS,
    LEASE_SECONDS,
    DynamoProcessedJobs,
    JobInProgressError,
    Lease,
)

pytestmark = pytest.mark.unit

KEY = "booking.confirmed:0b9f3f0e-1111-4222-8333-444455556666"
THROTTLED = client_error("ProvisionedThroughputExceededException", operation="GetItem")


@pytest.fixture
def table() -> FakeTable:
    return FakeTable()


@pytest.fixture
def invocation() -> FakeInvocation:
    return FakeInvocation()


@pytest.fixture
def jobs(table: FakeTable, invocation: FakeInvocation) -> DynamoProcessedJobs:
    return jobs_on(table, invocation)


def jobs_on(table: FakeTable, invocation: FakeInvocation) -> DynamoProcessedJobs:
    client: Any = table
    return DynamoProcessedJobs(client=client, table="processed-jobs", invocation=invocation)


def begun(jobs: DynamoProcessedJobs) -> Lease:
    lease = jobs.begin(KEY)
    assert lease is not None
    return lease


def test_the_lease_lies_between_the_functions_timeout_and_the_visibility_timeout_less_one_run() -> None:
    function_timeout, visibility_timeout = 10, 60
    assert function_timeout < LEASE_SECONDS < visibility_timeout - function_timeout


def test_a_job_that_nobody_has_begun_is_leased(jobs: DynamoProcessedJobs, table: FakeTable) -> None:
    lease = begun(jobs)
    assert table.items[KEY]["status"] == {"S": "in-progress"}
    assert table.items[KEY]["owner"] == {"S": lease.owner}


def test_a_lease_is_taken_even_with_no_time_left(
    jobs: DynamoProcessedJobs, table: FakeTable, invocation: FakeInvocation
) -> None:
    invocation.ends = invocation.time
    begun(jobs)
    assert int(table.items[KEY]["leaseUntil"]["N"]) > invocation.now() + LEASE_SECONDS - 2


def test_every_attempt_of_one_worker_owns_under_another_name(
    jobs: DynamoProcessedJobs, invocation: FakeInvocation
) -> None:
    first = begun(jobs)
    invocation.time += LEASE_SECONDS
    assert begun(jobs).owner != first.owner


def test_a_job_that_is_done_is_not_begun_again(jobs: DynamoProcessedJobs) -> None:
    jobs.complete(begun(jobs), result="ses-1")
    assert jobs.begin(KEY) is None


def test_a_job_that_is_refused_for_good_is_not_begun_again(jobs: DynamoProcessedJobs) -> None:
    jobs.refuse(begun(jobs), reason="MessageRejected")
    assert jobs.begin(KEY) is None


def test_a_done_record_that_has_expired_but_is_still_there_counts_as_done(
    jobs: DynamoProcessedJobs, table: FakeTable, invocation: FakeInvocation
) -> None:
    jobs.complete(begun(jobs), result="ses-1")
    invocation.time += KEEP_SECONDS + 24 * 3600
    assert int(table.items[KEY]["expiresAt"]["N"]) < invocation.now()
    assert jobs.begin(KEY) is None


def test_a_record_is_kept_for_thirty_days_in_whole_seconds(
    jobs: DynamoProcessedJobs, table: FakeTable, invocation: FakeInvocation
) -> None:
    jobs.complete(begun(jobs), result="ses-1")
    assert table.items[KEY]["expiresAt"] == {"N": str(int(invocation.now()) + 30 * 86400)}


def test_a_live_lease_of_another_attempt_is_an_error(jobs: DynamoProcessedJobs) -> None:
    begun(jobs)
    with pytest.raises(JobInProgressError):
        jobs.begin(KEY)


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.99])
def test_a_message_that_comes_back_after_the_lease_time_finds_the_lease_over(
    jobs: DynamoProcessedJobs, invocation: FakeInvocation, fraction: float
) -> None:
    invocation.time = 1_000_000 + fraction
    begun(jobs)
    invocation.time += LEASE_SECONDS
    begun(jobs)


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.99])
def test_a_lease_outlives_the_longest_run_of_the_function(
    jobs: DynamoProcessedJobs, invocation: FakeInvocation, fraction: float
) -> None:
    invocation.time = 1_000_000 + fraction
    begun(jobs)
    invocation.time += 23.9
    with pytest.raises(JobInProgressError):
        jobs.begin(KEY)


def test_a_released_job_can_be_begun_at_once(jobs: DynamoProcessedJobs) -> None:
    assert jobs.release(begun(jobs))
    begun(jobs)


def test_a_late_release_leaves_the_lease_of_the_successor_alone(
    jobs: DynamoProcessedJobs, table: FakeTable, invocation: FakeInvocation
) -> None:
    late = begun(jobs)
    invocation.time += LEASE_SECONDS
    successor = begun(jobs)
    jobs.release(late)
    assert table.items[KEY]["owner"] == {"S": successor.owner}
    with pytest.raises(JobInProgressError):
        jobs.begin(KEY)


def test_a_release_never_undoes_the_record_of_its_own_attempt(jobs: DynamoProcessedJobs) -> None:
    lease = begun(jobs)
    jobs.complete(lease, result="ses-1")
    jobs.release(lease)
    assert jobs.begin(KEY) is None


def test_a_finished_job_costs_one_read_and_no_write(jobs: DynamoProcessedJobs, table: FakeTable) -> None:
    jobs.refuse(begun(jobs), reason="MessageRejected")
    before = table.calls
    jobs.begin(KEY)
    assert table.calls - before == 1


def test_a_late_release_never_undoes_done(jobs: DynamoProcessedJobs, invocation: FakeInvocation) -> None:
    late = begun(jobs)
    invocation.time += LEASE_SECONDS
    jobs.complete(begun(jobs), result="ses-2")
    jobs.release(late)
    assert jobs.begin(KEY) is None


def test_an_accepted_effect_is_recorded_although_its_lease_is_over_and_taken(
    jobs: DynamoProcessedJobs, invocation: FakeInvocation
) -> None:
    late = begun(jobs)
    invocation.time += LEASE_SECONDS
    begun(jobs)
    jobs.complete(late, result="ses-1")
    assert jobs.begin(KEY) is None


def test_the_first_record_of_done_stays(
    jobs: DynamoProcessedJobs, table: FakeTable, invocation: FakeInvocation
) -> None:
    late = begun(jobs)
    invocation.time += LEASE_SECONDS
    jobs.complete(begun(jobs), result="ses-of-the-first")
    jobs.complete(late, result="ses-of-the-late")
    assert table.items[KEY]["result"] == {"S": "ses-of-the-first"}


def test_a_refusal_never_overwrites_done(
    jobs: DynamoProcessedJobs, table: FakeTable, invocation: FakeInvocation
) -> None:
    late = begun(jobs)
    invocation.time += LEASE_SECONDS
    jobs.complete(begun(jobs), result="ses-1")
    jobs.refuse(late, reason="MessageRejected")
    assert table.items[KEY]["status"] == {"S": "done"}


def test_an_accepted_effect_overrules_the_refusal_of_another_attempt(
    jobs: DynamoProcessedJobs, table: FakeTable, invocation: FakeInvocation
) -> None:
    late = begun(jobs)
    invocation.time += LEASE_SECONDS
    jobs.refuse(begun(jobs), reason="MessageRejected")
    jobs.complete(late, result="ses-1")
    assert table.items[KEY]["status"] == {"S": "done"}


def test_a_claimant_paused_before_its_write_never_overwrites_what_was_done_meanwhile(
    table: FakeTable, invocation: FakeInvocation
) -> None:
    def another_finishes() -> None:
        other = jobs_on(table, invocation)
        other.complete(begun(other), result="ses-1")

    table.writes.before = [another_finishes]
    assert jobs_on(table, invocation).begin(KEY) is None
    assert table.items[KEY]["status"] == {"S": "done"}


def test_a_lease_whose_reply_was_lost_is_found_to_be_its_own(jobs: DynamoProcessedJobs, table: FakeTable) -> None:
    table.writes.after = [raising(lost_reply())]
    assert begun(jobs).owner == table.items[KEY]["owner"]["S"]


def test_a_record_whose_reply_was_lost_counts_as_written(jobs: DynamoProcessedJobs, table: FakeTable) -> None:
    lease = begun(jobs)
    table.writes.after = [raising(lost_reply())]
    jobs.complete(lease, result="ses-1")
    assert [item["status"]["S"] for item in table.history] == ["in-progress", "done"]


def test_a_lost_lease_of_another_attempt_is_not_taken_for_its_own(table: FakeTable, invocation: FakeInvocation) -> None:
    other = jobs_on(table, invocation)

    def another_begins() -> None:
        begun(other)
        raise lost_reply()

    table.writes.before = [another_begins]
    with pytest.raises(JobInProgressError):
        jobs_on(table, invocation).begin(KEY)


@pytest.mark.parametrize(
    "error",
    [
        THROTTLED,
        client_error("InternalServerError", status=500),
        lost_reply(),
        ConnectTimeoutError(endpoint_url="https://service.invalid"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_that_passes_is_tried_again_while_there_is_time(
    jobs: DynamoProcessedJobs, table: FakeTable, error: Exception
) -> None:
    table.reads.before = [raising(error), raising(error)]
    begun(jobs)


def test_a_failure_that_does_not_pass_ends_after_three_attempts(jobs: DynamoProcessedJobs, table: FakeTable) -> None:
    table.reads.before = [raising(THROTTLED)] * 4
    with pytest.raises(ClientError):
        jobs.begin(KEY)
    assert table.calls == 3


def test_a_call_is_not_repeated_when_what_follows_would_run_out_of_time(
    jobs: DynamoProcessedJobs, table: FakeTable, invocation: FakeInvocation
) -> None:
    invocation.ends = invocation.time + 4.9
    table.reads.before = [raising(lost_reply())]
    with pytest.raises(ReadTimeoutError):
        jobs.begin(KEY)
    assert table.calls == 1


def test_a_missing_permission_is_not_tried_again(jobs: DynamoProcessedJobs, table: FakeTable) -> None:
    table.reads.before = [raising(client_error("AccessDeniedException"))]
    with pytest.raises(ClientError, match="AccessDenied"):
        jobs.begin(KEY)
    assert table.calls == 1


def test_a_release_that_fails_is_told_and_hides_nothing(jobs: DynamoProcessedJobs, table: FakeTable) -> None:
    lease = begun(jobs)
    table.writes.before = [raising(client_error("AccessDeniedException"))]
    assert not jobs.release(lease)
