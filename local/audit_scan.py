"""Prowler's checks of some services against one endpoint: ``.local/auditor/bin/python -I local/audit_scan.py sqs s3``.

It runs in the auditor's own environment, so it imports nothing of ours. It drives Prowler's checks by hand, because its
command line first reads every provider's SDK and every compliance framework: four fifths of the time, for nothing that
is asked here. Endpoint, credentials and region come from the AWS variables of its environment.

Standard output is one JSON document: ``failed`` ({check, severity, resource, said}), ``passed`` (how many findings a
service passed), ``blind`` (calls of AWS's API that the endpoint did not answer, so that checks saw nothing there),
``broken`` (checks that raised). Severities other than critical, high and medium are left out.
"""

import collections
import contextlib
import importlib
import json
import logging
import os
import re
import sys
from typing import Any

from prowler.lib.check.utils import recover_checks_from_provider
from prowler.lib.logger import logger
from prowler.providers.aws.aws_provider import AwsProvider
from prowler.providers.common.models import Audit_Metadata
from prowler.providers.common.provider import Provider

_SEVERITIES = {"critical", "high", "medium"}
# What the endpoint says to a call that it does not have: by name, with an empty 400, or at a host name that it is not.
_UNKNOWN = re.compile(
    r"\((?:InvalidAction|UnknownOperationException|400)\) when calling the (\w+) operation"
    r"|Could not connect to the endpoint URL: \"http://[^/]+(/[^\"]*)\""
)


class _Blindness(logging.Handler):
    """Hears what Prowler only logs: calls that failed, after which it checks nothing and says nothing."""

    def __init__(self) -> None:
        super().__init__(level=logging.ERROR)
        self.calls: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.calls |= {name or path for name, path in _UNKNOWN.findall(record.getMessage())}


def _scan(services: list[str]) -> dict[str, Any]:
    blindness = _Blindness()
    logger.addHandler(blindness)
    checks = {service: sorted(name for name, _ in recover_checks_from_provider("aws", service)) for service in services}
    provider = AwsProvider(regions={os.environ["AWS_DEFAULT_REGION"]}, retries_max_attempts=1)
    provider.audit_metadata = Audit_Metadata(
        services_scanned=0,
        # A service reads only what the expected checks need.
        expected_checks=[name for names in checks.values() for name in names],
        completed_checks=0,
        audit_progress=0,
    )
    Provider.set_global_provider(provider)
    failed: list[dict[str, str]] = []
    passed: collections.Counter[str] = collections.Counter()
    broken: list[str] = []
    for service, names in checks.items():
        for name in names:
            module = f"prowler.providers.aws.services.{service}.{name}.{name}"
            try:
                findings = getattr(importlib.import_module(module), name)().execute()
            except Exception as error:  # noqa: BLE001 - whatever a check of theirs raises, we must hear of it
                broken.append(name)
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            for finding in findings:
                severity = finding.check_metadata.Severity.value
                if finding.status == "FAIL" and severity in _SEVERITIES:
                    resource = finding.resource_id or finding.resource_arn
                    said = finding.status_extended
                    failed.append({"check": name, "severity": severity, "resource": resource, "said": said})
                elif finding.status == "PASS":
                    passed[service] += 1
    return {"failed": failed, "passed": dict(passed), "blind": sorted(blindness.calls), "broken": broken}


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # Prowler talks
        found = _scan(sys.argv[1:])
    json.dump(found, sys.stdout)
