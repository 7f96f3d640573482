"""What crosses a process border: event messages, keys, tickets' tokens. Standard library only (ADR 0004)."""
