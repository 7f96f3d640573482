"""What the API can be asked: a module a noun, all in one registry."""
