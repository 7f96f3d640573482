"""The local platform's commands: ``python -m local demo | up | reset | grant``. The Makefile calls them."""

import importlib
import secrets
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NoReturn

import click

from local.drivers.stack_config import StackConfigError, load_stack_config
from local.processes import ProcessError
from local.progress import Progress
from local.seeding import evening, organiser, seed
from local.session import Session, SessionError, reset_stage, running_platform
from local.signals import end_on_signals
from local.stage_folder import REPOSITORY, StageFolder, StageInUseError, read_json, stage_folder, write_json
from local.stage_tasks import StageTasks
from ops.exits import exits
from ops.grant.role_grant import ORGANISER, RoleGrant

_DEMO = "demo"
_MOST_SEATS = 10  # of one booking: the API's own limit
_SWITCH = click.Choice(["on", "off"])


@click.group(context_settings={"max_content_width": 110})
def main() -> None:
    """The deployed program on this machine."""
    end_on_signals()


@main.command()
@click.option("--stage", default="dev", show_default=True, help="Stage whose Pulumi.<stage>.yaml is applied.")
@click.option("--seats", type=click.IntRange(1, _MOST_SEATS), default=3, show_default=True, help="Seats a customer.")
@click.option("--customers", type=click.IntRange(1, 500), default=1, show_default=True, help="Customers at a time.")
@click.option("--folder", type=click.Path(path_type=Path), help="State folder, emptied first; .local/state/demo.")
def demo(stage: str, seats: int, customers: int, folder: Path | None) -> None:
    """Book seats and watch the mail and the tickets come; exit 0 only if all of it happened."""
    _require_stage(stage)
    kept = StageFolder(folder or stage_folder(_DEMO))
    progress = Progress()
    try:
        reset_stage(kept, progress)
        config = _config(compute="on", data="on")
        with running_platform(kept, stage=stage, config=config, progress=progress, meanwhile=_import_demo) as session:
            _watch_demo(session, seats=seats, customers=customers, progress=progress)
    except StageInUseError as error:
        _fail(f"a demo is running already: {error}", 2)
    except SessionError as error:
        _fail(_once(error, kept), error.exit_code)
    except ProcessError as error:
        _fail(f"MISSING: {error}\n{_where_to_look(kept)}", 1)
    progress.say("the demo is over: all of it happened")


@main.command()
@click.option("--stage", default="dev", show_default=True, help="Stage whose Pulumi.<stage>.yaml is applied.")
@click.option("--compute", type=_SWITCH, default="on", show_default=True, help="The API and its load balancer.")
@click.option("--data", type=_SWITCH, default="on", show_default=True, help="PostgreSQL and Valkey.")
@click.option("--folder", type=click.Path(path_type=Path), help="State folder; .local/state/<stage>.")
def up(stage: str, compute: str, data: str, folder: Path | None) -> None:
    """Bring a stage up as it was left, and stay until Ctrl-C."""
    _require_stage(stage)
    if compute == "on" and data == "off":
        _fail("COMPUTE=on needs DATA=on: the API cannot run without its database. Set DATA=on, or COMPUTE=off.", 2)
    kept = StageFolder(folder or stage_folder(stage))
    progress = Progress()
    try:
        with running_platform(
            kept, stage=stage, config=_config(compute=compute, data=data), progress=progress
        ) as session:
            click.echo(_description(session, stage, _demo_accounts(session) if session.api_url else None))
            while session.supervisor.exit_code() is None:
                _wait_a_little(session)
    except KeyboardInterrupt:
        return  # what was asked for: everything has ended
    except SessionError as error:
        _fail(_once(error, kept), error.exit_code)
    except ProcessError as error:
        _fail(f"{error}\n{_where_to_look(kept)}", 1)
    sys.exit(session.supervisor.exit_code() or 0)


@main.command()
@click.option("--stage", default="dev", show_default=True, help="Stage to empty.")
@click.option("--folder", type=click.Path(path_type=Path), help="State folder; .local/state/<stage>.")
def reset(stage: str, folder: Path | None) -> None:
    """Delete all that a stage keeps on this machine; refused while it runs."""
    kept = StageFolder(folder or stage_folder(stage))
    if not kept.path.exists():
        click.echo(f"nothing is kept for stage {stage}: there is no {kept.path}")
        return
    try:
        reset_stage(kept, Progress())
    except StageInUseError as error:
        _fail(f"{error}. Stop it first (Ctrl-C where it runs); nothing was deleted.", 2)
    click.echo(f"{kept.path} is deleted: the next start begins anew")


