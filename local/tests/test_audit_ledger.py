"""The list of what the auditor may find is held both ways: nothing unlisted, and nothing listed in vain."""

import pytest

from local.audit_ledger import Finding, LedgerError, differences, read_ledger

pytestmark = pytest.mark.unit

PAGE = """
# Security

| `not_of_the_audit` | high | dev | `x` | this table is of another section |

## The off-line audit

| check | severity | stages | resources | reason |
|---|---|---|---|---|
| `s3_bucket_*` | medium | dev, prod | `minitickets-*-assets` | it can be drawn again |
| `sns_encrypted`, `sns_signed` | high | dev | `alarms`, `other` | chosen by this stage |

| call | what that hides |
|---|---|
| `ListDocuments`, `DescribeThings` | documents and things |

## Another section

| `sqs_open` | high | dev | `x` | not of the audit either |
"""
LEDGER = read_ledger(PAGE)
BLIND = ("ListDocuments", "DescribeThings")
LISTED = (
    Finding(check="s3_bucket_versioning", severity="medium", resource="minitickets-dev-assets", said="no versions"),
    *(
        Finding(check=check, severity="high", resource=resource, said="no")
        for check in ("sns_encrypted", "sns_signed")
        for resource in ("alarms", "other")
    ),
)


def _differences(*findings: Finding, stage: str = "dev", blind: tuple[str, ...] = BLIND) -> list[str]:
    return differences(LEDGER, stage=stage, findings=findings, blind=blind)


def test_a_stage_in_which_exactly_the_listed_checks_fail_does_not_differ() -> None:
    assert _differences(*LISTED) == []
    in_prod = Finding(**{**vars(LISTED[0]), "resource": "minitickets-prod-assets"})
    assert _differences(in_prod, stage="prod") == []


@pytest.mark.parametrize(
    "unlisted",
    [
        Finding(check="sqs_open", severity="high", resource="x", said="the queue is open"),
        Finding(check="sns_encrypted", severity="high", resource="tickets", said="the queue is open"),
        Finding(check="sns_encrypted", severity="critical", resource="alarms", said="the queue is open"),
        Finding(check="my_s3_bucket_x", severity="medium", resource="minitickets-dev-assets", said="the queue is open"),
    ],
    ids=["another check", "another resource", "another severity", "a pattern that fits only a part"],
)
def test_a_failure_that_is_not_listed_is_told_with_the_auditors_own_words(unlisted: Finding) -> None:
    (sentence,) = _differences(*LISTED, unlisted)
    assert sentence == (
        f"{unlisted.severity}: {unlisted.check} fails on {unlisted.resource}, and is not listed: the queue is open"
    )


def test_what_one_stage_chooses_is_not_let_pass_in_another() -> None:
    sentences = _differences(*LISTED, stage="prod")
    assert len(sentences) == 4
    assert all(sentence.startswith("high: sns_") for sentence in sentences)


@pytest.mark.parametrize("index", range(len(LISTED)))
def test_a_listed_failure_that_is_none_any_more_is_told(index: int) -> None:
    (sentence,) = _differences(*LISTED[:index], *LISTED[index + 1 :])
    assert sentence.endswith("in dev, and fails no longer")


def test_what_the_auditor_cannot_see_is_listed_too() -> None:
    assert _differences(*LISTED, blind=(*BLIND, "ListKeys")) == [
        "ListKeys is not answered here, and is not listed as such"
    ]
    assert _differences(*LISTED, blind=BLIND[:1]) == ["DescribeThings is listed as not answered here, and is answered"]


def test_the_most_severe_is_told_first() -> None:
    unlisted = [
        Finding(check=f"a_{severity}", severity=severity, resource="x", said="no")
        for severity in ("medium", "critical", "high")
    ]
    assert [sentence.split(":")[0] for sentence in _differences(*LISTED, *unlisted)] == ["critical", "high", "medium"]


@pytest.mark.parametrize(
    "row",
    [
        "| `check` | high | dev | `x` | |",
        "| `check` | urgent | dev | `x` | it is not so bad |",
        "| `check` | high | | `x` | it is not so bad |",
        "| `check` | high | dev | everything | it is not so bad |",
        "| `check` | high | dev | `x` |",
    ],
    ids=["no reason", "no such severity", "no stage", "no resource in code", "a cell too few"],
)
def test_a_row_that_says_too_little_is_refused_with_the_row(row: str) -> None:
    with pytest.raises(LedgerError, match="check"):
        read_ledger(f"## The off-line audit\n{row}\n")


def test_a_document_without_the_section_accepts_nothing_in_silence() -> None:
    with pytest.raises(LedgerError, match="The off-line audit"):
        read_ledger("# Security\n\n| `check` | high | dev | `x` | it is not so bad |\n")
