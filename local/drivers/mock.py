"""The default driver: applies the program to a running platform. ``python -m local.drivers.mock --help``.

Exit codes: 0 the platform is what the program declares; 1 a resource could not be made or removed; 2 the program, or
its configuration, refuses.
"""

import gc
import sys
import time
from pathlib import Path

import click
import pulumi_aws  # noqa: F401 - half of the driver's time: imported while the platform comes up

from local.control_client import ControlClient
from local.drivers.mock_hook import ProgramError, run_program
from local.drivers.small_engine import RegistrationError, SmallEngine
from local.drivers.stack_config import StackConfigError, load_stack_config
from local.processes import ProcessError
from local.progress import Progress
from local.stage_folder import REPOSITORY, StageFolder, stage_folder, write_json

APPLIED, FAILED, REFUSED = 0, 1, 2
OUTPUTS_FILE = "stack-outputs.json"


@click.command()
@click.option("--stage", default="dev", show_default=True, help="Stage whose Pulumi.<stage>.yaml is read.")
@click.option("--folder", type=click.Path(path_type=Path), help="The platform's state folder; .local/state/<stage>.")
@click.option("--root", type=click.Path(path_type=Path), default=REPOSITORY, help="Folder of Pulumi.yaml and infra/.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Configuration over the stage's file.")
@click.option("--since", type=float, help="Clock that the lines count from, in seconds since 1970.")
def main(stage: str, folder: Path | None, root: Path, settings: tuple[str, ...], since: float | None) -> None:
    """Apply the program in ROOT/infra to the platform that runs on FOLDER."""
    # The program's imports make a million objects that all stay. Looking for garbage among them takes a quarter of the
    # driver's time, and the process ends before there is any.
    gc.disable()
    kept = StageFolder(folder or stage_folder(stage))
    progress = Progress(since=since, log=kept.path / "logs" / "driver.log")
    overrides = dict(_key_and_value(setting) for setting in settings)
    try:
        project, config = load_stack_config(root, stage=stage, overrides=overrides)
        client = ControlClient.of(kept, seconds=30)
        try:
            client.wait_until_ready()
        except ProcessError:
            sys.exit(FAILED)  # the platform has said why
        began = time.monotonic()
        progress.say("applying the program")
        engine = SmallEngine(client)
        outputs = run_program(engine, root=root, project=project, stage=stage, config=config)
        if not engine.summary.failures:
            engine.prune()
    except (ProgramError, StackConfigError) as error:
        progress.say(f"the program refuses: {error}")
        sys.exit(REFUSED)
    except RegistrationError:
        pass  # it stands in the summary
    except ProcessError as error:
        progress.say(str(error))
        sys.exit(FAILED)
    if engine.summary.failures:
        progress.say("\n  ".join(["the program could not be applied:", *engine.summary.failures]))
        sys.exit(FAILED)
    write_json(kept.path / OUTPUTS_FILE, outputs)
    progress.say(f"the program is applied in {time.monotonic() - began:.1f} s: {engine.summary}")
    if differences := client.get("/differences"):
        log = kept.path / "logs" / "platform.log"
        progress.say(f"{len(differences)} policies and settings differ from AWS on this machine; {log} lists them")


def _key_and_value(setting: str) -> tuple[str, str]:
    key, separator, value = setting.partition("=")
    if not separator:
        raise click.BadParameter(f"{setting!r} is not KEY=VALUE")
    return key, value


if __name__ == "__main__":
    main()
