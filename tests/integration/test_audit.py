"""An auditor that is not ours finds in both stages what docs/security.md lists with its reasons, and no more."""

from pathlib import Path

import pytest

from local.audit import audit, why_none
from local.progress import Progress
from local.stage_folder import StageFolder

pytestmark = pytest.mark.e2e


@pytest.mark.skipif(why_none() is not None, reason=str(why_none()))
@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_the_auditor_finds_what_is_listed_and_nothing_else(stage: str, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    assert audit(stage, folder=StageFolder(tmp_path / "stage"), progress=Progress(log=log), log=log) == []
