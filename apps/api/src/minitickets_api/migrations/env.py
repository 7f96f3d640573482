"""Run by Alembic for each command: it migrates on the connection that ``minitickets_api.migrate`` hands it."""

from alembic import context

# Each migration in a transaction of its own: what ran stays, and what failed leaves nothing behind.
context.configure(connection=context.config.attributes["connection"], transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
