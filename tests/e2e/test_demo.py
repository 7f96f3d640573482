"""`make demo`: all of it happens, or it says what did not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from local.stage_folder import StageFolder, read_json

pytestmark = pytest.mark.e2e


def test_a_demo_of_two_customers_ends_with_a_mail_each_and_verified_tickets(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    done = subprocess.run(
        [sys.executable, "-m", "local", "demo", "--seats", "2", "--customers", "2", "--folder", str(folder)],
        capture_output=True,
        text=True,
        timeout=180,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("booked", "published", "mail accepted", "2 tickets ready"):
        assert re.search(rf"  {step} +\d+\.\d\d … \d+\.\d\d", done.stdout), step
    assert "4 QR codes decoded" in done.stdout
    assert read_json(folder / "children.json") == []
    assert not StageFolder(folder).is_held()
