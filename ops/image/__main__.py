"""``python -m ops.image build`` and ``python -m ops.image push --stage <stage>``, for the Makefile's two targets."""

import os
from pathlib import Path

import click

from ops.aws_account import AwsAccount
from ops.deploy.preflight import logged_in
from ops.exits import exits
from ops.image.api_image import TASK_PLATFORM, build_image, push_image, read_built_image
from ops.image.container_engine import find_engine
from ops.refusal import Refusal
from ops.stage_file import find_stage_file

_PROJECT = Path(__file__).resolve().parents[2]

_project = click.option(
    "--project",
    default=_PROJECT,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of Pulumi.yaml.",
)


@click.group()
def main() -> None:
    """The API's container image."""


@main.command()
@_project
@exits
def build(project: Path) -> None:
    """Build the image for the platform of the stage's tasks; BASE_IMAGE= and PLATFORM= choose others."""
    engine = find_engine(os.environ)
    platform = os.environ.get("PLATFORM") or TASK_PLATFORM
    click.echo(f"Building the API's image for {platform} with {engine.name}")
    built = build_image(project, engine=engine, platform=platform, base_image=os.environ.get("BASE_IMAGE") or None)
    click.echo(f"Built {built.id}")


@main.command()
@click.option("--stage", envvar="STAGE", required=True, help="Name of the stage, as in Pulumi.<stage>.yaml.")
@_project
@exits
def push(stage: str, project: Path) -> None:
    """Push the image to the stage's repository and name it in the stage's file."""
    file = find_stage_file(project, stage)
    built = read_built_image(project)
    engine = find_engine({"CONTAINER_ENGINE": built.engine, **os.environ})
    cli = logged_in(project=project, stage=stage, environment=os.environ)
    settings = file.settings()
    aws = AwsAccount(region=settings.region, profile=settings.profile)
    aws.number()
    repository_url = cli.outputs().get("repositoryUrl")
    if not isinstance(repository_url, str) or "/" not in repository_url:
        raise Refusal(f"Stage {stage} has no image repository yet: run make up STAGE={stage}, which makes it")
    reference = push_image(built, engine=engine, registry=aws, repository_url=repository_url, file=file, say=click.echo)
    click.echo(f"{file.path.name} names {reference}. Next: make up STAGE={stage}")


if __name__ == "__main__":
    main(prog_name="python -m ops.image")
