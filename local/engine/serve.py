"""What a `pulumi` command needs beside itself, the provider and the program: ``python -m local.engine.serve``.

Both are in one process that outlives the commands. It serves the provider and the language host (the same that the
Automation API has for a program in its own process, since no registry ships the CLI's Python host) on ports that it
writes to ``<folder>/engine/ports.json``, and stays until it is ended.
"""

import os

# Before gRPC is imported: a warning at each fork would flood the output otherwise.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import gc
import importlib.metadata
import runpy
import signal
import sys
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import click
import grpc
import pulumi
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2_grpc, provider_pb2_grpc

from local.control_client import ControlClient
from local.drivers.aws_schema import output_names
from local.engine.folder import EngineFolder
from local.engine.holds import Holds
from local.engine.operations import OperationLog
from local.engine.provider import EngineProvider
from local.handlers.registry import HANDLERS
from local.stage_folder import REPOSITORY, StageFolder, write_json

# The engine has as many verbs under way as it has threads (4 a core); a slow one must not hold up the others.
_THREADS = 64


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="State folder of a platform.")
@click.option("--root", type=click.Path(path_type=Path), default=REPOSITORY, help="Folder of infra/.")
def main(folder: Path, root: Path) -> None:
    """Serve the platform that runs on FOLDER, and the program in ROOT/infra, to the Pulumi engine."""
    for token in HANDLERS:
        output_names(token)  # imports its part of the SDK: one or two seconds for all, while the platform comes up
    # The SDK tells the engine each of its debug lines by a call of its own, a third of the program's time for nobody.
    pulumi.log.debug = lambda *_, **__: None
    # The imports made a million objects that all stay: no collection need look at them, least of all in each run.
    gc.freeze()
    kept = StageFolder(folder)
    served = EngineFolder(folder)
    control = ControlClient.of(kept, seconds=30)
    served.path.mkdir(exist_ok=True, mode=0o700)
    provider = grpc.server(futures.ThreadPoolExecutor(_THREADS))
    servicer = EngineProvider(
        control,
        version=importlib.metadata.version("pulumi-aws"),
        record=OperationLog(served.operations).write,
        holds=Holds(served.path),
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, provider)
    language = grpc.server(futures.ThreadPoolExecutor(4))
    host = LanguageServer(_program(root, restore_from=served.restore_from))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, language)
    ports = {
        "provider": provider.add_insecure_port("127.0.0.1:0"),
        "language": language.add_insecure_port("127.0.0.1:0"),
    }
    signal.signal(signal.SIGTERM, lambda *_: provider.stop(None))
    provider.start()
    language.start()
    write_json(served.ports, ports)
    provider.wait_for_termination()


def _program(root: Path, *, restore_from: Path) -> Callable[[], None]:
    """The program as a new process would run it: its modules read anew, the run's RESTORE_FROM in its environment.

    The engine does not pass a run's environment on to a language host that runs already: whoever starts the engine
    leaves that one variable in a file.
    """
    main = root / "infra" / "__main__.py"
    sys.path.insert(0, str(main.parent))

    def run() -> None:
        for name in [name for name in sys.modules if name == "src" or name.startswith("src.")]:
            del sys.modules[name]
        wish = restore_from.read_text() if restore_from.exists() else ""
        os.environ.pop("RESTORE_FROM", None)
        if wish:
            os.environ["RESTORE_FROM"] = wish
        runpy.run_path(str(main), run_name="__main__")

    return run


if __name__ == "__main__":
    main()
