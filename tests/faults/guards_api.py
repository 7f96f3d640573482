"""The guards of the API: what keeps a seat from being sold twice, and a booking or its message from being lost."""

from tests.faults.mutations import Edit, Mutation

_FIXTURES = ("servers", "migrated_database")
_BATCHES = "minitickets_api/services/booking_batches.py"
_SCHEMA = "minitickets_api/migrations/versions/0001_booking_flow.sql"
_CLAIMS = "minitickets_api/services/outbox_claims.py"
_TOGETHER = "apps/api/tests/test_bookings_together.py"
_OUTBOX = "apps/api/tests/test_outbox.py"
_RESTORED = "tests/faults/test_restored_database.py"
_OVERSELL = f"{_TOGETHER}::test_a_seat_is_sold_once_by_the_lock_and_by_its_uniqueness"

API = (
    Mutation(
        guard="row lock of an event",
        edits=(Edit(file=_BATCHES, replace=" order by event_id for no key update", by=" order by event_id"),),
        # Without the unique seat too, which this test takes away in turn, two people hold one seat.
        red=(f"{_OVERSELL}[without the unique seat]",),
        fixtures=_FIXTURES,
    ),
    Mutation(
        guard="unique sold seat",
        edits=(Edit(file=_SCHEMA, replace="    primary key (event_id, seat),\n", by=""),),
        red=(f"{_OVERSELL}[without the lock]",),
        fixtures=_FIXTURES,
    ),
    Mutation(
        guard="idempotency key",
        edits=(Edit(file=_BATCHES, replace="remembered=remembered", by="remembered={}"),),
        red=(f"{_TOGETHER}::test_when_the_reply_to_a_commit_is_lost_each_booking_is_settled",),
        fixtures=_FIXTURES,
    ),
    Mutation(
        guard="settling after a lost connection",
        edits=(
            Edit(
                file="minitickets_api/database.py",
                replace="            if not connection_is_lost(error):\n                raise\n",
                by="            raise\n",
            ),
        ),
        red=(f"{_TOGETHER}::test_when_the_reply_to_a_commit_is_lost_each_booking_is_settled",),
        fixtures=_FIXTURES,
    ),
    Mutation(
        guard="SKIP LOCKED",
        edits=(Edit(file=_CLAIMS, replace="for update skip locked", by="for update"),),
        red=(f"{_OUTBOX}::test_a_relay_that_hangs_in_its_claim_holds_up_no_other",),
        fixtures=_FIXTURES,
    ),
    Mutation(
        guard="lock of a claim",
        edits=(Edit(file=_CLAIMS, replace="for update skip locked", by=""),),
        red=(f"{_OUTBOX}::test_two_relays_share_the_work_without_overlap",),
        fixtures=_FIXTURES,
    ),
    Mutation(
        guard="owner of a claim",
        edits=(
            Edit(
                file=_CLAIMS,
                replace="where outbox.outbox_id = delayed.outbox_id and owner = $4",
                by="where outbox.outbox_id = delayed.outbox_id and ($4::uuid is not null)",
            ),
        ),
        red=(f"{_OUTBOX}::test_whoever_lost_its_lease_can_no_longer_mark_anything",),
        fixtures=_FIXTURES,
    ),
    Mutation(
        guard="release at the end",
        edits=(
            Edit(
                file="minitickets_api/services/outbox.py",
                replace="await asyncio.gather(*(self._release(claim) for claim in unfinished.values()))",
                by="pass",
            ),
        ),
        red=(f"{_OUTBOX}::test_a_stopping_relay_releases_what_it_cannot_finish",),
        fixtures=_FIXTURES,
    ),
    Mutation(
        guard="moves count on after a rewind",
        edits=(
            Edit(
                file="minitickets_api/services/own_events.py",
                replace="greatest(sequence, $9::integer) + 1",
                by="greatest(sequence, $9::integer * 0) + 1",
            ),
        ),
        red=(f"{_RESTORED}::test_no_message_of_a_restored_database_is_taken_for_one_of_the_life_that_is_gone",),
        fixtures=_FIXTURES,
    ),
)
