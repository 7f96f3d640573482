-- Identifiers are random UUIDs, never sequences: a restored database would issue a sequence's numbers twice.

create table users (
    user_id uuid primary key,
    email text not null,
    name text not null,
    password_hash text not null,
    is_organiser boolean not null default false,
    created_at timestamptz not null default now()
);
create unique index users_email on users (lower(email));

create table sessions (
    token_hash bytea primary key, -- SHA-256 of the cookie's token; the token itself is kept nowhere
    user_id uuid not null references users on delete cascade,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);
create index sessions_user_id on sessions (user_id);
create index sessions_expires_at on sessions (expires_at);

create table events (
    event_id uuid primary key,
    organiser_id uuid not null references users,
    title text not null,
    venue text not null,
    starts_at timestamptz not null,
    time_zone text not null, -- IANA name of the venue's zone
    price_minor bigint not null check (price_minor between 0 and 1000000000), -- of one seat, in minor units
    currency text not null check (currency ~ '^[A-Z]{3}$'),
    poster_key text,
    published_at timestamptz, -- null: a draft that only its organiser sees
    created_at timestamptz not null default now()
);
create index events_starts_at on events (starts_at, event_id) where published_at is not null;
create index events_organiser_id on events (organiser_id);

create table seats (
    event_id uuid not null references events on delete cascade,
    seat text not null check (seat ~ '^[A-Z0-9-]{1,8}$'),
    position integer not null, -- order in which people read them
    primary key (event_id, seat)
);

create table bookings (
    booking_id uuid primary key,
    user_id uuid not null references users,
    event_id uuid not null references events,
    seats text[] not null check (cardinality(seats) between 1 and 10), -- kept when it is cancelled
    total_minor bigint not null check (total_minor >= 0),
    currency text not null,
    correlation_id text not null,
    created_at timestamptz not null default now(),
    cancelled_at timestamptz
);
create index bookings_user_id on bookings (user_id, created_at, booking_id);
create index bookings_event_id on bookings (event_id);

-- The seats that are sold now. The primary key is the promise that no seat is sold twice.
create table booked_seats (
    event_id uuid not null,
    seat text not null,
    booking_id uuid not null references bookings,
    primary key (event_id, seat),
    foreign key (event_id, seat) references seats
);
create index booked_seats_booking_id on booked_seats (booking_id);

create table outbox (
    outbox_id uuid primary key, -- the message's messageId
    booking_id uuid references bookings,
    body text not null, -- the message, as it will be published
    correlation_id text not null,
    created_at timestamptz not null default now(),
    next_attempt_at timestamptz not null default now(),
    attempts integer not null default 0,
    owner uuid, -- of the claim; null: free
    lease_until timestamptz,
    sent_at timestamptz,
    parked_at timestamptz, -- it can never be published; last_error says why
    last_error text
);
create index outbox_pending on outbox (next_attempt_at, created_at) where sent_at is null and parked_at is null;
create index outbox_sent_at on outbox (sent_at) where sent_at is not null;

-- What a mutation did under a client's key, committed with its effect.
create table idempotency_keys (
    user_id uuid not null references users on delete cascade,
    procedure text not null,
    key text not null,
    input_hash bytea not null, -- SHA-256 of the canonical input
    result jsonb not null,
    created_at timestamptz not null default now(),
    primary key (user_id, procedure, key)
);
create index idempotency_keys_created_at on idempotency_keys (created_at);
