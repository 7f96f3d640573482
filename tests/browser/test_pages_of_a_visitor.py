"""What somebody sees who is not logged in."""

import pytest

from tests.fixtures.browser import Windows

pytestmark = pytest.mark.browser


def test_the_start_page_has_a_title(windows: Windows) -> None:
    page = windows.window("phone").open("/")
    assert "MiniTickets" in page.title()
