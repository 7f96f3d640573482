"""The local platform: the deployed program on this machine, under its own roles (docs/local-platform.md)."""
