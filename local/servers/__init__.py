"""Real servers that the local platform runs: PostgreSQL, Valkey."""
