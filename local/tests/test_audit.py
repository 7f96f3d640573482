"""What the audit does around the auditor: which services it asks for, what it refuses, whom it believes."""

import re
from pathlib import Path

import pytest

from local.audit import LEDGER, AuditError, audit, services_of
from local.audit_ledger import SECTION
from local.handlers.registry import HANDLERS
from local.progress import Progress
from local.stage_folder import REPOSITORY, StageFolder

pytestmark = pytest.mark.unit


def test_every_service_of_the_program_is_audited_or_said_to_have_no_check() -> None:
    assert {"awslambda", "ec2", "elbv2", "iam", "rds", "s3", "ses", "vpc"} <= set(services_of(HANDLERS))


def test_a_service_that_nobody_thought_of_is_not_passed_over_in_silence() -> None:
    with pytest.raises(AuditError, match=r"audit\.py which of Prowler's services audit sagemaker"):
        services_of(["aws:sqs/queue:Queue", "aws:sagemaker/model:Model"])


def test_only_services_in_use_are_audited() -> None:
    assert services_of(["aws:sqs/queue:Queue", "pulumi:pulumi:Stack", "aws:ssm/parameter:Parameter"]) == ["sqs"]


def test_a_stage_that_nobody_described_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    with pytest.raises(AuditError, match=r"Pulumi\.nowhere\.yaml is missing"):
        audit("nowhere", folder=StageFolder(folder), progress=Progress(log=tmp_path / "log"))
    assert not folder.exists()


def test_whatever_the_emulator_tells_wrongly_is_asserted_by_a_test_of_the_program() -> None:
    section = LEDGER.read_text().partition(SECTION)[2].partition("\n## ")[0]
    wrongly = section.partition("### What the emulator tells wrongly")[2].partition("\n### ")[0]
    sources = "".join(path.read_text() for path in (REPOSITORY / "infra" / "tests").glob("test_*.py"))
    there = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    rows = [line for line in wrongly.splitlines() if line.startswith("| `")]
    assert len(rows) > 8
    for row in rows:
        assert re.search(r"`test_\w+`", row), row
    assert set(re.findall(r"`(test_\w+)`", section)) <= there
