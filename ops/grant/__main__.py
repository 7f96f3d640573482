"""``python -m ops.grant --stage <stage> --email <address>``, for ``make grant``."""

import os
from collections.abc import Mapping
from pathlib import Path

import click

from ops.aws_account import AwsAccount
from ops.deploy.preflight import logged_in
from ops.exits import exits
from ops.grant.aws_tasks import AwsTasks
from ops.grant.one_off_task import OneOffTask
from ops.grant.role_grant import ORGANISER, RoleGrant
from ops.refusal import Refusal
from ops.stage_file import StageSettings, find_stage_file

_PROJECT = Path(__file__).resolve().parents[2]


@click.command()
@click.option("--stage", envvar="STAGE", required=True, help="Name of the stage, as in Pulumi.<stage>.yaml.")
@click.option("--email", envvar="GRANT_EMAIL", default="", help="The address that the account was registered with.")
@click.option("--role", envvar="GRANT_ROLE", default=ORGANISER, show_default=True, help="The role.")
@click.option("--revoke", envvar="GRANT_REVOKE", is_flag=True, help="Take the role instead of giving it.")
@click.option(
    "--project",
    default=_PROJECT,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of Pulumi.yaml.",
)
@exits
def main(stage: str, email: str, role: str, *, revoke: bool, project: Path) -> None:
    """Give a registered account a role, by a one-off task with the API's image: the database is private."""
    grant = RoleGrant(stage=stage, email=email.strip(), role=role, revoke=revoke)
    settings = find_stage_file(project, stage).settings()
    outputs = logged_in(project=project, stage=stage, environment=os.environ).outputs()
    cluster = api_cluster(outputs, settings, stage=stage)
    account = AwsAccount(region=settings.region, profile=settings.profile)
    account.number()
    run = OneOffTask(stage=stage, cluster=cluster, tasks=AwsTasks(account), say=click.echo)
    grant.carry_out(run, say=click.echo)


def api_cluster(outputs: Mapping[str, object], settings: StageSettings, *, stage: str) -> str:
    """The cluster that the stage's API runs in. Refusal with the way there where none does."""
    cluster = outputs.get("apiCluster")
    if not isinstance(cluster, str):
        wake = "compute-on" if settings.keeps_data else "wake"
        way = f"make up STAGE={stage}" if settings.computes else f"make {wake} STAGE={stage}"
        raise Refusal(f"Compute is off in {stage}, so there is nothing to run the task in: run {way} first")
    if outputs.get("apiTaskDefinition") is None:
        raise Refusal(
            f"{stage} has no image yet, so there is no task to run: make image, make push STAGE={stage}, "
            f"make up STAGE={stage}"
        )
    return cluster


if __name__ == "__main__":
    main(prog_name="python -m ops.grant")
