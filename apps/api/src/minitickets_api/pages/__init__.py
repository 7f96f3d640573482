"""The web pages: plain forms on server-rendered templates, which scripts only enhance (docs/pages.md)."""
