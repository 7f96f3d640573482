"""`make audit`: Prowler against a stage's own configuration on this machine, compared with docs/security.md.

Exit codes: 0 it found what the document lists, and nothing else; 1 not so, or the platform failed; 2 it cannot begin
(no environment of its own, no such stage, another audit of the stage runs).
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click

from local.audit_ledger import Finding, LedgerError, differences, read_ledger
from local.drivers.stack_config import StackConfigError, load_stack_config
from local.emulator import ACCOUNT, REGION, ROOT_SECRET_KEY
from local.processes import ProcessError
from local.progress import Progress
from local.session import SessionError, reset_stage, running_platform
from local.signals import end_on_signals
from local.stage_folder import REPOSITORY, StageFolder, StageInUseError, stage_folder

AUDITOR = REPOSITORY / ".local" / "auditor"
LEDGER = REPOSITORY / "docs" / "security.md"
DIFFERENT, CANNOT_BEGIN = 1, 2

# Eight seconds of one core were measured for a stage; ten times that on a busy machine.
_SCAN_SECONDS = 420.0

# Prowler's name of each service that the program uses, by the module of the resource's type. None: it has no check of
# what the program makes there (of Systems Manager, say, it looks at documents only).
_SERVICES: Mapping[str, tuple[str, ...] | None] = {
    "appautoscaling": None,
    "backup": ("backup",),
    "cloudwatch": ("cloudwatch",),
    "dynamodb": ("dynamodb",),
    "ec2": ("ec2", "vpc"),
    "ecr": ("ecr",),
    "ecs": ("ecs",),
    "elasticache": ("elasticache",),
    "iam": ("iam",),
    "kms": ("kms",),
    "lambda": ("awslambda",),
    "lb": ("elbv2",),
    "rds": ("rds",),
    "route53": None,
    "s3": ("s3",),
    "scheduler": None,
    "secretsmanager": ("secretsmanager",),
    "sesv2": ("ses",),
    "sns": ("sns",),
    "sqs": ("sqs",),
    "ssm": None,
    "vpc": ("vpc",),
}


class AuditError(RuntimeError):
    """The audit cannot begin; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Scan:
    """What the auditor saw: failures, the services of which it saw anything, and what it could not see."""

    findings: tuple[Finding, ...]
    seen: frozenset[str]
    blind: frozenset[str]


def why_none() -> str | None:
    """Why there is no auditor here; None if there is one."""
    if (AUDITOR / ".stamp").exists():
        return None
    return "the auditor's environment is not made (1.4 GB): `make auditor` makes it, `make audit` makes and runs it"


def audit(stage: str, *, folder: StageFolder, progress: Progress, log: Path | None = None) -> list[str]:
    """Bring a stage up in ``folder``, audit it, take it down; how it differs from docs/security.md, a sentence each.

    AuditError if it cannot begin; SessionError or ProcessError if the platform or the auditor fails.
    """
    try:
        ledger = read_ledger(LEDGER.read_text())
        config = _config(stage)
    except (LedgerError, StackConfigError) as error:
        raise AuditError(str(error)) from error
    if (reason := why_none()) is not None:
        raise AuditError(reason)
    with running_platform(folder, stage=stage, config=config, progress=progress, log=log) as session:
        services = services_of(resource["type"] for resource in session.client.get("/resources"))
        progress.say(f"stage {stage} is up; auditing {len(services)} services")
        scan = scan_endpoint(session.endpoint, services, home=folder.path)
    progress.say(f"{len(scan.findings)} failures of severity medium or higher")
    return [
        *(f"the auditor saw nothing of {service}" for service in services if service not in scan.seen),
        *differences(ledger, stage=stage, findings=scan.findings, blind=scan.blind),
    ]


def services_of(types: Iterable[str]) -> list[str]:
    """Prowler's services for resource types (``aws:sqs/queue:Queue``); AuditError for a module that has no entry."""
    modules = {token.split(":")[1].split("/")[0] for token in types if token.startswith("aws:")}
    if unknown := sorted(modules - _SERVICES.keys()):
        raise AuditError(f"say in {Path(__file__).name} which of Prowler's services audit {', '.join(unknown)}")
    return sorted({service for module in modules for service in _SERVICES[module] or ()})


def scan_endpoint(endpoint: str, services: list[str], *, home: Path) -> Scan:
    """Run the checks of ``services`` against an endpoint; ProcessError if the auditor fails or takes too long."""
    script = Path(__file__).with_name("audit_scan.py")
    try:
        done = subprocess.run(
            # Isolated: the script's own folder holds a module `platform`, which would hide the standard library's.
            [str(AUDITOR / "bin" / "python"), "-I", str(script), *services],
            env=_environment(endpoint, home=home),
            capture_output=True,
            text=True,
            timeout=_SCAN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProcessError(f"the auditor has not ended after {_SCAN_SECONDS:g} s") from error
    if done.returncode != 0:
        raise ProcessError(f"the auditor ended with exit code {done.returncode}\n{done.stderr[-2000:]}")
    document = json.loads(done.stdout)
    findings = tuple(Finding(**failed) for failed in document["failed"])
    seen = {finding.check.split("_")[0] for finding in findings} | set(document["passed"])
    return Scan(findings=findings, seen=frozenset(seen), blind=frozenset(document["blind"]) | set(document["broken"]))


def _config(stage: str) -> dict[str, str]:
    """The stage as its file says, but on, and without what is outside this machine."""
    project, config = load_stack_config(REPOSITORY, stage=stage, overrides={})
    changed = {"image": "local", "computeEnabled": "true", "dataEnabled": "true"}
    if config.get(f"{project}:certificateArn"):
        changed["certificateArn"] = f"arn:aws:acm:{REGION}:{ACCOUNT}:certificate/local"
    if config.get(f"{project}:hostedZoneId"):
        changed["hostedZoneId"] = ""
    return changed


def _environment(endpoint: str, *, home: Path) -> dict[str, str]:
    nowhere = "http://127.0.0.1:9"  # whatever is not the endpoint fails at once instead of leaving this machine
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AWS_SECRET_ACCESS_KEY": ROOT_SECRET_KEY,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), nowhere),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
    }


@click.command()
@click.option("--stage", "stages", multiple=True, default=("dev", "prod"), show_default=True, help="Stages to audit.")
def main(stages: tuple[str, ...]) -> None:
    """Audit stages on this machine with Prowler; AWS is never asked, and no stage that runs is touched."""
    end_on_signals()
    progress = Progress()
    different = False
    for stage in stages:
        kept = StageFolder(stage_folder(f"audit-{stage}"))
        log = kept.path / "logs" / "audit.log"
        try:
            reset_stage(kept, progress)
            log.parent.mkdir(parents=True)
            found = audit(stage, folder=kept, progress=progress, log=log)
        except (AuditError, StageInUseError) as error:
            _fail(str(error), CANNOT_BEGIN)
        except (SessionError, ProcessError) as error:
            _fail(f"{error}\nThe log is {log}", DIFFERENT)
        click.echo("\n".join(_lines(stage, found)))
        different = different or bool(found)
    sys.exit(DIFFERENT if different else 0)


def _lines(stage: str, found: list[str]) -> Iterator[str]:
    document = LEDGER.relative_to(REPOSITORY)
    if not found:
        yield f"Stage {stage}: every failed check of severity medium or higher is listed in {document}"
        return
    yield f"Stage {stage} differs from {document}. Mend the program, or list it there with its reason:"
    yield from (f"  {sentence}" for sentence in found)


def _fail(text: str, exit_code: int) -> NoReturn:
    click.echo(text, err=True)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
