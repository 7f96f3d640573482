"""The guards that must not be taken out unnoticed: where each stands, and which tests are there for it."""

from tests.faults.guards_api import API
from tests.faults.mutations import Edit, Mutation

_JOBS = "minitickets_worker/processed_jobs.py"
_JOBS_TESTS = "apps/worker/tests/test_processed_jobs.py"
_CONSUMER_TESTS = "apps/worker/tests/test_consumer.py"
_INTERLEAVINGS = "apps/worker/tests/test_worker_interleavings.py"

WORKER = (
    Mutation(
        guard="conditional lease",
        edits=(
            Edit(
                file=_JOBS,
                replace='condition="attribute_not_exists(jobKey) OR (#status = :inProgress AND leaseUntil < :now)"',
                by='condition="attribute_not_exists(jobKey) OR #status <> :inProgress OR leaseUntil < :now '
                'OR leaseUntil >= :now"',
            ),
        ),
        red=(
            f"{_JOBS_TESTS}::test_a_claimant_paused_before_its_write_never_overwrites_what_was_done_meanwhile",
            f"{_INTERLEAVINGS}::test_two_workers_send_one_mail_in_every_order_of_their_calls",
        ),
    ),
    Mutation(
        guard="conditional record",
        edits=(
            Edit(
                file=_JOBS,
                replace='condition="attribute_not_exists(jobKey) OR #status <> :done"',
                by='condition="attribute_not_exists(jobKey) OR #status <> :done OR #status = :done"',
            ),
        ),
        red=(f"{_JOBS_TESTS}::test_the_first_record_of_done_stays",),
    ),
    Mutation(
        guard="live lease is an error",
        edits=(
            Edit(
                file=_JOBS,
                replace='if _status(found) == _IN_PROGRESS and int(found["leaseUntil"]["N"]) >= now:\n'
                "            raise JobInProgressError(job_key)",
                by='if _status(found) == _IN_PROGRESS and int(found["leaseUntil"]["N"]) >= now:\n'
                "            return None",
            ),
        ),
        red=(
            f"{_JOBS_TESTS}::test_a_live_lease_of_another_attempt_is_an_error",
            f"{_JOBS_TESTS}::test_a_lease_outlives_the_longest_run_of_the_function",
        ),
    ),
    Mutation(
        guard="lease owner",
        edits=(
            Edit(
                file=_JOBS,
                replace='condition="#owner = :owner AND #status = :inProgress"',
                by='condition="(#owner = :owner OR #owner <> :owner) AND #status = :inProgress"',
            ),
        ),
        red=(f"{_JOBS_TESTS}::test_a_late_release_leaves_the_lease_of_the_successor_alone",),
    ),
    Mutation(
        guard="owner unique per attempt",
        edits=(Edit(file=_JOBS, replace="owner=uuid.uuid4().hex", by='owner="worker"'),),
        red=(
            f"{_JOBS_TESTS}::test_every_attempt_of_one_worker_owns_under_another_name",
            f"{_JOBS_TESTS}::test_a_lost_lease_of_another_attempt_is_not_taken_for_its_own",
        ),
    ),
    Mutation(
        guard="accepted mail is never released",
        edits=(
            Edit(
                file="minitickets_worker/mail_once.py",
                replace="except MailNotSentError:",
                by="except Exception:",
            ),
        ),
        red=(f"{_CONSUMER_TESTS}::test_a_send_whose_answer_was_lost_keeps_its_lease_and_sends_once_more_at_most",),
    ),
    Mutation(
        guard="partial batch response",
        edits=(
            Edit(
                file="minitickets_worker/consumer.py",
                replace='return {"batchItemFailures": failures}',
                by='return {"batchItemFailures": []}',
            ),
        ),
        red=(
            f"{_CONSUMER_TESTS}::test_poison_is_reported_and_its_nine_siblings_succeed",
            f"{_CONSUMER_TESTS}::test_a_batch_that_fails_whole_reports_every_id_and_raises_nothing",
            f"{_CONSUMER_TESTS}::test_a_throttled_table_fails_the_message_and_nothing_is_sent",
        ),
    ),
)

_STORE = "minitickets_tickets/store.py"
_ISSUE_TESTS = "apps/tickets/tests/test_issue.py"
_SIDE_BY_SIDE = (
    "apps/tickets/tests/test_attempts_side_by_side.py::"
    "test_no_order_of_two_attempts_leaves_an_image_that_differs_from_the_stored_token"
)

TICKETS = (
    Mutation(
        guard="conditional reservation",
        edits=(
            Edit(
                file=_STORE,
                replace='                    ConditionExpression="attribute_not_exists(userId)",\n',
                by="",
            ),
        ),
        red=(_SIDE_BY_SIDE,),
    ),
    Mutation(
        guard="stored token is drawn",
        edits=(Edit(file="minitickets_tickets/issue.py", replace="draw_qr(stored.token)", by="draw_qr(ticket.token)"),),
        red=(
            _SIDE_BY_SIDE,
            f"{_ISSUE_TESTS}::test_a_death_anywhere_costs_nothing",
            f"{_ISSUE_TESTS}::test_a_stale_upload_after_ready_leaves_the_image_as_it_was",
        ),
    ),
    Mutation(
        guard="token condition",
        edits=(
            Edit(
                file=_STORE,
                replace="qrToken = :token AND #status = :creating",
                by="(qrToken = :token OR qrToken <> :token) AND #status = :creating",
            ),
        ),
        red=(f"{_ISSUE_TESTS}::test_a_token_that_changed_meanwhile_is_reported_and_not_overwritten",),
    ),
    Mutation(
        guard="state condition",
        edits=(
            Edit(
                file=_STORE,
                replace="qrToken = :token AND #status = :creating",
                by="qrToken = :token AND (#status = :creating OR #status <> :creating)",
            ),
        ),
        red=(f"{_ISSUE_TESTS}::test_a_late_attempt_does_not_undo_a_later_state",),
    ),
    Mutation(
        guard="partial batch response of the tickets function",
        edits=(
            Edit(
                file="minitickets_tickets/batch.py",
                replace='[{"itemIdentifier": message_id} for message_id in failed]',
                by="[]",
            ),
        ),
        red=("apps/tickets/tests/test_batch.py::test_ten_failures_are_reported_and_nothing_is_raised",),
    ),
)

MUTATIONS: tuple[Mutation, ...] = (*WORKER, *TICKETS, *API)
