"""How often an event moved, aisles, mails asked for again, forgotten passwords.

It runs while tasks of the version before serve, so it only adds, and they may leave each new column out. Each statement
is a transaction of its own and takes a lock on one table for an instant: two together could wait in a circle with a
request that takes the same two the other way round. Run again after a failure, it goes on where it stopped.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

# Below the five seconds after which a request that waits behind such a statement gives up.
_BEFORE_OTHERS_GIVE_UP = "set lock_timeout = '4s'"
# Nobody waits behind an index that is built concurrently; it waits for the transactions that are open.
_AS_LONG_AS_OTHERS_TAKE = "set lock_timeout = '60s'"

_STATEMENTS = (
    _BEFORE_OTHERS_GIVE_UP,
    # A constant default is kept in the catalogue: no row is rewritten.
    """
    alter table events
        add column if not exists sequence integer not null default 0, -- how often it moved since it was published
        add column if not exists updated_at timestamptz not null default now()
    """,
    # A seat's row and number are in its name; what the name does not say is where people walk.
    "alter table seats add column if not exists aisle_after boolean not null default false",
    "alter table bookings add column if not exists mail_requested_at timestamptz",  # when it was last asked for again
    "alter table outbox add column if not exists is_secret boolean not null default false",  # forget the body once sent
    """
    create table if not exists password_resets (
        token_hash bytea primary key, -- SHA-256 of the token; the token itself is in the message until that is sent
        user_id uuid references users on delete cascade, -- null: an address without an account asked
        outbox_id uuid not null, -- its message; no foreign key, because sent messages are purged
        created_at timestamptz not null default now(),
        expires_at timestamptz not null,
        used_at timestamptz
    )
    """,
    "create index if not exists password_resets_user_id on password_resets (user_id)",
    "create index if not exists password_resets_expires_at on password_resets (expires_at)",
    _AS_LONG_AS_OTHERS_TAKE,
    # Bookings insert into the outbox, so it must not be locked while it is read through. One that was built half is of
    # no use.
    "drop index concurrently if exists outbox_booking_id",
    "create index concurrently outbox_booking_id on outbox (booking_id)",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
