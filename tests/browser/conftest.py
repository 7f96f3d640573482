"""Chromium, and windows on the platform's pages."""

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.fixtures.browser import NO_CHROMIUM, Windows, chromium
from tests.fixtures.platform import RunningPlatform


# Not for the session: while Playwright's driver runs, this thread has a running event loop, and no test elsewhere
# could call asyncio.run.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all browser tests; they are skipped where there is none."""
    binary = chromium()
    if binary is None:
        pytest.skip(NO_CHROMIUM)
    # Its sandbox needs another user than root, as whom containers of CI run.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=binary, args=arguments)
        yield started
        started.close()


@pytest.fixture
def windows(browser: Browser, platform: RunningPlatform) -> Iterator[Windows]:
    """Windows on the platform's pages."""
    origin = platform.api_url
    allowed = frozenset({origin, platform.session.endpoint.rstrip("/"), _origin(platform.session.mailbox_url)})
    opened = Windows(browser, origin=origin, allowed=allowed)
    yield opened
    opened.close()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