@main.command()
@click.option("--stage", default="dev", show_default=True, help="Stage that runs.")
@click.option("--folder", type=click.Path(path_type=Path), help="State folder; .local/state/<stage>.")
@click.option("--email", envvar="GRANT_EMAIL", default="", help="The address that the account was registered with.")
@click.option("--role", envvar="GRANT_ROLE", default=ORGANISER, show_default=True, help="The role.")
@click.option("--revoke", envvar="GRANT_REVOKE", is_flag=True, help="Take the role instead of giving it.")
@exits
def grant(stage: str, folder: Path | None, email: str, role: str, *, revoke: bool) -> None:
    """Give a registered account of a running stage a role, by a one-off task as on AWS."""
    wanted = RoleGrant(stage=stage, email=email.strip(), role=role, revoke=revoke)
    wanted.carry_out(StageTasks(StageFolder(folder or stage_folder(stage))), say=click.echo)


def _require_stage(stage: str) -> None:
    """Before anything is started for it."""
    try:
        load_stack_config(REPOSITORY, stage=stage, overrides={})
    except StackConfigError as error:
        _fail(str(error), 2)


def _import_demo() -> None:
    # An HTTP client, the SDK and a barcode reader take half a second, which the platform's start need not wait for.
    importlib.import_module("local.demo")


def _watch_demo(session: Session, *, seats: int, customers: int, progress: Progress) -> None:
    from local.demo import StepMissingError, run_demo

    try:
        run_demo(session, seats=seats, customers=customers, progress=progress)
    except StepMissingError as error:
        raise ProcessError(str(error)) from error


def _config(*, compute: str, data: str) -> dict[str, str]:
    def boolean(switch: str) -> str:
        return "true" if switch == "on" else "false"

    return {
        "computeEnabled": boolean(compute),
        "dataEnabled": boolean(data),
        "image": "local",  # the task runs from this checkout: its image is only a name here
        "secretAdministrators": "[]",  # here the account's root deploys, whom no stage names
    }


def _wait_a_little(session: Session) -> None:
    try:
        session.supervisor.wait(1)
    except subprocess.TimeoutExpired:
        return


def _demo_accounts(session: Session) -> list[tuple[str, str, str]]:
    """(role, email, password) of a local stage's accounts; they and an event are made at the first start.

    The event stays as it was then: people have tickets for it. Once it has begun there is another.
    """
    file = session.folder.path / "demo.json"
    demo = read_json(file)
    if demo is None:
        host, password = organiser(), secrets.token_urlsafe(9)
        guest = {"email": "customer@example.org", "name": "Ada Customer", "password": password}
        demo = {"accounts": [host, guest], "events": []}
    if not demo["events"] or demo["events"][-1]["startsAt"][:10] <= f"{date.today()}":
        rows = dict.fromkeys("ABCDE", 20)
        demo["events"].append(evening("Opening night", rows=rows, organiser_email=demo["accounts"][0]["email"]))
    write_json(file, demo)
    seed(session, demo)
    roles = ("organiser", "customer")
    return [(role, one["email"], one["password"]) for role, one in zip(roles, demo["accounts"], strict=True)]


def _description(session: Session, stage: str, accounts: list[tuple[str, str, str]] | None) -> str:
    lines = ["", f"Stage {stage} is up."]
    if accounts is None:
        lines.append(f"  Pages     off: this is the serverless half alone; `make local STAGE={stage}` brings it back")
    else:
        lines.append(f"  Pages     {session.api_url}/ (its procedures are below /trpc/)")
        lines += [f"  {role:<9} {email}  password {password}" for role, email, password in accounts]
    lines += [
        f"  Mailbox   {session.mailbox_url} (what was mailed; nothing leaves this machine)",
        f"  AWS       {session.endpoint} (any AWS SDK or CLI; access key 000000000000, any secret, us-east-1)",
        f"  Logs      {session.folder.path / 'logs'}",
        f"  Stop      Ctrl-C; everything is kept. `make local-reset STAGE={stage}` empties the stage.",
        "",
    ]
    return "\n".join(lines)


def _where_to_look(folder: StageFolder) -> str:
    logs = sorted([*(folder.path / "logs").glob("*.log"), *(folder.path / "emulator").glob("*.log")])
    return "\n".join(["Look into:", *(f"  {log}" for log in logs)])


def _once(error: SessionError, folder: StageFolder) -> str:
    """A refusal is said already, whole; a failure wants its logs."""
    return f"{error}; the logs are in {folder.path / 'logs'}" if error.exit_code == 1 else ""


def _fail(text: str, exit_code: int) -> NoReturn:
    if text:
        click.echo(text, err=True)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
