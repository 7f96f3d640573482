"""Runs a migration's SQL file as one script; Alembic's own way prepares statements, which takes one at a time."""

from pathlib import Path

from alembic import op


def run_script(script: Path) -> None:
    """Run all statements of ``script`` in the migration's transaction."""
    # The driver opens the transaction with the first statement that comes through SQLAlchemy, so one has to.
    op.execute("set local lock_timeout = '20s'")
    text = script.read_text(encoding="utf-8")
    connection = op.get_bind().connection.dbapi_connection
    if connection is None:
        raise RuntimeError("the migration's connection is closed")
    connection.run_async(lambda driver: driver.execute(text))
