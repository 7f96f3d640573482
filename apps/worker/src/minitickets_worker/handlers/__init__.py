"""One module a message type."""
