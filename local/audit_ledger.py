"""What docs/security.md says that the auditor may find, and how that differs from what it found.

The document is the list: in its section on the audit, a table row of five cells accepts failed checks (check, severity,
stages, resources, reason; shell patterns in the first and the fourth), one of two cells names what the auditor cannot
see here (a call of AWS's API, or a check that cannot run; and what that hides).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

SECTION = "## The off-line audit"
_SEVERITIES = ("critical", "high", "medium")
_QUOTED = re.compile(r"`([^`]+)`")


class LedgerError(ValueError):
    """The document's list cannot be read; the message holds the row."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A check that failed on a resource; ``said`` is the auditor's own sentence."""

    check: str
    severity: str
    resource: str
    said: str


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """Failures that the document lists, for one pattern of resources."""

    check: str
    severity: str
    stages: frozenset[str]
    resource: str

    def covers(self, finding: Finding) -> bool:
        """Whether this entry is about the finding."""
        return (
            finding.severity == self.severity
            and fnmatchcase(finding.check, self.check)
            and fnmatchcase(finding.resource, self.resource)
        )


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The document's list: ``blind`` holds calls and checks of which the auditor sees nothing here."""

    accepted: tuple[Accepted, ...]
    blind: frozenset[str]


def read_ledger(text: str) -> Ledger:
    """The list in a Markdown document. LedgerError for a row that says too little, or if there is no such section."""
    accepted: list[Accepted] = []
    blind: set[str] = set()
    for cells in _rows(text):
        if len(cells) == 5:
            accepted += _accepted(cells)
        elif len(cells) == 2:
            blind |= set(_QUOTED.findall(cells[0]))
        else:
            raise LedgerError(f"{len(cells)} cells, where 5 or 2 are expected: {' | '.join(cells)}")
    if not accepted:
        raise LedgerError(f"no table of accepted findings below {SECTION!r}")
    return Ledger(accepted=tuple(accepted), blind=frozenset(blind))


def differences(ledger: Ledger, *, stage: str, findings: Iterable[Finding], blind: Iterable[str]) -> list[str]:
    """How a stage's audit differs from the list, a sentence each, the most severe first; none if it does not."""
    found, unseen = list(findings), set(blind)
    entries = [entry for entry in ledger.accepted if stage in entry.stages]
    unlisted = [finding for finding in found if not any(entry.covers(finding) for entry in entries)]
    stale = [entry for entry in entries if not any(entry.covers(finding) for finding in found)]
    return [
        *(
            f"{finding.severity}: {finding.check} fails on {finding.resource}, and is not listed: {finding.said}"
            for finding in sorted(unlisted, key=lambda finding: (_SEVERITIES.index(finding.severity), finding.check))
        ),
        *(
            f"{entry.check} ({entry.severity}) is listed for {entry.resource} in {stage}, and fails no longer"
            for entry in stale
        ),
        *(f"{name} is not answered here, and is not listed as such" for name in sorted(unseen - ledger.blind)),
        *(f"{name} is listed as not answered here, and is answered" for name in sorted(ledger.blind - unseen)),
    ]


def _rows(text: str) -> Iterator[list[str]]:
    """The cells of each row whose first cell begins with code: headers and rules do not."""
    inside = False
    for line in text.splitlines():
        if line.startswith("## "):
            inside = line.strip() == SECTION
        elif inside and line.startswith("| `"):
            yield [cell.strip() for cell in line.strip().strip("|").split("|")]


def _accepted(cells: list[str]) -> Iterator[Accepted]:
    checks, severity, stages, resources = (
        _QUOTED.findall(cells[0]),
        cells[1],
        frozenset(cells[2].split(", ")),
        _QUOTED.findall(cells[3]),
    )
    if not checks or severity not in _SEVERITIES or "" in stages or not resources or not cells[4]:
        raise LedgerError(f"a check, its severity, stages, resources and a reason are expected: {' | '.join(cells)}")
    for check in checks:
        for resource in resources:
            yield Accepted(check=check, severity=severity, stages=stages, resource=resource)
